#include "fleet/policy_budgets.h"

#include <algorithm>
#include <map>
#include <set>

#include "fleet/fleet_policy.h"
#include "fleet/policy_in_redis.h"
#include "policy/capacity.h"
#include "policy/compile_limit.h"

namespace sluice {

namespace {

// Of write_owed_budgets(): so many changes while one writes are more than operators make, and the
// last of them writes his own.
constexpr int kMostRounds = 8;

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
    return {.name = budget_name(service.name, dimension),
            .per_second = per_second(bucket.rate),
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

namespace {

// All shards that the policy shares something in, at once or at a time of Redis's clock; the latest
// of the later versions that some of them have.
Result<std::optional<uint64_t>> write_at(Redis& redis, std::string_view fleet, const Policy& policy,
                                         uint64_t version, std::chrono::milliseconds at) {
    std::map<unsigned, std::vector<FleetBudget>> shards;
    for (const FleetBudget& budget : fleet_budgets(policy)) {
        const std::string_view name = budget.name;
        shards[lease_shard(name.substr(0, name.rfind('.')))].push_back(budget);
    }
    std::vector<redis::Command> commands;
    for (const auto& [number, budgets] : shards)
        commands.push_back(
            budget_command(budget_script(), LeaseKeys(fleet, number), version, at, budgets));
    if (commands.empty())
        return std::optional<uint64_t>();
    const auto replies = redis.run_replicated(commands);
    if (!replies)
        return replies.error();
    std::optional<uint64_t> latest;
    for (const redis::Reply& reply : *replies) {
        const auto later = later_version(reply);
        if (!later)
            return later.error();
        latest = std::max(latest, *later);
    }
    return latest;
}

}  // namespace

Result<std::optional<uint64_t>> write_budgets(Redis& redis, std::string_view fleet,
                                              const std::string& text,
                                              const std::vector<PolicyOverride>& overrides,
                                              uint64_t version) {
    std::set<uint64_t> ends;
    for (const PolicyOverride& entry : overrides)
        ends.insert(entry.until_ms);
    uint64_t at_ms = 0;
    std::vector<PolicyOverride> left = overrides;
    for (auto end = ends.begin();; ++end) {
        const auto policy = policy_of_any_host(text, left);
        if (!policy)
            return policy.error();
        auto later = write_at(redis, fleet, *policy, version,
                              std::chrono::milliseconds(static_cast<int64_t>(at_ms)));
        if (!later || *later || end == ends.end())
            return later;
        at_ms = *end;
        (void)drop_ended(left, at_ms);
    }
}

Status write_owed_budgets(Redis& redis, std::string_view fleet) {
    const PolicyKeys keys(fleet);
    for (int round = 0; round < kMostRounds; ++round) {
        const auto state = read_policy_state(redis, keys);
        if (!state)
            return state.error();
        const uint64_t stamp_ms = state->pointers.unwritten_ms;
        if (stamp_ms == 0 || state->pointers.current == 0)
            return {};
        const auto current = read_policy_version(redis, keys, state->pointers.current);
        if (!current)
            return current.error();
        const auto later =
            write_budgets(redis, fleet, current->text, state->overrides, budgets_version(stamp_ms));
        if (!later)
            return later.error();
        // Those of a change that came meanwhile, or of a policy that Redis has lost.
        const auto reply = redis.run(*later ? policy_owe_command(keys, budgets_stamp(**later))
                                            : policy_written_command(keys, stamp_ms));
        if (!reply)
            return reply.error();
        if (const Status fine = reply->check(); !fine)
            return fine;
        if (*later)
            continue;
        const auto is_written = reply->as_integer();
        if (is_written && *is_written == 1)
            return {};
    }
    return failed("the fleet's policy was changed each time that its budgets were written",
                  "a host writes them within seconds");
}

}  // namespace sluice
