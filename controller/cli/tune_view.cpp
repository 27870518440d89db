#include "cli/tune_view.h"

#include <algorithm>

#include "cli/format.h"

namespace sluice::cli {

namespace {

std::string string_of(const Json& json) {
    return json.get<std::string>();
}

Json change_json(const Change& change) {
    return {{"what", change.what},
            {"before", change.before},
            {"after", change.after},
            {"why", change.why},
            {"setting", change.setting.to_string()},
            {"value", change.value}};
}

Json changes_json(const std::vector<Change>& changes) {
    Json list = Json::array();
    for (const Change& change : changes)
        list.push_back(change_json(change));
    return list;
}

Json port_json(const PortPlan& port) {
    Json places = Json::array();
    for (const QueuePlace& place : port.places)
        places.push_back({{"queue", place.queue}, {"cpu", place.cpu}});
    return {{"iface", port.name},
            {"driver", port.driver.empty() ? Json() : Json(port.driver)},
            {"queues", port.queues},
            {"queues_wanted", port.queues_wanted},
            {"queues_most", port.most_queues ? Json(*port.most_queues) : Json()},
            {"node", port.node ? Json(*port.node) : Json()},
            {"cores_near", port.cores},
            {"places", std::move(places)}};
}

void show_changes(const Json& changes, Screen& screen) {
    std::vector<Row> rows;
    for (const Json& change : changes)
        rows.push_back({{string_of(change["what"]), Style::strong},
                        {string_of(change["before"]) + " → " + string_of(change["after"])},
                        {string_of(change["why"])}});
    screen.table({{"WHAT"}, {"BEFORE → AFTER"}, {"WHY"}}, rows);
}

void show_lines(const Json& lines, std::string_view before, Style style, Screen& screen) {
    for (const Json& line : lines)
        screen.line(std::string(before) + string_of(line), style);
}

void show_ports(const Json& ports, Screen& screen) {
    std::vector<Row> rows;
    for (const Json& port : ports) {
        std::string queues = port["queues"].dump();
        if (port["queues"] != port["queues_wanted"])
            queues += " → " + port["queues_wanted"].dump();
        if (!port["queues_most"].is_null())
            queues += " of " + port["queues_most"].dump();
        rows.push_back({{string_of(port["iface"])},
                        {port["driver"].is_null() ? "-" : string_of(port["driver"])},
                        {queues},
                        {port["node"].is_null() ? "-" : port["node"].dump()},
                        {port["cores_near"].dump()}});
    }
    screen.table({{"CARD"}, {"DRIVER"}, {"QUEUES"}, {"NODE", true}, {"CORES NEAR", true}}, rows);
}

std::string rate(const Json& row, const char* key) {
    return format_short(row[key].get<double>());
}

std::string before_after(const Json& row, const char* key) {
    return rate(row["before"], key) + " → " + rate(row["after"], key);
}

std::string percent(const Json& share) {
    constexpr double kPercent = 100;
    return format_short(share.get<double>() * kPercent) + " %";
}

void show_rates(const Json& rates, Screen& screen) {
    if (rates.is_null())
        return;
    std::vector<Row> rows;
    for (const Json& cpu : rates["cpus"])
        rows.push_back({{"CPU " + cpu["cpu"].dump()},
                        {before_after(cpu, "packets_per_s")},
                        {before_after(cpu, "steered_per_s")},
                        {before_after(cpu, "squeezed_per_s")},
                        {before_after(cpu, "dropped_per_s")},
                        {percent(cpu["before"]["softirq_share"]) + " → " +
                         percent(cpu["after"]["softirq_share"])}});
    screen.line();
    screen.table(
        {{"A SECOND"}, {"INTO THE STACK"}, {"BY RPS"}, {"SQUEEZED"}, {"DROPPED"}, {"SOFTIRQ"}},
        rows);
    rows.clear();
    for (const Json& queue : rates["queues"])
        rows.push_back({{string_of(queue["queue"])}, {before_after(queue, "packets_per_s")}});
    if (!rows.empty())
        screen.table({{"QUEUE"}, {"PACKETS A SECOND"}}, rows);
}

Json cpu_json(const CpuRate& rate) {
    return {{"packets_per_s", rate.packets},
            {"steered_per_s", rate.steered},
            {"squeezed_per_s", rate.squeezed},
            {"dropped_per_s", rate.dropped},
            {"softirq_share", rate.softirq}};
}

}  // namespace

Json plan_json(const Plan& plan) {
    Json ports = Json::array();
    for (const PortPlan& port : plan.ports)
        ports.push_back(port_json(port));
    return {{"iface", plan.interface},      {"profile", tune_profile_name(plan.profile)},
            {"ports", std::move(ports)},    {"changes", changes_json(plan.changes)},
            {"cautions", plan.cautions},    {"notes", plan.notes},
            {"hindrances", plan.hindrances}};
}

void show_plan(const Json& data, Screen& screen) {
    screen.line(string_of(data["iface"]) + ", profile " + string_of(data["profile"]),
                Style::strong);
    show_ports(data["ports"], screen);
    screen.line();
    if (data["changes"].empty())
        screen.line("Nothing to change: all is as it should be.", Style::good);
    else
        show_changes(data["changes"], screen);
    screen.line();
    show_lines(data["cautions"], "Careful: ", Style::careful, screen);
    show_lines(data["notes"], "", Style::plain, screen);
    show_lines(data["hindrances"], "Not possible here: ", Style::bad, screen);
    if (!data["svg"].is_null())
        screen.line("The picture is in " + string_of(data["svg"]) + '.');
    if (!data["changes"].empty() && data["hindrances"].empty())
        screen.line("To do it: sluicectl tune apply " + string_of(data["iface"]) + " --profile " +
                    string_of(data["profile"]) + " --confirm 60s");
}

Json report_json(const std::string& interface, const ApplyReport& report) {
    Json refused = Json::array();
    for (const Refusal& refusal : report.refused)
        refused.push_back({{"what", refusal.what}, {"reason", refusal.reason}});
    return {{"iface", interface},
            {"changes", changes_json(report.done)},
            {"refused", std::move(refused)},
            {"notes", report.notes},
            {"was_cut_off", report.was_cut_off}};
}

Json rates_json(const Rates& before, const Rates& after) {
    Json cpus = Json::array(), queues = Json::array();
    for (const CpuRate& now : after.cpus)
        if (const auto then = std::ranges::find(before.cpus, now.cpu, &CpuRate::cpu);
            then != before.cpus.end())
            cpus.push_back(
                {{"cpu", now.cpu}, {"before", cpu_json(*then)}, {"after", cpu_json(now)}});
    // Queues that were not there before begin at nothing.
    for (const QueueRate& now : after.queues) {
        const auto then = std::ranges::find(before.queues, now.queue, &QueueRate::queue);
        queues.push_back(
            {{"queue", now.queue},
             {"before", {{"packets_per_s", then == before.queues.end() ? 0 : then->packets}}},
             {"after", {{"packets_per_s", now.packets}}}});
    }
    return {{"cpus", std::move(cpus)}, {"queues", std::move(queues)}};
}

void show_report(const Json& data, Screen& screen) {
    if (data["was_cut_off"])
        screen.line("An earlier change that was cut off, or not confirmed, was undone first.",
                    Style::careful);
    const auto iface = string_of(data["iface"]);
    if (data["changes"].empty())
        screen.line("Nothing to change: " + iface + " is as it should be.", Style::good);
    else
        show_changes(data["changes"], screen);
    for (const Json& refusal : data["refused"])
        screen.line("Refused, and left as it was: " + string_of(refusal["what"]) + " (" +
                        string_of(refusal["reason"]) + ')',
                    Style::careful);
    show_lines(data["notes"], "", Style::plain, screen);
    if (!data["irqbalance"].is_null()) {
        screen.line("To keep irqbalance off these interrupts:");
        show_lines(data["irqbalance"]["commands"], "  ", Style::plain, screen);
    }
    show_rates(data["rates"], screen);
    if (!data["confirm_within_s"].is_null())
        screen.line("Within " + format_seconds(data["confirm_within_s"].get<double>()) +
                    ": sluicectl confirm tune." + iface + "; or all is undone.");
    if (!data["changes"].empty())
        screen.line("To look at it later: sluicectl tune verify " + iface +
                    "; to undo it: sluicectl tune revert " + iface);
}

Json drift_json(const std::string& interface, const std::vector<Drift>& drifts) {
    Json list = Json::array();
    for (const Drift& drift : drifts)
        list.push_back({{"setting", drift.setting.to_string()},
                        {"wanted", drift.wanted},
                        {"found", drift.found.empty() ? Json() : Json(drift.found)}});
    return {{"iface", interface}, {"drifted", std::move(list)}};
}

void show_drift(const Json& data, Screen& screen) {
    const auto iface = string_of(data["iface"]);
    if (data["drifted"].empty()) {
        screen.line(iface + " is as it was set.", Style::good);
        return;
    }
    std::vector<Row> rows;
    for (const Json& drift : data["drifted"]) {
        std::string found = drift["found"].is_null() ? "is gone" : string_of(drift["found"]);
        while (found.ends_with('\n'))
            found.pop_back();
        rows.push_back({{string_of(drift["setting"])},
                        {string_of(drift["wanted"])},
                        {std::move(found), Style::bad}});
    }
    screen.table({{"SETTING"}, {"WAS SET TO"}, {"IS NOW"}}, rows);
    screen.line("To set it again: sluicectl tune apply " + iface);
}

Json revert_json(const std::string& interface, const RevertReport& report) {
    Json restored = Json::array(), gone = Json::array();
    for (const Setting& setting : report.restored)
        restored.push_back(setting.to_string());
    for (const Setting& setting : report.gone)
        gone.push_back(setting.to_string());
    return {{"iface", interface},
            {"restored", std::move(restored)},
            {"gone", std::move(gone)},
            {"was_rebooted", report.was_rebooted}};
}

void show_revert(const Json& data, Screen& screen) {
    const auto iface = string_of(data["iface"]);
    if (data["was_rebooted"])
        screen.line("The machine was started anew since, which undid it already.");
    else
        screen.line(iface + " is as it was before: " + plural(data["restored"].size(), "setting") +
                    " put back.");
}

}  // namespace sluice::cli
