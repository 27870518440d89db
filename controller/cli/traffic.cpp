#include "cli/traffic.h"

#include <algorithm>
#include <map>
#include <thread>

#include "cli/format.h"
#include "cli/schedule_view.h"
#include "cli/through_daemon.h"
#include "gate/attachment.h"
#include "gate/budgets.h"
#include "gate/counters.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "gate/switches.h"
#include "gate/tables.h"
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

Json packets_json(const Counters& counters) {
    std::map<CounterKind, uint64_t> sums;
    Json by_verdict = Json::object();
    for (uint32_t index = 0; index < counters.size(); ++index) {
        sums[counter_kind(index)] += counters[index].packets;
        if (counters[index].packets != 0)
            by_verdict[std::string(counter_name(index))] = counters[index].packets;
    }
    return {{"passed", sums[CounterKind::passed]},
            {"dropped", sums[CounterKind::dropped]},
            {"would_drop", sums[CounterKind::would_drop]},
            {"by_verdict", by_verdict}};
}

// What got through, observe mode's mercy included.
uint64_t passed_bytes(const Counters& counters) {
    uint64_t bytes = 0;
    for (uint32_t index = 0; index < counters.size(); ++index)
        if (counter_kind(index) != CounterKind::dropped)
            bytes += counters[index].bytes;
    return bytes;
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
        // The gate keeps no sum of what single sources ask for.
        if (limit.rule.scope == Scope::budget)
            limits.back()["asked"] = budget_demand(tables, id, limit.rule.dimension);
    }
    const Counters counters = read_counters(tables, {.service = id});
    return Json({{"name", service.name},
                 {"id", id},
                 {"match", matches},
                 {"mode", mode_name(*mode)},
                 {"limits", limits},
                 {"schedules", schedules_json(service, wall_now())},
                 {"packets", packets_json(counters)},
                 {"passed_bytes", passed_bytes(counters)}});
}

// Where nothing is dropped whatever the modes say, and what to do.
Result<Json> idle_attachments(const Tables& tables) {
    const auto all = attachments(tables);
    if (!all)
        return all.error();
    Json reasons = Json::array();
    for (const Attachment& attachment : *all)
        if (auto reason = why_idle(attachment); !reason.empty())
            reasons.push_back(std::move(reason));
    return reasons;
}

double rate(const Json& now, const Json& before, const char* key, double seconds) {
    const auto count = [key](const Json& json) { return json.value(key, uint64_t{0}); };
    // A gate that was made anew in between begins at nothing again.
    return count(now) > count(before) ? static_cast<double>(count(now) - count(before)) / seconds
                                      : 0;
}

// The element of `list` with the same value under `key`; an empty object where there is none.
Json counterpart(const Json& list, const char* key, const Json& value) {
    for (const Json& item : list)
        if (item[key] == value)
            return item;
    return Json::object();
}

}  // namespace

Result<Json> read_traffic(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto policy = current_policy(tables);
    if (!policy)
        return policy.error();
    const auto mode = mode_of(tables, WholeGate{});
    if (!mode)
        return mode.error();
    std::vector<Service>& services = policy->policy.services;
    const auto is_other = [](const Service& service) { return service.name == "other"; };
    if (std::none_of(services.begin(), services.end(), is_other))
        services.emplace_back().name = "other";
    const ServiceIds ids = service_ids(tables);
    Json list = Json::array();
    for (const Service& service : services) {
        const auto id = ids.find(service.name);
        if (id == ids.end())
            continue;
        auto json = service_json(tables, service, id->second);
        if (!json)
            return json.error();
        list.push_back(*std::move(json));
    }
    auto idle = idle_attachments(tables);
    if (!idle)
        return idle.error();
    return Json({{"time_ns", gate_now_ns(tables)},
                 {"mode", mode_name(*mode)},
                 {"policy_version", policy->version},
                 {"idle", *std::move(idle)},
                 {"services", list}});
}

Result<Json> ask_traffic(const Session& session) {
    if (auto answer = ask_daemon({"services"}, session)) {
        if (!*answer)
            return answer->error();
        return (*answer)->data;
    }
    return read_traffic(session);
}

void add_rates(Json& now, const Json& before) {
    const double seconds =
        static_cast<double>(now["time_ns"].get<uint64_t>() - before["time_ns"].get<uint64_t>()) /
        1e9;
    if (seconds <= 0)
        return;
    for (Json& service : now["services"]) {
        const Json last = counterpart(before["services"], "name", service["name"]);
        const Json packets = last.value("packets", Json::object());
        service["per_s"] = {
            {"passed", rate(service["packets"], packets, "passed", seconds)},
            {"dropped", rate(service["packets"], packets, "dropped", seconds)},
            {"would_drop", rate(service["packets"], packets, "would_drop", seconds)},
            {"passed_bytes", rate(service, last, "passed_bytes", seconds)}};
        for (Json& limit : service["limits"])
            if (limit.contains("asked"))
                limit["asked_per_s"] = rate(
                    limit, counterpart(last.value("limits", Json::array()), "rule", limit["rule"]),
                    "asked", seconds);
    }
}

Result<Json> measure_traffic(const Session& session) {
    const auto before = ask_traffic(session);
    if (!before)
        return before.error();
    std::this_thread::sleep_for(kMeasured);
    auto now = ask_traffic(session);
    if (now)
        add_rates(*now, *before);
    return now;
}

}  // namespace sluice::cli
