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

// What waits in a shard is read with each lease from it, so schedules are written no further ahead;
// a host comes back in time, unless all are down for so long.
constexpr std::chrono::milliseconds kAhead = std::chrono::hours(24);
// Below the 64 changes that a shard keeps.
constexpr int kMostAhead = 60;

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

// Into all shards that have one of these, at once or at a time of Redis's clock; the latest of the
// later versions that some of them have.
Result<std::optional<uint64_t>> write_at(Redis& redis, std::string_view fleet,
                                         const std::vector<FleetBudget>& changed, uint64_t version,
                                         uint64_t at_ms) {
    std::map<unsigned, std::vector<FleetBudget>> shards;
    for (const FleetBudget& budget : changed) {
        const std::string_view name = budget.name;
        shards[lease_shard(name.substr(0, name.rfind('.')))].push_back(budget);
    }
    std::vector<redis::Command> commands;
    for (const auto& [number, budgets] : shards)
        commands.push_back(budget_command(budget_script(), LeaseKeys(fleet, number), version,
                                          std::chrono::milliseconds(static_cast<int64_t>(at_ms)),
                                          budgets));
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

Instant instant_of(uint64_t ms) {
    return Instant(std::chrono::seconds(static_cast<int64_t>(ms / 1000)));
}

// The next begin or end of a schedule.
std::optional<uint64_t> turn_after(const Policy& policy, uint64_t at_ms) {
    const auto turn = next_change(policy, instant_of(at_ms));
    return turn ? std::optional(1000 * static_cast<uint64_t>(turn->time_since_epoch().count()))
                : std::nullopt;
}

std::optional<uint64_t> earlier(std::optional<uint64_t> a, std::optional<uint64_t> b) {
    return a && b ? std::min(*a, *b) : a ? a : b;
}

std::optional<uint64_t> first_end(const std::vector<PolicyOverride>& overrides) {
    std::optional<uint64_t> first;
    for (const PolicyOverride& entry : overrides)
        first = earlier(first, entry.until_ms);
    return first;
}

std::vector<FleetBudget> without(std::vector<FleetBudget> budgets,
                                 const std::vector<FleetBudget>& others) {
    std::erase_if(budgets, [&](const FleetBudget& budget) {
        return std::ranges::find(others, budget) != others.end();
    });
    return budgets;
}

}  // namespace

Result<BudgetsWritten> write_budgets(Redis& redis, std::string_view fleet, const std::string& text,
                                     const std::vector<PolicyOverride>& overrides, uint64_t version,
                                     uint64_t now_ms) {
    const uint64_t horizon_ms = now_ms + static_cast<uint64_t>(kAhead.count());
    std::vector<PolicyOverride> left = overrides;
    std::vector<FleetBudget> before;
    std::optional<uint64_t> left_out;  // the first change that is not written
    uint64_t at_ms = now_ms;
    for (int written = 0;; ++written) {
        (void)drop_ended(left, at_ms);
        const auto policy = policy_of_any_host(text, instant_of(at_ms), left);
        if (!policy)
            return policy.error();
        std::vector<FleetBudget> budgets = fleet_budgets(*policy);
        const auto later =
            write_at(redis, fleet, without(budgets, before), version, written == 0 ? 0 : at_ms);
        if (!later)
            return later.error();
        if (*later)
            return BudgetsWritten{*later, 0};
        before = std::move(budgets);
        auto turn = turn_after(*policy, at_ms);
        if (turn && *turn > horizon_ms) {
            left_out = earlier(left_out, turn);
            turn.reset();
        }
        const auto next = earlier(turn, first_end(left));
        if (next && written < kMostAhead) {
            at_ms = *next;
            continue;
        }
        left_out = earlier(left_out, next);
        // Half of the time is left to try.
        return BudgetsWritten{std::nullopt, left_out ? now_ms + (*left_out - now_ms) / 2 : 0};
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
        const auto written = write_budgets(redis, fleet, current->text, state->overrides,
                                           budgets_version(stamp_ms), state->now_ms);
        if (!written)
            return written.error();
        const std::optional<uint64_t>& later = written->later;
        // Those of a change that came meanwhile, or of a policy that Redis has lost.
        const auto reply =
            redis.run(later ? policy_owe_command(keys, budgets_stamp(*later))
                            : policy_written_command(keys, stamp_ms, written->again_ms));
        if (!reply)
            return reply.error();
        if (const Status fine = reply->check(); !fine)
            return fine;
        if (later)
            continue;
        const auto is_written = reply->as_integer();
        if (is_written && *is_written == 1)
            return {};
    }
    return failed("the fleet's policy was changed each time that its budgets were written",
                  "a host writes them within seconds");
}

}  // namespace sluice
