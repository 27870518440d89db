#include "cli/fleet_json.h"

#include <algorithm>
#include <chrono>

#include "gate/budgets.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

using std::chrono::steady_clock;

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json drill_json(const FleetStanding& standing) {
    return standing.drill_left.count() == 0 ? Json() : seconds(standing.drill_left);
}

Json members_json(const FleetView& view, const std::string& here) {
    Json members = Json::array();
    for (const HostView& host : view.hosts)
        members.push_back(
            {{"host", host.last.id},
             {"name", host.last.name},
             {"version", host.last.version},
             {"policy_version", host.last.policy_version},
             {"fleet_version",
              host.last.fleet_version == 0 ? Json() : Json(host.last.fleet_version)},
             {"mode", host.last.mode},
             {"lag_ms", std::chrono::duration<double, std::milli>(host.last.lag).count()},
             {"age_s", seconds(host.age)},
             {"away", host.is_away()},
             {"here", host.last.id == here}});
    return members;
}

// The one that the heartbeats know, else the number that it goes by.
std::string name_of(const FleetView& view, const std::string& id) {
    const auto host =
        std::ranges::find(view.hosts, id, [](const HostView& known) { return known.last.id; });
    return host == view.hosts.end() || host->last.name.empty() ? id.substr(0, 8) : host->last.name;
}

Json leases_json(const BudgetView& budget, const FleetView& view, const std::string& here) {
    Json leases = Json::array();
    for (const LeaseView& lease : budget.leases)
        leases.push_back(
            {{"host", lease.host},
             {"name", name_of(view, lease.host)},
             {"enforces", lease.pool == LeasePool::enforce},
             {"demand_per_s", lease.demand},
             {"granted_per_s", lease.is_tokens ? Json() : Json(lease.granted)},
             {"granted_units", lease.is_tokens ? Json(lease.granted) : Json()},
             {"share", lease.is_tokens ? Json() : Json(lease.granted / budget.per_second)},
             {"age_s", seconds(lease.age)},
             {"left_s", seconds(lease.left)},
             {"here", lease.host == here}});
    return leases;
}

// Of one budget, beside what this host has of it.
void add_fleet(Json& json, const std::string& name, const FleetView* view,
               const std::string& here) {
    json["hosts"] = nullptr;
    json["enforced_on"] = nullptr;
    json["leased_by"] = nullptr;
    if (view == nullptr)
        return;
    const auto budget = std::ranges::find(view->budgets, name, &BudgetView::name);
    if (budget == view->budgets.end())
        return;
    json["hosts"] = leases_json(*budget, *view, here);
    json["enforced_on"] = std::ranges::count(budget->leases, LeasePool::enforce, &LeaseView::pool);
    json["leased_by"] = budget->leases.size();
}

Json sources_json(const SourcesStanding& sources) {
    Json heaviest = Json::array();
    for (const SharedSource& shared : sources.heaviest)
        heaviest.push_back(
            {{"source", shared.source.to_string()},
             {"rule", format_rule_id({shared.service, {Scope::per_source, shared.dimension}})},
             {"part", shared.part},
             {"limits_in_fleet", shared.limits},
             {"hosts", shared.hosts}});
    return {{"watched", sources.watched},
            {"told", sources.told},
            {"shared", sources.shared},
            {"unplaced", sources.unplaced},
            {"untold", sources.untold},
            {"lost", sources.lost},
            {"error", text_or_null(sources.error)},
            {"heaviest", std::move(heaviest)}};
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
    const Json drill = drill_json(standing);
    const bool answered = health.last_ok != steady_clock::time_point{};
    const auto ago =
        std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - health.last_ok);
    const bool up = standing.is_shared ? standing.is_up() : answered && error.empty();
    const std::string& reason = error.empty() ? health.reason : error;
    return {{"state", up ? "up" : "down"},
            {"last_sync_ms", answered ? Json(ago.count()) : Json()},
            {"reason", up ? Json() : text_or_null(reason)},
            {"server", text_or_null(health.server)},
            {"breaker", redis::breaker_state_name(health.state)},
            {"round_trip_ms",
             answered ? Json(std::chrono::duration<double, std::milli>(health.round_trip).count())
                      : Json()},
            {"drill_left_s", drill}};
}

std::string drill_text(const Json& left_s) {
    return "a drill of the loss of Redis is on, and ends " + format_expiry(left_s);
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

Json budget_json(const FleetStanding& standing, const FleetView* view) {
    Json budgets = Json::array();
    for (const BudgetStanding& budget : standing.budgets) {
        budgets.push_back(
            {{"service", budget.service},
             {"dimension", dimension_name(budget.dimension)},
             {"rule", format_rule_id({budget.service, {Scope::budget, budget.dimension}})},
             {"limit_per_s", budget.limit},
             {"demand_per_s", budget.demand ? Json(*budget.demand) : Json()},
             {"share_per_s", budget.unlimited ? Json() : Json(budget.share)},
             {"leased", budget.is_leased},
             {"left_s", budget.is_leased ? Json(seconds(budget.left)) : Json()}});
        add_fleet(budgets.back(), budget_name(budget.service, budget.dimension), view,
                  standing.host);
    }
    return {{"fleet", standing.fleet},
            {"host", text_or_null(standing.host)},
            {"redis", redis_json(standing)},
            {"hosts", standing.hosts == 0 ? Json() : Json(standing.hosts)},
            {"learning", standing.is_learning},
            {"lost", standing.lost},
            {"duplicates", standing.duplicates},
            {"budgets", budgets},
            {"sources", sources_json(standing.sources)},
            {"members", view != nullptr ? members_json(*view, standing.host) : Json()},
            {"members_in_all", view != nullptr ? Json(view->hosts_in_all) : Json()},
            {"cut", view != nullptr && view->is_cut}};
}

}  // namespace sluice::cli
