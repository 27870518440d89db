// sluicectl status: what runs, in which mode, and what it has seen.
#include <algorithm>

#include "base/clocks.h"
#include "cli/command_line.h"
#include "cli/enforcement.h"
#include "cli/fleet_json.h"
#include "cli/format.h"
#include "cli/rl_json.h"
#include "cli/schedule_view.h"
#include "fleet/fleet_policy.h"
#include "gate/attachment.h"
#include "gate/counters.h"
#include "gate/policy_store.h"
#include "gate/rule_counter.h"
#include "gate/switches.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

Json attached_json(const std::vector<Attachment>& all, std::vector<std::string>& warnings) {
    Json list = Json::array();
    for (const Attachment& attachment : all) {
        list.push_back({{"iface", attachment.interface},
                        {"xdp_mode", attachment.native ? "native" : "generic"},
                        {"program_id", attachment.program_id},
                        {"dispatcher", attachment.dispatcher},
                        {"state", attachment.lost      ? "lost"
                                  : attachment.expired ? "not confirmed"
                                                       : "attached"}});
        for (const std::string& warning : attachment.warnings)
            warnings.push_back(attachment.interface + ": " + warning);
    }
    return list;
}

// The version of the fleet's policy that is in force, and the one that is to be.
Json fleet_version_json(const std::optional<FleetSource>& here, const PolicyStanding& standing,
                        std::vector<std::string>& warnings) {
    if (!here && standing.current == 0)
        return {};
    const auto number = [](uint64_t version) { return version == 0 ? Json() : Json(version); };
    if (standing.is_lost)
        warnings.push_back(
            "Redis has lost the fleet's policy; what is in force stays; to give it "
            "back: sluicectl policy push FILE");
    if (standing.is_older)
        warnings.push_back(
            "Redis has an older state of the fleet's policy than this host, as of a backup; what "
            "is in force stays; to give it back: sluicectl policy push FILE");
    if (!standing.unsaved.empty())
        warnings.push_back("the fleet's policy would not outlive a reboot: " + standing.unsaved);
    if (standing.refused != 0)
        warnings.push_back("version " + std::to_string(standing.refused) +
                           " of the fleet's policy is not in force here: " + standing.refusal);
    return {{"version", here ? Json(here->version) : Json()},
            {"canary", here && here->is_canary},
            {"current", number(standing.current)},
            {"refused", number(standing.refused)},
            {"refusal", standing.refused == 0 ? Json() : Json(standing.refusal)},
            {"lost", standing.is_lost},
            {"older", standing.is_older},
            {"unsaved", standing.unsaved.empty() ? Json() : Json(standing.unsaved)}};
}

// Other numbers for a time.
Json overrides_json(const Session& session) {
    Json list = Json::array();
    if (!session.overrides.list)
        return list;
    const uint64_t now_ms = boot_clock_ms();
    for (const PolicyOverride& entry : session.overrides.list()) {
        Json values = Json::object();
        for (const auto& [key, value] : entry.change.values)
            values[key] = value;
        list.push_back(
            {{"service", entry.change.service},
             {"values", values},
             {"left_s",
              entry.until_ms > now_ms ? static_cast<double>(entry.until_ms - now_ms) / 1000 : 0.0},
             {"origin", entry.by_fleet ? "fleet" : "operator"},
             {"actor", entry.actor},
             {"reason", entry.reason.empty() ? Json() : Json(entry.reason)}});
    }
    return list;
}

// What is in force of them.
Json schedules_in_force(const Policy& policy) {
    Json list = Json::array();
    for (const Service& service : policy.services)
        for (const Json& schedule : schedules_json(service, wall_now()))
            if (!schedule["in_force"].empty())
                list.push_back(schedule);
    return list;
}

