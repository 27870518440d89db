#include "cli/rl_json.h"

#include <algorithm>

#include "cli/format.h"
#include "gate/source_rules.h"
#include "policy/rl_reader.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kNotVisible = "requests are not visible in TLS";

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json numbers_json(const RlNumbers& numbers) {
    Json json = Json::object();
    for (const RlField& field : kRlFields)
        if (const auto& number = numbers.*field.member)
            json[std::string(field.name)] = *number;
    return json;
}

Json route_json(const RlRoute& route) {
    Json asns = Json::object();
    for (const auto& [asn, numbers] : route.asns)
        asns[std::to_string(asn)] = numbers_json(numbers);
    return {{"route", route.route},
            {"policy", route.base ? numbers_json(*route.base) : Json()},
            {"asn", asns},
            {"ends_in_s", seconds(route.ends_in)},
            {"error", text_or_null(route.error)}};
}

// "10 requests/60 s per user → here: 20 new connections/60 s per address; …"
std::string both_sides(const RlService& service) {
    if (!service.ceiling)
        return service.there.empty() ? "" : service.there + " → here: no limit of its own";
    return service.there + " → here: " + ceiling_text(*service.ceiling) + "; " +
           std::string(kNotVisible);
}

std::vector<std::string> rules_in_force(const RlReport& report, const std::string& service) {
    std::vector<std::string> rules;
    for (const RuleId& rule : report.in_force)
        if (rule.service == service)
            rules.push_back(format_rule_id(rule));
    return rules;
}

size_t errors_in(const Json& services) {
    size_t errors = 0;
    for (const Json& service : services)
        for (const Json& route : service["routes"])
            errors += route["error"].is_null() ? 0 : 1;
    return errors;
}

}  // namespace

Json rl_services_json(const RlReport& report) {
    Json list = Json::array();
    for (const RlService& service : report.standing.services) {
        Json routes = Json::array();
        for (const RlRoute& route : service.routes)
            routes.push_back(route_json(route));
        Json notes = service.notes;
        const auto rules = rules_in_force(report, service.service);
        const bool observes = !report.standing.users_per_source;
        if (service.ceiling && observes && !rules.empty())
            notes.push_back(
                "only observed until [rl] users_per_source says how many users a "
                "source has");
        if (service.ceiling && rules.size() < 2)
            notes.push_back(observes ? "the policy's own limits stand until [rl] users_per_source "
                                       "says how many users a source has"
                                     : "what an operator overrides stays as he says");
        for (const std::string& why : report.left_out)
            if (why.starts_with(service.service + ": "))
                notes.push_back("it does not fit the policy: " + why);
        list.push_back({{"service", service.service},
                        {"routes", routes},
                        {"there", text_or_null(service.there)},
                        {"here", service.ceiling ? Json(ceiling_text(*service.ceiling)) : Json()},
                        {"text", both_sides(service)},
                        {"rules", rules},
                        {"observed", observes},
                        {"notes", notes}});
    }
    return list;
}

void show_rl_services(const Json& services, Screen& screen) {
    for (const Json& service : services) {
        screen.line();
        const auto text = service["text"].get<std::string>();
        screen.line(service["service"].get<std::string>() +
                    ", rl: " + (text.empty() ? "nothing that could be taken" : text));
        for (const Json& route : service["routes"]) {
            if (!route["ends_in_s"].is_null())
                screen.item(route["route"].get<std::string>() + " is temporary, and ends " +
                            format_expiry(route["ends_in_s"]));
            if (!route["error"].is_null())
                screen.item("what was good last stays: " + route["error"].get<std::string>());
        }
        for (const Json& note : service["notes"])
            screen.item(note.get<std::string>());
    }
}

Json rl_json(const RlReport& report, std::vector<std::string>& warnings) {
    const RlStanding& standing = report.standing;
    if (!standing.is_followed)
        return {};
    Json services = rl_services_json(report);
    for (const Json& service : services)
        for (const Json& route : service["routes"])
            if (!route["error"].is_null())
                warnings.push_back("what was good last stays: " +
                                   route["error"].get<std::string>());
    if (!standing.whitelist_error.empty())
        warnings.push_back("the whitelist of rl: stays as it was: " + standing.whitelist_error);
    if (!standing.unsaved.empty())
        warnings.push_back("what is known of rl: would not outlive a restart: " + standing.unsaved);
    for (const std::string& why : report.left_out)
        warnings.push_back("limits of rl: do not fit the policy: " + why);
    std::vector<std::string> rules;
    for (const RuleId& rule : report.in_force)
        rules.push_back(format_rule_id(rule));
    std::optional<std::chrono::nanoseconds> synced;
    if (standing.synced)
        synced = std::chrono::steady_clock::now() - *standing.synced;
    const RlWhitelist& whitelist = standing.whitelist;
    return {
        {"error", text_or_null(standing.error)},
        {"synced_s_ago", seconds(synced)},
        {"users_per_source", standing.users_per_source ? Json(*standing.users_per_source) : Json()},
        {"rules", rules},
        {"services", services},
        {"whitelist",
         {{"allowed", whitelist.addresses.size()},
          {"skipped", whitelist.skipped},
          {"refused", whitelist.refused},
          {"first_refused", text_or_null(whitelist.first_refused)},
          {"error", text_or_null(standing.whitelist_error)}}}};
}

std::string rl_text(const Json& rl) {
    std::string text = plural(rl["services"].size(), "service") + " with a policy there, " +
                       plural(rl["rules"].size(), "limit") + " in force";
    if (rl["users_per_source"].is_null())
        text += " to observe";
    if (const size_t errors = errors_in(rl["services"]); errors != 0)
        text += ", " + plural(errors, "route") + " not taken";
    const Json& whitelist = rl["whitelist"];
    text += "; whitelist: " + format_count(whitelist["allowed"].get<uint64_t>()) + " allowed";
    if (whitelist["skipped"] != 0)
        text += ", " + format_count(whitelist["skipped"].get<uint64_t>()) + " users or devices";
    if (whitelist["refused"] != 0)
        text += ", " + format_count(whitelist["refused"].get<uint64_t>()) + " that make no sense";
    if (!rl["error"].is_null())
        text += "; not heard: " + rl["error"].get<std::string>();
    return text;
}

void name_rl(const RlReport& report, Why& why) {
    const auto rule = std::ranges::find_if(
        report.in_force, [&](const RuleId& id) { return format_rule_id(id) == why.rule; });
    if (rule == report.in_force.end())
        return;
    const auto service =
        std::ranges::find(report.standing.services, rule->service, &RlService::service);
    why.actor = kRlList;
    if (service != report.standing.services.end())
        why.notes.push_back("the limit is what rl: means here: " + both_sides(*service));
}

}  // namespace sluice::cli
