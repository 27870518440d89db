#include "cli/fleet_json.h"

#include <chrono>

#include "gate/budgets.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

using std::chrono::steady_clock;

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

}  // namespace

BudgetStanding standing_of_share(const Tables& tables, const Service& service, uint32_t service_id,
                                 Dimension dimension) {
    const Rate& rate = service.budget.at(dimension).rate;
    BudgetStanding standing;
    standing.service = service.name;
    standing.dimension = dimension;
    standing.limit =
        static_cast<double>(rate.count) / std::chrono::duration<double>(rate.per).count();
    const uint64_t now_ns = gate_now_ns(tables);
    const BudgetAllowance allowed = budget_allowance(tables, service_id, dimension, now_ns);
    standing.share = allowed.per_second;
    standing.unlimited = allowed.unlimited;
    const auto share = read_share(tables, service_id, dimension);
    standing.is_leased = share && now_ns < share->until_ns;
    if (standing.is_leased)
        standing.left = std::chrono::nanoseconds(static_cast<int64_t>(share->until_ns - now_ns));
    return standing;
}

Json redis_json(const FleetStanding& standing, const FeedStanding& feed) {
    if (!standing.is_shared && !feed.is_followed)
        return {{"state", "off"}, {"last_sync_ms", nullptr}, {"reason", nullptr}};
    const redis::Health& health = standing.is_shared ? standing.redis : feed.redis;
    const std::string& error = standing.is_shared ? standing.error : feed.error;
    const bool answered = health.last_ok != steady_clock::time_point{};
    const auto ago =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - health.last_ok);
    const bool up = answered && error.empty();
    const std::string& reason = error.empty() ? health.reason : error;
    return {{"state", up ? "up" : "down"},
            {"last_sync_ms", answered ? Json(ago.count()) : Json()},
            {"reason", up ? Json() : text_or_null(reason)},
            {"server", text_or_null(health.server)}};
}

Json feed_json(const FeedStanding& feed) {
    const auto ago = [&]() -> Json {
        if (!feed.synced)
            return {};
        return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() -
                                                                     *feed.synced)
            .count();
    };
    return {{"name", feed.fleet},
            {"rev", feed.rev},
            {"records", feed.records},
            {"switches", feed.switches},
            {"lost", feed.lost},
            {"refused", feed.refused},
            {"refusal", text_or_null(feed.refusal)},
            {"last_sync_ms", ago()},
            {"error", text_or_null(feed.error)}};
}

Json budget_json(const FleetStanding& standing) {
    Json budgets = Json::array();
    for (const BudgetStanding& budget : standing.budgets)
        budgets.push_back(
            {{"service", budget.service},
             {"dimension", dimension_name(budget.dimension)},
             {"rule", format_rule_id({budget.service, {Scope::budget, budget.dimension}})},
             {"limit_per_s", budget.limit},
             {"demand_per_s", budget.demand ? Json(*budget.demand) : Json()},
             {"share_per_s", budget.unlimited ? Json() : Json(budget.share)},
             {"leased", budget.is_leased},
             {"left_s", budget.is_leased ? Json(seconds(budget.left)) : Json()}});
    return {{"fleet", standing.fleet},
            {"host", text_or_null(standing.host)},
            {"redis", redis_json(standing)},
            {"hosts", standing.hosts == 0 ? Json() : Json(standing.hosts)},
            {"learning", standing.is_learning},
            {"lost", standing.lost},
            {"duplicates", standing.duplicates},
            {"budgets", budgets}};
}

}  // namespace sluice::cli