Result<Json> policy_json(const Tables& tables, const Session& session,
                         std::vector<std::string>& warnings) {
    const auto standing = session.fleet_policy ? session.fleet_policy() : PolicyStanding();
    const auto policy = current_policy(tables);
    if (!policy && policy.error().code != ErrorCode::not_found)
        return policy.error();
    const auto here = policy ? parse_fleet_source(policy->source) : std::nullopt;
    return Json({{"version", policy ? policy->version : 0},
                 {"source", policy ? Json(policy->source) : Json()},
                 {"applied_at", policy ? Json(format_time(policy->applied_s)) : Json()},
                 {"fleet", fleet_version_json(here, standing, warnings)},
                 {"schedules", policy ? schedules_in_force(policy->policy) : Json::array()},
                 {"overrides", overrides_json(session)}});
}

bool is_mode_switch(const SwitchEntry& entry) {
    return entry.id != "policy" && !entry.id.starts_with("attach:");
}

Json switches_json(const std::vector<SwitchEntry>& entries, bool pending) {
    Json list = Json::array();
    for (const SwitchEntry& entry : entries) {
        if (pending ? !entry.waits_for_confirmation : !is_mode_switch(entry))
            continue;
        list.push_back({{"id", entry.id},
                        {"now", entry.now},
                        {"after", entry.after.empty() ? Json() : Json(entry.after)},
                        {"left_s", seconds(entry.left)},
                        {"origin", entry.by_fleet ? "fleet" : "operator"}});
    }
    return list;
}

Json fleet_json(const FeedStanding& feed, std::vector<std::string>& warnings) {
    if (!feed.is_followed)
        return {};
    if (feed.lost != 0)
        warnings.push_back("Redis has lost " + format_count(feed.lost) +
                           (feed.lost == 1 ? " entry" : " entries") +
                           " of the fleet that nobody took back; they hold here; if that is right: "
                           "sluicectl sync --accept-shrink");
    return feed_json(feed);
}

Json risk_json(const Session& session, std::vector<std::string>& warnings) {
    const auto standing = session.risk != nullptr ? session.risk->standing() : RiskStanding();
    if (!standing.is_on)
        return {};
    const std::string stop = standing.stop_reason();
    if (!stop.empty())
        warnings.push_back("risk bans have stopped: " + stop +
                           "; look at sluicectl risk, then: sluicectl risk release");
    return {{"stopped", stop.empty() ? Json() : Json(stop)}, {"scored", standing.scored}};
}

Json bans_json(const RuleCounts& counts, const Enforcement& enforcement,
               std::vector<std::string>& warnings) {
    if (counts.bans_enforced < counts.bans_wanted)
        warnings.push_back(plural(counts.bans_wanted - counts.bans_enforced, "ban") +
                           " wanted but not in force");
    if (counts.bans_enforced > counts.bans_wanted)
        warnings.push_back(plural(counts.bans_enforced - counts.bans_wanted, "ban") +
                           " in force that no list has any more");
    if (counts.bans_overruled != 0)
        warnings.push_back("without effect: " + plural(counts.bans_overruled, "ban") +
                           ", allowed or protected since; sluicectl bans shows which");
    const size_t enforced = enforcement.drops() ? counts.bans_enforced - counts.bans_overruled : 0;
    return Json(
        {{"wanted", counts.bans_wanted}, {"enforced", enforced}, {"by_hand", counts.bans_by_hand}});
}

Json tables_json(const RuleCounts& counts, std::vector<std::string>& warnings) {
    constexpr double kNearlyFull = 0.9;
    Json tables = Json::array();
    for (const TableUse& table : counts.tables) {
        tables.push_back(
            {{"name", table.name}, {"used", table.used}, {"capacity", table.capacity}});
        if (table.ratio() >= kNearlyFull)
            warnings.push_back("table " + std::string(table.name) +
                               (table.used < table.capacity ? " is nearly full: " : " is full: ") +
                               format_count(table.used) + " of " + format_count(table.capacity) +
                               "; without room new bans are refused, and those that stand hold");
    }
    return tables;
}

Json totals_json(const Tables& tables) {
    Json totals = Json::object();
    const Counters counters = read_counters(tables);
    for (uint32_t index = 0; index < counters.size(); ++index)
        totals[std::string(counter_name(index))] = counters[index].packets;
    return totals;
}

