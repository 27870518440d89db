// The shared budgets of a policy, as the lease shards in Redis have them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/lease_message.h"
#include "fleet/policy_override.h"
#include "policy/policy.h"
#include "redis/redis.h"

namespace sluice {

FleetBudget fleet_budget(const Service& service, Dimension dimension, const TokenBucket& bucket);

// All that the policy shares, by name.
std::vector<FleetBudget> fleet_budgets(const Policy& policy);

// The version of budgets that a change of the fleet's policy writes, from its time by Redis's clock
// in ms. It is above all versions of hosts that write what their own files say.
constexpr uint64_t budgets_version(uint64_t since_ms) {
    constexpr uint64_t kAboveAnyTime = 1'000'000'000'000'000;  // ms: and exact in Lua's numbers
    return kAboveAnyTime + since_ms;
}
// Whether a shard refused budgets, and for which later version; an error where it failed.
Result<std::optional<uint64_t>> later_version(const redis::Reply& reply);

// Makes all shared budgets those of the policy, at once or at a time of Redis's clock, for every
// host, whichever policy it has. `version` is budgets_version() of the change; where a shard has a
// later one all the same (Redis's clock was ahead) this takes its place.
Status write_budgets(Redis& redis, std::string_view fleet, const Policy& policy, uint64_t version,
                     std::chrono::milliseconds at = std::chrono::milliseconds(0));
// The same for a version's text with the fleet's overrides, whose times are Redis's: those of now,
// and for each end of an override those from then on. A later change takes the place of all of
// them.
Status write_budgets_in_time(Redis& redis, std::string_view fleet, const std::string& text,
                             const std::vector<PolicyOverride>& overrides, uint64_t version);

}  // namespace sluice
