// sluicectl budget: what the fleet shares, and what this host has of it.
#include "cli/command_line.h"
#include "cli/fleet_json.h"
#include "cli/format.h"
#include "fleet/budget_sync.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

// Without the daemon nobody leases, but what it left may still hold.
Result<FleetStanding> left_in_gate(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const auto policy = current_policy(tables);
    if (!policy)
        return policy.error();
    FleetStanding standing;
    standing.fleet = policy->policy.fleet.name;
    for (const Service& service : policy->policy.services) {
        const auto id = find_service_id(tables, service.name).value_or(SLUICE_SERVICE_OTHER);
        for (const auto& [dimension, bucket] : service.budget)
            if (service.shared)
                standing.budgets.push_back(standing_of_share(tables, service, id, dimension));
    }
    standing.is_shared = !standing.budgets.empty();
    return standing;
}

// One that comes with another try: nobody in the daemon waits for Redis.
Error not_yet() {
    Error error = make_error(ErrorCode::unreachable, "the fleet is being read from Redis",
                             "try again, with a longer --timeout");
    error.busy = true;
    return error;
}

Result<Answer> seen_by_daemon(const Session& session) {
    const FleetStanding standing = session.fleet();
    Answer answer;
    if (!standing.is_shared) {
        answer.data = budget_json(standing, nullptr);
        return answer;
    }
    const auto view = session.fleet_view();
    if (!view)
        return not_yet();
    if (!*view)
        answer.warnings.push_back("the other hosts are not shown: " + view->error().message);
    if (!standing.unlisted.empty())
        answer.warnings.push_back("this host is not shown to others: " + standing.unlisted);
    answer.data = budget_json(standing, *view ? &**view : nullptr);
    return answer;
}

Result<Answer> run(const Session& session) {
    if (session.fleet)
        return seen_by_daemon(session);
    const auto standing = left_in_gate(session);
    if (!standing)
        return standing.error();
    Answer answer;
    if (standing->is_shared)
        answer.warnings.emplace_back(
            "sluiced does not answer, so nothing is leased: shares end, and what the policy says "
            "for a host without Redis holds");
    answer.data = budget_json(*standing, nullptr);
    answer.data["sources"] = nullptr;  // the daemon watches them
    return answer;
}

std::string rate_or_dash(const Json& per_second) {
    return per_second.is_null() ? "-" : format_short(per_second.get<double>());
}

void show_redis(const Json& data, Screen& screen) {
    const Json& redis = data["redis"];
    const bool up = redis["state"] == "up";
    std::string state = redis["state"].get<std::string>();
    if (up)
        state += ", answers in " + format_short(redis["round_trip_ms"].get<double>()) + " ms";
    std::vector<std::pair<std::string_view, Cell>> fields = {
        {"fleet", data["fleet"].get<std::string>()},
        {"redis", {state, up ? Style::good : Style::bad}}};
    const Json drill = redis.value("drill_left_s", Json());
    if (!drill.is_null())
        fields.push_back({"", {drill_text(drill), Style::careful}});
    else if (!redis["reason"].is_null())
        fields.push_back({"", redis["reason"].get<std::string>()});
    if (!data["hosts"].is_null())
        fields.push_back({"hosts", format_count(data["hosts"].get<uint64_t>()) +
                                       (data["learning"] ? ", learning what they hold" : "")});
    screen.fields(fields);
}

void show_here(const Json& budgets, Screen& screen) {
    std::vector<Row> rows;
    for (const Json& budget : budgets) {
        const bool leased = budget["leased"];
        rows.push_back(
            {{budget["rule"].get<std::string>()},
             {format_short(budget["limit_per_s"].get<double>())},
             {rate_or_dash(budget["demand_per_s"])},
             {budget["share_per_s"].is_null() ? "no limit" : rate_or_dash(budget["share_per_s"])},
             {leased ? "leased, ends " + format_expiry(budget["left_s"]) : "without Redis",
              leased ? Style::plain : Style::careful}});
    }
    screen.line();
    screen.table({{"BUDGET"},
                  {"FLEET A SECOND", true},
                  {"DEMAND HERE", true},
                  {"SHARE HERE", true},
                  {"BECAUSE"}},
                 rows);
}

