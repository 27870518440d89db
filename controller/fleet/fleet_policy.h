// A version of the fleet's policy, and the configuration that a host makes of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/policy_override.h"
#include "operate/config_file.h"
#include "policy/config_tree.h"
#include "policy/schedule.h"

namespace sluice {

struct FleetVersion {
    std::string fleet;
    uint64_t version = 0;
    uint64_t since_ms = 0;  // of Redis's clock: when it was made this host's
    bool is_canary = false;
    std::string text;
    std::vector<PolicyOverride> overrides{};  // of the fleet; their times are of the boot clock

    // A version may be made a host's twice, and after Redis was wiped another has its number.
    [[nodiscard]] bool is(uint64_t other, uint64_t other_since_ms) const {
        return version == other && since_ms == other_since_ms;
    }
};

// What the gate keeps as the source of a policy: "fleet shop, version 7". No file is called so.
struct FleetSource {
    std::string fleet;
    uint64_t version = 0;
    bool is_canary = false;
    bool is_overridden = false;
};
std::string format_fleet_source(const FleetSource& source);
// Nothing where a policy is the host's own.
std::optional<FleetSource> parse_fleet_source(std::string_view source);

// Whether a policy of that source, a host's own or the fleet's, has other numbers for a time.
bool is_overridden(std::string_view source);

// The host's configuration with this policy, which fleet_part() gave, in place of its own.
Result<ConfigFile> with_policy(const ConfigFile& host, ConfigTable policy, std::string source);
// The host's configuration with the policy of the version in place of its own. Errors name version
// and place.
Result<ConfigFile> with_fleet_policy(const ConfigFile& host, const FleetVersion& version);
// The same with other numbers for a time laid over it.
Result<ConfigFile> with_overrides(ConfigFile config, const std::vector<PolicyOverride>& overrides);
// The same with those of them that fit it, on their own and together; the others are taken out of
// `overrides`, and `left_out` says of each why.
Result<ConfigFile> with_fitting_overrides(const ConfigFile& config,
                                          std::vector<PolicyOverride>& overrides,
                                          std::vector<std::string>& left_out);
// What any host reads out of such a text, with the schedules that are due at that instant and those
// overrides that fit it: for what no host has a say in, such as shared budgets.
Result<Policy> policy_of_any_host(const std::string& text, Instant at,
                                  std::vector<PolicyOverride> overrides = {});

}  // namespace sluice