Result<Answer> run(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const auto mode = mode_of(tables, WholeGate{});
    if (!mode)
        return mode.error();
    const auto all = attachments(tables);
    if (!all)
        return all.error();
    Answer answer;
    const auto policy = policy_json(tables, session, answer.warnings);
    if (!policy)
        return policy.error();
    const Enforcement enforcement = enforcement_of(*mode, *all);
    RuleCounter own;
    const auto counts = (session.counter != nullptr ? *session.counter : own).of(tables);
    if (!counts)
        return counts.error();
    const auto entries = list_switches(tables);
    const FeedStanding feed = session.feed ? session.feed() : FeedStanding();
    const SourceUse use = source_use(tables);
    answer.data = {
        {"mode", mode_name(*mode)},
        {"attached", attached_json(*all, answer.warnings)},
        {"policy", *policy},
        {"overrides", switches_json(entries, false)},
        {"pending_confirm", switches_json(entries, true)},
        {"daemon", {{"running", false}, {"pid", nullptr}, {"uptime_s", nullptr}}},
        {"redis", redis_json(session.fleet ? session.fleet() : FleetStanding(), feed)},
        {"fleet", fleet_json(feed, answer.warnings)},
        {"rl", session.rl ? rl_json(session.rl(), answer.warnings) : Json()},
        {"risk", risk_json(session, answer.warnings)},
        {"sources",
         {{"capacity", use.capacity}, {"live", use.live}, {"evicted_live", use.evicted_live}}},
        {"bans", bans_json(*counts, enforcement, answer.warnings)},
        {"tables", tables_json(*counts, answer.warnings)},
        {"totals", totals_json(tables)}};
    answer.warnings.insert(answer.warnings.end(), enforcement.idle.begin(), enforcement.idle.end());
    if (is_cut_off(tables))
        answer.warnings.push_back(
            "a change is under way, or was cut off half-way; the next change of anything, or "
            "sluiced within a second, mends that");
    return answer;
}

std::string switch_text(const Json& entry) {
    std::string text = entry["id"].get<std::string>() + ' ' + entry["now"].get<std::string>();
    if (!entry["after"].is_null())
        text +=
            ", back to " + entry["after"].get<std::string>() + ' ' + format_expiry(entry["left_s"]);
    if (entry["origin"] == "fleet")
        text += ", by the fleet";
    return text;
}

Cell feed_cell(const Json& feed) {
    const Json& entries = feed["entries"];
    std::string text = feed["name"].get<std::string>() + ": " +
                       (entries.is_null() ? std::string("not read yet")
                                          : plural(entries.get<uint64_t>(), "entry"));
    if (!feed["age_s"].is_null())
        text += ", right " + format_seconds(feed["age_s"].get<double>()) + " ago";
    if (!feed["held"].is_null())
        text += ", held back: " + plural(feed["held"].get<uint64_t>(), "entry");
    return {text, feed["error"].is_null() ? Style::plain : Style::bad};
}

void show_totals(const Json& totals, Screen& screen) {
    std::vector<Row> rows;
    for (uint32_t index = 0; index < SLUICE_COUNTERS; ++index) {
        const auto packets = totals[std::string(counter_name(index))].get<uint64_t>();
        if (packets == 0)
            continue;
        const Style style = counter_kind(index) == CounterKind::passed    ? Style::plain
                            : counter_kind(index) == CounterKind::dropped ? Style::bad
                                                                          : Style::careful;
        rows.push_back({{std::string(counter_name(index)), style},
                        {format_count(packets)},
                        {std::string(counter_meaning(index)), Style::dim}});
    }
    screen.line();
    if (rows.empty())
        screen.line("No packets yet.");
    else
        screen.table({{"VERDICT"}, {"PACKETS", true}, {"MEANING"}}, rows);
}