std::string granted(const Json& lease) {
    return lease["granted_per_s"].is_null() ? plural(lease["granted_units"].get<uint64_t>(), "unit")
                                            : format_short(lease["granted_per_s"].get<double>());
}

std::string percent(const Json& part) {
    constexpr double kPercent = 100;
    return part.is_null() ? "-" : format_short(part.get<double>() * kPercent) + " %";
}

std::string with_mark(const Json& host) {
    return host["name"].get<std::string>() + (host["here"] ? " (here)" : "");
}

void show_leases(const Json& budget, Screen& screen) {
    if (budget["hosts"].is_null())
        return;
    screen.line();
    screen.line(budget["rule"].get<std::string>() + ", enforced on " +
                    budget["enforced_on"].dump() + " of " + budget["leased_by"].dump(),
                Style::strong);
    std::vector<Row> rows;
    for (const Json& lease : budget["hosts"])
        rows.push_back({{with_mark(lease)},
                        {rate_or_dash(lease["demand_per_s"])},
                        {granted(lease)},
                        {percent(lease["share"])},
                        {format_short(lease["age_s"].get<double>()) + " s ago"},
                        {lease["enforces"] ? "" : "observes", Style::careful}});
    screen.table(
        {{"HOST"}, {"DEMAND", true}, {"GRANTED", true}, {"SHARE", true}, {"ASKED", true}, {""}},
        rows);
}

// Limits of sources that are heavy on several hosts: each lets through its part.
void show_sources(const Json& sources, Screen& screen) {
    if (sources.is_null() || sources["shared"] == 0)
        return;
    std::vector<Row> rows;
    for (const Json& shared : sources["heaviest"])
        rows.push_back({{shared["source"].get<std::string>()},
                        {shared["rule"].get<std::string>()},
                        {percent(shared["part"])},
                        {format_short(shared["limits_in_fleet"].get<double>()) + " limits"},
                        {shared["hosts"].dump()}});
    screen.line();
    screen.table(
        {{"SOURCE"}, {"LIMIT"}, {"PART HERE", true}, {"FLEET SEES", true}, {"HOSTS", true}}, rows);
    const auto all = sources["shared"].get<uint64_t>();
    if (all > rows.size())
        screen.line("… and " + plural(all - rows.size(), "limit") + " more", Style::dim);
}

void show_members(const Json& data, Screen& screen) {
    if (data["members"].is_null())
        return;
    std::vector<Row> rows;
    for (const Json& host : data["members"]) {
        const bool away = host["away"];
        const auto mode = host["mode"].get<std::string>();
        rows.push_back(
            {{with_mark(host)},
             {host["version"].get<std::string>()},
             {host["fleet_version"].is_null() ? std::string("own")
                                              : "fleet's " + host["fleet_version"].dump()},
             {mode, style_of_mode(mode)},
             {format_short(host["lag_ms"].get<double>()) + " ms"},
             {format_span(std::chrono::nanoseconds(
                  static_cast<int64_t>(host["age_s"].get<double>() * 1e9))) +
                  " ago" + (away ? ", away" : ""),
              away ? Style::bad : Style::plain}});
    }
    screen.line();
    screen.table({{"HOST"}, {"VERSION"}, {"POLICY"}, {"MODE"}, {"LAG", true}, {"HEARD OF"}}, rows);
    const auto in_all = data["members_in_all"].get<uint64_t>();
    if (in_all > rows.size())
        screen.line("… and " + plural(in_all - rows.size(), "host") + " more", Style::dim);
}

void show(const Json& data, Screen& screen) {
    if (data["budgets"].empty()) {
        screen.line("No budget is shared: [redis] in the configuration shares them.");
        show_sources(data["sources"], screen);
        return;
    }
    show_redis(data, screen);
    show_here(data["budgets"], screen);
    for (const Json& budget : data["budgets"])
        show_leases(budget, screen);
    show_sources(data["sources"], screen);
    if (data["cut"])
        screen.line("There are more leases than are shown.", Style::dim);
    show_members(data, screen);
}

}  // namespace

void add_budget(CommandLine& line) {
    line.handle(line.add("budget", "Budgets that the fleet shares, and this host's part"), run,
                show);
}

}  // namespace sluice::cli
