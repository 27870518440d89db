#include "fleet/policy_budgets.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "fleet/fleet_policy.h"
#include "policy/compile_limit.h"

namespace sluice {

namespace {

using Shards = std::map<unsigned, std::vector<FleetBudget>>;

}  // namespace

Result<std::optional<uint64_t>> later_version(const redis::Reply& reply) {
    const auto words = reply.as_array();
    if (!words)
        return words.error();
    const auto word =
        words->empty() ? failed("budgets: Redis answered nothing") : words->front().as_text();
    if (!word)
        return word.error();
    if (*word == "full")
        return failed("Redis has no room for more shared budgets in one of its shards");
    if (*word != "older" || words->size() < 2)
        return std::optional<uint64_t>();
    const auto in_force = (*words)[1].as_integer();
    if (!in_force)
        return in_force.error();
    return std::optional(static_cast<uint64_t>(*in_force));
}

FleetBudget fleet_budget(const Service& service, Dimension dimension, const TokenBucket& bucket) {
    const std::chrono::duration<double> per = bucket.rate.per;
    return {.name = budget_name(service.name, dimension),
            .per_second = static_cast<double>(bucket.rate.count) / per.count(),
            .burst = static_cast<double>(bucket.burst),
            .unit = static_cast<double>(least_burst(dimension))};
}

std::vector<FleetBudget> fleet_budgets(const Policy& policy) {
    std::vector<FleetBudget> budgets;
    for (const Service& service : policy.services)
        for (const auto& [dimension, bucket] : service.budget)
            if (service.shared)
                budgets.push_back(fleet_budget(service, dimension, bucket));
    std::ranges::sort(budgets, {}, &FleetBudget::name);
    return budgets;
}

Status write_budgets(Redis& redis, std::string_view fleet, const Policy& policy, uint64_t version,
                     std::chrono::milliseconds at_ms) {
    Shards shards;
    for (const FleetBudget& budget : fleet_budgets(policy)) {
        const std::string_view name = budget.name;
        shards[lease_shard(name.substr(0, name.rfind('.')))].push_back(budget);
    }
    // A second time for those that have a later version.
    for (int round = 0; round < 2 && !shards.empty(); ++round) {
        std::vector<redis::Command> commands;
        for (const auto& [number, budgets] : shards)
            commands.push_back(
                budget_command(budget_script(), LeaseKeys(fleet, number), version, at_ms, budgets));
        const auto replies = redis.run_replicated(commands);
        if (!replies)
            return replies.error();
        Shards again;
        size_t at = 0;
        for (auto& [number, budgets] : shards) {
            const auto later = later_version((*replies)[at++]);
            if (!later)
                return later.error();
            if (*later) {
                version = std::max(version, **later);
                again.emplace(number, std::move(budgets));
            }
        }
        shards = std::move(again);
    }
    return {};
}

Status write_budgets_in_time(Redis& redis, std::string_view fleet, const std::string& text,
                             const std::vector<PolicyOverride>& overrides, uint64_t version) {
    std::set<uint64_t> ends;
    for (const PolicyOverride& entry : overrides)
        ends.insert(entry.until_ms);
    uint64_t at_ms = 0;
    std::vector<PolicyOverride> left = overrides;
    for (auto end = ends.begin();; ++end) {
        const auto policy = policy_of_any_host(text, left);
        if (!policy)
            return policy.error();
        const Status written = write_budgets(
            redis, fleet, *policy, version, std::chrono::milliseconds(static_cast<int64_t>(at_ms)));
        if (!written || end == ends.end())
            return written;
        at_ms = *end;
        (void)drop_ended(left, at_ms);
    }
}

}  // namespace sluice
