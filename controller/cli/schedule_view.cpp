#include "cli/schedule_view.h"

#include "cli/format.h"
#include "policy/rule_id.h"
#include "policy/written_rate.h"

namespace sluice::cli {

namespace {

Json time_json(Instant instant) {
    return format_time(static_cast<uint64_t>(instant.time_since_epoch().count()));
}

Json seconds_json(Instant from, Instant to) {
    return std::max<int64_t>((to - from).count(), 0);
}

Json schedule_json(const Service& service, const Schedule& schedule, Instant now) {
    Json values = Json::object(), in_force = Json::object();
    for (const Rule rule : rules_of(schedule)) {
        values[format_rule(rule)] = written_rate(limit_of(schedule, rule), rule.dimension);
        if (schedule.in_force.contains(rule))
            in_force[format_rule(rule)] = values[format_rule(rule)];
    }
    const auto next = occurrence_from(schedule, now);
    return {{"service", service.name},
            {"name", schedule.name},
            {"values", values},
            {"when", format_times(schedule)},
            {"due", next && next->has(now)},
            {"in_force", in_force},
            {"begins_at", next ? time_json(next->begin) : Json()},
            {"begins_in_s", next ? seconds_json(now, next->begin) : Json()},
            {"ends_at", next ? time_json(next->end) : Json()},
            {"ends_in_s", next ? seconds_json(now, next->end) : Json()}};
}

}  // namespace

Json schedules_json(const Service& service, Instant now) {
    Json list = Json::array();
    for (const Schedule& schedule : service.schedules)
        list.push_back(schedule_json(service, schedule, now));
    return list;
}

std::string values_text(const Json& values) {
    std::string text;
    for (const auto& [rule, value] : values.items())
        text += (text.empty() ? "" : ", ") + rule + ' ' + value.get<std::string>();
    return text;
}

std::string next_text(const Json& schedule) {
    if (schedule["begins_at"].is_null())
        return "over";
    return schedule["due"] ? "ends " + format_expiry(schedule["ends_in_s"])
                           : "begins " + format_expiry(schedule["begins_in_s"]);
}

Cell schedule_state(const Json& schedule) {
    const bool due = schedule["due"];
    const Json& in_force = schedule["in_force"];
    const std::string next = next_text(schedule);
    if (due && in_force.size() == schedule["values"].size())
        return {"in force, " + next, Style::good};
    if (due)
        return {(in_force.empty() ? "due, but not in force, " : "in force in part, ") + next,
                Style::careful};
    if (!in_force.empty())
        return {"over, but still in force; " + next, Style::careful};
    return {next};
}

}  // namespace sluice::cli
