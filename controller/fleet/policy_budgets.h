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

// Exact in Lua's numbers.
inline constexpr uint64_t kAboveAnyTime = 1'000'000'000'000'000;  // ms
// The version of budgets that a change of the fleet's policy writes, from its stamp in ms. It is
// above all versions of hosts that write what their own files say.
constexpr uint64_t budgets_version(uint64_t stamp_ms) {
    return kAboveAnyTime + stamp_ms;
}
// And back; 0: of a host's own file.
constexpr uint64_t budgets_stamp(uint64_t version) {
    return version < kAboveAnyTime ? 0 : version - kAboveAnyTime;
}
// Whether a shard refused budgets, and for which later version; an error where it failed.
Result<std::optional<uint64_t>> later_version(const redis::Reply& reply);

struct BudgetsWritten {
    std::optional<uint64_t>
        later;  // the version of a shard that has a later one; it was left as it is
    // By Redis's clock, when they are to be written again: before a change that is too far ahead to
    // wait there already. 0: there is none.
    uint64_t again_ms = 0;
};
// The shared budgets of a version's text with the fleet's overrides, for every host, whichever
// policy it has: those of `now_ms`, and for each end of an override and each begin and end of a
// schedule, all by Redis's clock, what changes then. `version` is budgets_version() of the change.
// Overrides that don't fit the text count for nothing, as on hosts.
Result<BudgetsWritten> write_budgets(Redis& redis, std::string_view fleet, const std::string& text,
                                     const std::vector<PolicyOverride>& overrides, uint64_t version,
                                     uint64_t now_ms);
// Whatever the fleet's policy has still to be written of, by whoever changed it last; to be called
// by everybody who changes it, and by hosts where he was killed before he came to it. Of several
// who do so at once the last change holds.
Status write_owed_budgets(Redis& redis, std::string_view fleet);

}  // namespace sluice