void show(const Json& data, Screen& screen) {
    const auto mode = data["mode"].get<std::string>();
    std::vector<std::pair<std::string_view, Cell>> fields = {
        {"mode", {mode + (mode == "observe" ? " (nothing is dropped)" : ""), style_of_mode(mode)}}};
    for (const Json& attached : data["attached"]) {
        const auto state = attached["state"].get<std::string>();
        fields.push_back(
            {"interface",
             {attached["iface"].get<std::string>() + ", " +
                  attached["xdp_mode"].get<std::string>() +
                  (attached["dispatcher"] ? ", under a dispatcher" : "") + ", " + state,
              state == "attached" ? Style::plain : Style::bad}});
    }
    const Json& policy = data["policy"];
    fields.push_back({"policy", policy["source"].is_null()
                                    ? std::string("none")
                                    : "version " + policy["version"].dump() + ", " +
                                          policy["source"].get<std::string>() + ", applied " +
                                          policy["applied_at"].get<std::string>()});
    for (const Json& entry : policy["schedules"]) {
        const Cell state = schedule_state(entry);
        fields.push_back(
            {"schedule",
             {entry["name"].get<std::string>() + " of " + entry["service"].get<std::string>() +
                  ": " + values_text(entry["in_force"]) + ", " + state.text,
              state.style}});
    }
    for (const Json& entry : policy["overrides"]) {
        std::string text = entry["service"].get<std::string>();
        for (const auto& [key, value] : entry["values"].items())
            text += ' ' + key + '=' + value.get<std::string>();
        text += ", ends " + format_expiry(entry["left_s"]);
        if (entry["origin"] == "fleet")
            text += ", by the fleet";
        fields.push_back({"override", {text, Style::careful}});
    }
    for (const Json& entry : data["overrides"])
        fields.push_back({"override", {switch_text(entry), Style::careful}});
    for (const Json& entry : data["pending_confirm"])
        fields.push_back({"to confirm", {switch_text(entry), Style::careful}});
    const Json& bans = data["bans"];
    fields.push_back({"bans", format_count(bans["enforced"].get<uint64_t>()) + " in force of " +
                                  format_count(bans["wanted"].get<uint64_t>()) +
                                  (bans["by_hand"] == 0
                                       ? std::string()
                                       : ", and " + format_count(bans["by_hand"].get<uint64_t>()) +
                                             " by hand (bans_manual)")});
    for (const Json& feed : data.value("feeds", Json::array()))
        fields.push_back({"feed", feed_cell(feed)});
    const Json& sources = data["sources"];
    fields.push_back({"source state", format_count(sources["live"].get<uint64_t>()) + " of " +
                                          format_count(sources["capacity"].get<uint64_t>()) +
                                          " words live, " +
                                          format_count(sources["evicted_live"].get<uint64_t>()) +
                                          " evicted while live"});
    const Json& daemon = data["daemon"];
    fields.push_back({"daemon", daemon["running"]
                                    ? "process " + daemon["pid"].dump() + ", for " +
                                          format_seconds(daemon["uptime_s"].get<double>())
                                    : std::string("not running: the gate works without it")});
    const Json& drill = data["redis"].value("drill_left_s", Json());
    if (!drill.is_null())
        fields.push_back({"redis", {drill_text(drill), Style::careful}});
    if (const Json& rl = data["rl"]; !rl.is_null())
        fields.push_back({"rl", rl_text(rl)});
    for (const auto& [problem, meaning] :
         {std::pair("config_error", "the old configuration holds: "),
          std::pair("state_error", "bans would not outlive a reboot: "),
          std::pair("override_error", "other numbers would not outlive a restart: "),
          std::pair("audit_error", "changes are not audited: "),
          std::pair("events_error", "events are lost: ")})
        if (daemon.contains(problem) && daemon[problem].is_string())
            fields.push_back({"", {meaning + daemon[problem].get<std::string>(), Style::bad}});
    for (const Json& wanted : daemon.value("wanted", Json::array()))
        if (const Json& attached = daemon["attached"];
            std::find(attached.begin(), attached.end(), wanted) == attached.end())
            fields.push_back(
                {"", {wanted.get<std::string>() + " is to be attached, and is not", Style::bad}});
    screen.fields(fields);
    show_totals(data["totals"], screen);
}

}  // namespace

void add_status(CommandLine& line) {
    CLI::App* app = line.add("status", "What runs, in which mode, and what it has seen");
    line.handle(app, run, show);
}

}  // namespace sluice::cli
