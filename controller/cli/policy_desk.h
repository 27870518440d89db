// What every command about the fleet's policy begins with: the fleet, this host's own configuration
// to read versions with, and where Redis's pointers stand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/fleet_writer.h"
#include "cli/session.h"
#include "fleet/fleet_policy.h"
#include "fleet/policy_in_redis.h"

namespace sluice::cli {

class PolicyDesk {
  public:
    static Result<PolicyDesk> open(const Session& session);

    [[nodiscard]] FleetWriter& fleet() { return fleet_; }
    [[nodiscard]] const PolicyKeys& keys() const { return keys_; }
    // As they were when it was opened.
    [[nodiscard]] const PolicyPointers& pointers() const { return state_.pointers; }
    // What the fleet overrides, likewise; and for how long yet.
    [[nodiscard]] const std::vector<PolicyOverride>& overrides() const { return state_.overrides; }
    [[nodiscard]] uint64_t left_ms(const PolicyOverride& entry) const {
        return entry.until_ms - std::min(entry.until_ms, state_.now_ms);
    }
    // This host's own configuration, of which a version takes the place of a part.
    [[nodiscard]] const ConfigFile& own() const { return own_; }
    // The version that this host has, and the stamp by which it has it; both 0: none.
    [[nodiscard]] uint64_t version_here() const { return version_here_; }
    [[nodiscard]] uint64_t stamp_here_ms() const { return stamp_here_ms_; }
    // Redis has a state of before the change that this host has.
    [[nodiscard]] bool is_older() const {
        return pointers().current != 0 && pointers().stamp_ms < stamp_here_ms_;
    }

    Result<StoredVersion> read(uint64_t version);
    // Whether this host could put it in force: so could others, as far as it is not about them. And
    // whether the fleet's overrides of now fit it. With `insists` whatever is wrong is a warning.
    Status check(const StoredVersion& version, bool insists,
                 std::vector<std::string>& warnings) const;
    Status check_overrides(const ConfigFile& config, bool insists,
                           std::vector<std::string>& warnings) const;

    // After a change of the policy. What fails is done by a host within seconds.
    void write_shared_budgets(std::vector<std::string>& warnings);

  private:
    PolicyDesk(FleetWriter fleet, ConfigFile own)
        : fleet_(std::move(fleet)), keys_(fleet_.fleet()), own_(std::move(own)) {}

    FleetWriter fleet_;
    PolicyKeys keys_;
    ConfigFile own_;
    PolicyState state_;
    uint64_t version_here_ = 0, stamp_here_ms_ = 0;
};

// Of --reason, before anything is written: Redis keeps so much, in one line.
Status check_reason(const std::string& reason);

// "7" or "v7"; the error names the option or argument.
Result<uint64_t> parse_version(std::string_view what, const std::string& text);

// "alice from 192.0.2.7 at 2026-11-29T20:05:33Z"
std::string pushed_by(const PolicyVersion& version);

}  // namespace sluice::cli
