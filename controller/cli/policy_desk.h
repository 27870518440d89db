// What every command about the fleet's policy begins with: the fleet, this host's own configuration
// to read versions with, and where Redis's pointers stand.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/fleet_writer.h"
#include "cli/session.h"
#include "fleet/fleet_policy.h"
#include "fleet/policy_message.h"

namespace sluice::cli {

struct StoredVersion {
    PolicyVersion about;
    std::string text;
};

class PolicyDesk {
  public:
    static Result<PolicyDesk> open(const Session& session);

    [[nodiscard]] FleetWriter& fleet() { return fleet_; }
    [[nodiscard]] const PolicyKeys& keys() const { return keys_; }
    // As they were when it was opened.
    [[nodiscard]] const PolicyPointers& pointers() const { return pointers_; }
    // This host's own configuration, of which a version takes the place of a part.
    [[nodiscard]] const ConfigFile& own() const { return own_; }
    // Where that in force here is from.
    [[nodiscard]] const std::string& source_in_force() const { return source_in_force_; }

    Result<StoredVersion> read(uint64_t version);
    // Whether this host could put it in force: so could others, as far as it is not about them.
    [[nodiscard]] Result<ConfigFile> as_here(const StoredVersion& version) const;

    // What the fleet overrides now: to be read again after a change of that.
    Status read_overrides();

    // Of a version that was just made current. What fails is done by a host within seconds.
    void write_shared_budgets(const std::string& text, uint64_t since_ms,
                              std::vector<std::string>& warnings);

  private:
    PolicyDesk(FleetWriter fleet, ConfigFile own, std::string source_in_force)
        : fleet_(std::move(fleet)),
          keys_(fleet_.fleet()),
          own_(std::move(own)),
          source_in_force_(std::move(source_in_force)) {}

    FleetWriter fleet_;
    PolicyKeys keys_;
    ConfigFile own_;
    std::string source_in_force_;
    PolicyPointers pointers_;
    std::vector<PolicyOverride> overrides_;  // by Redis's clock
};

// "7" or "v7"; the error names the option or argument.
Result<uint64_t> parse_version(std::string_view what, const std::string& text);

// "alice from 192.0.2.7 at 2026-11-29T20:05:33Z"
std::string pushed_by(const PolicyVersion& version);

}  // namespace sluice::cli
