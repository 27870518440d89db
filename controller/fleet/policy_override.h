// A service's numbers changed for a time, by an operator: on one host or in the whole fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clocks.h"
#include "base/result.h"
#include "policy/service_change.h"

namespace sluice {

// What an operator changes for longer is a policy.
inline constexpr std::chrono::hours kLongestPolicyOverride{24 * 7};

struct PolicyOverride {
    ServiceChange change;
    // In Redis of its clock, since 1970; on a host of boot_clock_ms(), which nobody sets.
    uint64_t until_ms = 0;
    std::string actor;  // "alice from 192.0.2.7"
    std::string reason;
    bool by_fleet = false;

    friend bool operator==(const PolicyOverride&, const PolicyOverride&) = default;
};

// One line, with tabs between: until, actor, reason, service, then each value.
std::string format_override(const PolicyOverride& entry);
Result<PolicyOverride> parse_override(std::string_view line);

// All of them, those of the fleet first: what an operator says on one host is over it.
Status apply_overrides(ConfigTable& config, const std::vector<PolicyOverride>& overrides);

// Those of one service take the place of what was said before; nothing: they go.
void put_override(std::vector<PolicyOverride>& overrides, PolicyOverride entry);
// Whether there was one.
bool drop_override(std::vector<PolicyOverride>& overrides, const std::string& service,
                   bool by_fleet);
// "the fleet's override of web, by alice"
std::string describe(const PolicyOverride& entry);

// Those that are over; whether there were any.
bool drop_ended(std::vector<PolicyOverride>& overrides, uint64_t now_ms);

// On disk: a host's own, and the fleet's as it knew them last. Within one boot the wall clock may
// be set, and they end when they were to end all the same.
class OverrideFile {
  public:
    explicit OverrideFile(const std::string& state_dir) : path_(state_dir + "/overrides") {}
    [[nodiscard]] bool exists() const;
    // None where there is no file. One that is torn or foreign is set aside, which the error says.
    [[nodiscard]] Result<std::vector<PolicyOverride>> load(const Moment& now = moment_now()) const;
    [[nodiscard]] Status save(const std::vector<PolicyOverride>& overrides,
                              const Moment& now = moment_now()) const;

  private:
    std::string path_;
};

}  // namespace sluice
