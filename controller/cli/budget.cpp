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

Result<Answer> run(const Session& session) {
    Answer answer;
    if (session.fleet) {
        answer.data = budget_json(session.fleet());
        return answer;
    }
    const auto standing = left_in_gate(session);
    if (!standing)
        return standing.error();
    if (standing->is_shared)
        answer.warnings.emplace_back(
            "sluiced does not answer, so nothing is leased: shares end, and what the policy says "
            "for a host without Redis holds");
    answer.data = budget_json(*standing);
    return answer;
}

void show(const Json& data, Screen& screen) {
    if (data["budgets"].empty()) {
        screen.line("No budget is shared: [redis] in the configuration shares them.");
        return;
    }
    std::vector<std::pair<std::string_view, Cell>> fields = {
        {"fleet", data["fleet"].get<std::string>()},
        {"redis",
         {data["redis"]["state"].get<std::string>(),
          data["redis"]["state"] == "up" ? Style::good : Style::bad}}};
    if (!data["redis"]["reason"].is_null())
        fields.push_back({"", data["redis"]["reason"].get<std::string>()});
    if (!data["hosts"].is_null())
        fields.push_back({"hosts", format_count(data["hosts"].get<uint64_t>()) +
                                       (data["learning"] ? ", learning what they hold" : "")});
    screen.fields(fields);
    screen.line();
    std::vector<Row> rows;
    for (const Json& budget : data["budgets"]) {
        const bool leased = budget["leased"];
        rows.push_back(
            {{budget["rule"].get<std::string>()},
             {format_short(budget["limit_per_s"].get<double>())},
             {budget["demand_per_s"].is_null()
                  ? "-"
                  : format_short(budget["demand_per_s"].get<double>())},
             {budget["share_per_s"].is_null() ? "no limit"
                                              : format_short(budget["share_per_s"].get<double>())},
             {leased ? "leased, ends " + format_expiry(budget["left_s"]) : "without Redis",
              leased ? Style::plain : Style::careful}});
    }
    screen.table({{"BUDGET"},
                  {"FLEET A SECOND", true},
                  {"DEMAND HERE", true},
                  {"SHARE HERE", true},
                  {"BECAUSE"}},
                 rows);
}

}  // namespace

void add_budget(CommandLine& line) {
    line.handle(line.add("budget", "Budgets that the fleet shares, and this host's part"), run,
                show);
}

}  // namespace sluice::cli
