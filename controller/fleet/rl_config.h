// What other limiters' policies mean here, laid over a configuration.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/policy_override.h"
#include "fleet/rl_policy.h"
#include "operate/config_file.h"
#include "policy/rule_id.h"

namespace sluice {

// What a configuration's source is called with such limits: "/etc/sluice.toml, with limits of rl:".
inline constexpr std::string_view kWithRlLimits = ", with limits of rl:";

struct RlLaid {
    ConfigFile config;
    std::vector<RuleId> in_force;       // limits that are theirs in it
    std::vector<std::string> left_out;  // of each service why they do not lie over it
};

// Nothing is laid over a configuration without [rl]. Where users_per_source is not said, such
// limits only observe and take no limit's place. Where it is, they take the place of the service's
// own. What is overridden stays as it is overridden.
RlLaid with_rl_limits(const ConfigFile& config, const std::vector<RlService>& services,
                      const std::vector<PolicyOverride>& overrides);

// Of this service as an override would have it: "per_source.connections={ … } …"; "as the policy
// says" where there is none.
std::string format_rl_limits(const RlService& service);

}  // namespace sluice
