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

// The shared budgets of a version's text with the fleet's overrides, for every host, whichever
// policy it has: those of now, and for each end of an override, by Redis's clock, those from then
// on. `version` is budgets_version() of the change; a shard that has a later one is left as it is,
// and that version is the answer. Overrides that don't fit the text count for nothing, as on hosts.
Result<std::optional<uint64_t>> write_budgets(Redis& redis, std::string_view fleet,
                                              const std::string& text,
                                              const std::vector<PolicyOverride>& overrides,
                                              uint64_t version);
// Whatever the fleet's policy has still to be written of, by whoever changed it last; to be called
// by everybody who changes it, and by hosts where he was killed before he came to it. Of several
// who do so at once the last change holds.
Status write_owed_budgets(Redis& redis, std::string_view fleet);

}  // namespace sluice
