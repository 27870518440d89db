// sluicectl services: what the policy says of each, and what became of its packets.
#include <map>

#include "cli/command_line.h"
#include "cli/format.h"
#include "gate/counters.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "gate/switches.h"
#include "policy/match.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

std::string rate_text(Rate rate, Dimension dimension) {
    return dimension == Dimension::bytes ? format_byte_rate(rate) : format_rate(rate);
}

struct LimitText {
    Dimension dimension;

    std::string operator()(const TokenBucket& bucket) const {
        return rate_text(bucket.rate, dimension) + ", burst " +
               (dimension == Dimension::bytes ? format_size(bucket.burst)
                                              : format_count(bucket.burst));
    }
    std::string operator()(const StrictWindow& window) const {
        return format_count(window.limit) + " in " + format_duration(window.window);
    }
};

struct Written {
    Rule rule;
    std::string text;
};

std::vector<Written> limits_of(const Service& service) {
    std::vector<Written> all;
    for (const auto& [dimension, limit] : service.per_source)
        all.push_back({{Scope::per_source, dimension}, std::visit(LimitText{dimension}, limit)});
    for (const auto& [dimension, limit] : service.per_prefix)
        all.push_back({{Scope::per_prefix, dimension}, std::visit(LimitText{dimension}, limit)});
    for (const auto& [dimension, bucket] : service.budget)
        all.push_back({{Scope::budget, dimension}, LimitText{dimension}(bucket)});
    return all;
}

Json packets_json(const Tables& tables, uint32_t id) {
    const Counters counters = read_counters(tables, {.service = id});
    std::map<CounterKind, uint64_t> sums;
    Json by_verdict = Json::object();
    for (uint32_t index = 0; index < counters.size(); ++index) {
        sums[counter_kind(index)] += counters[index].packets;
        if (counters[index].packets != 0)
            by_verdict[std::string(counter_name(index))] = counters[index].packets;
    }
    // A packet that observe mode let through has passed, too.
    return {{"passed", sums[CounterKind::passed]},
            {"dropped", sums[CounterKind::dropped]},
            {"would_drop", sums[CounterKind::would_drop]},
            {"by_verdict", by_verdict}};
}

Result<Json> service_json(const Tables& tables, const Service& service, uint32_t id) {
    const auto mode = effective_mode(tables, OneService{service.name});
    if (!mode)
        return mode.error();
    Json matches = Json::array();
    for (const Match& match : service.matches)
        matches.push_back(format_match(match));
    Json limits = Json::array();
    for (const Written& limit : limits_of(service)) {
        const RuleId rule{service.name, limit.rule};
        const auto in_force = effective_mode(tables, rule);
        if (!in_force)
            return in_force.error();
        limits.push_back({{"rule", format_rule_id(rule)},
                          {"limit", limit.text},
                          {"mode", mode_name(*in_force)}});
    }
    return Json({{"name", service.name},
                 {"id", id},
                 {"match", matches},
                 {"mode", mode_name(*mode)},
                 {"limits", limits},
                 {"packets", packets_json(tables, id)}});
}

Result<Answer> run(const Session& session) {
    const auto tables = session.open();
    if (!tables)
        return tables.error();
    auto policy = current_policy(*tables);
    if (!policy)
        return policy.error();
    std::vector<Service>& services = policy->policy.services;
    const auto is_other = [](const Service& service) { return service.name == "other"; };
    if (std::none_of(services.begin(), services.end(), is_other))
        services.emplace_back().name = "other";
    const ServiceIds ids = service_ids(*tables);
    Json list = Json::array();
    for (const Service& service : services) {
        const auto id = ids.find(service.name);
        if (id == ids.end())
            continue;
        auto json = service_json(*tables, service, id->second);
        if (!json)
            return json.error();
        list.push_back(*std::move(json));
    }
    Answer answer;
    answer.data = {{"policy_version", policy->version}, {"services", list}};
    return answer;
}

std::string joined(const Json& words) {
    std::string text;
    for (const Json& word : words)
        text += (text.empty() ? "" : ", ") + word.get<std::string>();
    return text;
}

void show(const Json& data, Screen& screen) {
    std::vector<Row> rows;
    for (const Json& service : data["services"]) {
        const auto mode = service["mode"].get<std::string>();
        const Json& packets = service["packets"];
        const auto count = [&](const char* key) {
            return format_count(packets[key].get<uint64_t>());
        };
        rows.push_back({{service["name"].get<std::string>()},
                        {mode, style_of_mode(mode)},
                        {count("passed")},
                        {count("would_drop")},
                        {count("dropped")},
                        {service["match"].empty() ? "the rest" : joined(service["match"])}});
    }
    screen.table({{"SERVICE"},
                  {"MODE"},
                  {"PASSED", true},
                  {"WOULD DROP", true},
                  {"DROPPED", true},
                  {"MATCH"}},
                 rows);
    rows.clear();
    for (const Json& service : data["services"])
        for (const Json& limit : service["limits"]) {
            const auto mode = limit["mode"].get<std::string>();
            rows.push_back({{limit["rule"].get<std::string>()},
                            {limit["limit"].get<std::string>()},
                            {mode, style_of_mode(mode)}});
        }
    screen.line();
    if (rows.empty())
        screen.line("No limits.");
    else
        screen.table({{"RULE"}, {"LIMIT"}, {"MODE"}}, rows);
}

}  // namespace

void add_services(CommandLine& line) {
    line.handle(line.add("services", "Services, their limits, and what became of their packets"),
                run, show);
}

}  // namespace sluice::cli
