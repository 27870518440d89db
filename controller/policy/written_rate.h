// A limit's rate in the words of the configuration: for events and `why`.
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.h"

namespace sluice {

// "20/s", "10 per 1m", "2MB/s"
std::string written_rate(const Limit& limit, Dimension dimension);
// Empty where the policy has no such rule.
std::string written_rate(const Policy& policy, std::string_view service, Rule rule);

}  // namespace sluice
