// sluicectl policy history: the versions of the fleet's policy, and who has which; and the text of
// one.
#include "cli/policy_history.h"

#include <algorithm>

#include "cli/format.h"
#include "cli/policy_desk.h"
#include "cli/policy_of_fleet.h"
#include "fleet/canary_comparison.h"

namespace sluice::cli {

namespace {

Json text_or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

Json host_json(const HostView& host) {
    const Heartbeat& last = host.last;
    return {{"host", last.id},
            {"name", last.name},
            {"version", last.fleet_version == 0 ? Json() : Json(last.fleet_version)},
            {"canary", last.is_canary},
            {"mode", last.mode},
            {"refused", last.refused_version == 0 ? Json() : Json(last.refused_version)},
            {"refusal", text_or_null(last.refusal)},
            {"age_s", seconds(host.age)},
            {"away", host.is_away()}};
}

Json version_json(const PolicyVersion& version, const PolicyPointers& pointers,
                  const FleetView& view) {
    const bool is_current = version.version == pointers.current;
    const bool is_canary = version.version == pointers.canary;
    const auto hosts = std::ranges::count_if(view.hosts, [&](const HostView& host) {
        return !host.is_away() && host.last.fleet_version == version.version;
    });
    return {{"version", version.version},
            {"state", is_current  ? Json("current")
                      : is_canary ? Json("canary")
                                  : Json()},
            {"hosts", hosts},
            {"pushed_at", format_time(version.pushed_ms / 1000)},
            {"by", version.by},
            {"from", text_or_null(version.from)},
            {"bytes", version.bytes},
            {"note", text_or_null(version.note)}};
}

Json group_json(const CutOfGroup& group) {
    return {{"hosts", group.hosts},
            {"packets_per_s", group.rate.packets},
            {"held_back_per_s", group.rate.cut},
            {"held_back_share", group.share()},
            {"sources", group.rate.sources},
            {"ten_heaviest_share", group.rate.heaviest}};
}

// Of the canary with the others; null where there is none.
Json comparison_json(const FleetView& view, const PolicyPointers& pointers) {
    if (pointers.canary == 0)
        return {};
    const CanaryComparison compared = compare_canary(view, pointers.canary, pointers.current);
    return {{"canary", group_json(compared.canary)},
            {"others", group_json(compared.others)},
            {"known", compared.is_known()},
            {"holds_back_more", compared.holds_back_more()},
            {"spread_wide", compared.is_known() && compared.is_wide()}};
}

void show_comparison(const Json& data, Screen& screen) {
    const Json& compared = data["comparison"];
    std::vector<Row> rows;
    for (const auto& [key, name] : {std::pair("canary", "canary"), std::pair("others", "others")}) {
        const Json& group = compared[key];
        const auto part = [&](const char* field) {
            constexpr double kPercent = 100;
            return format_short(group[field].get<double>() * kPercent) + " %";
        };
        rows.push_back({{name},
                        {group["hosts"].dump()},
                        {format_short(group["packets_per_s"].get<double>())},
                        {part("held_back_share")},
                        {format_short(group["sources"].get<double>())},
                        {part("ten_heaviest_share")}});
    }
    screen.line();
    screen.line("The canary is for " + data["canary_hosts"].get<std::string>() + '.');
    screen.table({{"GROUP"},
                  {"HOSTS", true},
                  {"PACKETS A SECOND", true},
                  {"HELD BACK", true},
                  {"OF SOURCES", true},
                  {"TEN HEAVIEST", true}},
                 rows);
    if (!compared["known"])
        screen.line("Its hosts see too few packets to compare.", Style::dim);
    else if (compared["holds_back_more"])
        screen.line(compared["spread_wide"]
                        ? "It holds back more, a little from each of many sources: real users?"
                        : "It holds back more, most of it from few sources.",
                    Style::careful);
}

}  // namespace

Result<Answer> policy_history(const Session& session) {
    auto desk = PolicyDesk::open(session);
    if (!desk)
        return desk.error();
    const auto reply = desk->fleet().redis().run({"HGETALL", desk->keys().base});
    const auto versions = reply ? parse_policy_history(*reply) : reply.error();
    if (!versions)
        return versions.error().with_context("Redis");
    const auto view = read_all_hosts(desk->fleet().redis(), desk->fleet().fleet());
    if (!view)
        return view.error().with_context("Redis");
    const PolicyPointers& pointers = desk->pointers();
    Json all = Json::array(), hosts = Json::array();
    for (const PolicyVersion& version : *versions)
        all.push_back(version_json(version, pointers, *view));
    for (const HostView& host : view->hosts)
        hosts.push_back(host_json(host));
    Answer answer;
    if (desk->is_older())
        answer.warnings.emplace_back(
            "this is an older state than this host's, as of a backup; hosts keep what they have; "
            "to give it back: sluicectl policy push FILE");
    answer.data = {{"fleet", desk->fleet().fleet()},
                   {"current", pointers.current == 0 ? Json() : Json(pointers.current)},
                   {"current_since",
                    pointers.since_ms == 0 ? Json() : Json(format_time(pointers.since_ms / 1000))},
                   {"current_by", text_or_null(pointers.by)},
                   {"canary", pointers.canary == 0 ? Json() : Json(pointers.canary)},
                   {"canary_hosts", text_or_null(pointers.canary_hosts)},
                   {"comparison", comparison_json(*view, pointers)},
                   {"versions", all},
                   {"hosts", hosts},
                   {"hosts_in_all", view->hosts_in_all}};
    return answer;
}

void show_policy_history(const Json& data, Screen& screen) {
    const auto words = [](const Json& value) {
        return value.is_null() ? std::string("-") : value.get<std::string>();
    };
    if (data["versions"].empty()) {
        screen.line("Fleet " + data["fleet"].get<std::string>() +
                    " has no policy yet: each host has its own file's. To give it one: sluicectl "
                    "policy push FILE");
    } else {
        std::vector<Row> rows;
        for (const Json& version : data["versions"]) {
            const std::string state = words(version["state"]);
            rows.push_back({{version["version"].dump()},
                            {state, state == "canary" ? Style::careful : Style::strong},
                            {version["hosts"].dump()},
                            {version["pushed_at"].get<std::string>()},
                            {version["by"].get<std::string>()},
                            {words(version["from"])},
                            {words(version["note"])}});
        }
        screen.table(
            {{"VERSION", true}, {"STATE"}, {"HOSTS", true}, {"PUSHED"}, {"BY"}, {"FROM"}, {"NOTE"}},
            rows);
        if (!data["canary"].is_null())
            show_comparison(data, screen);
    }
    if (data["hosts"].empty())
        return;
    std::vector<Row> rows;
    // Those that something is wrong with first, as not all may be shown.
    const auto is_in_trouble = [](const Json& host) {
        return host["away"].get<bool>() || !host["refused"].is_null();
    };
    Json hosts = data["hosts"];
    std::stable_partition(hosts.begin(), hosts.end(), is_in_trouble);
    for (const Json& host : hosts) {
        if (rows.size() == kMostHostsShown)
            break;
        std::string version = host["version"].is_null() ? "its own file" : host["version"].dump();
        if (host["canary"])
            version += ", canary";
        const bool away = host["away"];
        std::string told = away ? "away for " + format_seconds(host["age_s"].get<double>()) : "";
        if (!host["refused"].is_null())
            told += (told.empty() ? "" : "; ") + std::string("refuses ") + host["refused"].dump() +
                    ": " + words(host["refusal"]);
        const auto mode = host["mode"].get<std::string>();
        rows.push_back({{host["name"].get<std::string>()},
                        {host["host"].get<std::string>().substr(0, 8)},
                        {version},
                        {mode, style_of_mode(mode)},
                        {told, Style::bad}});
    }
    screen.line();
    screen.table({{"HOST"}, {"ID"}, {"VERSION"}, {"MODE"}, {""}}, rows);
    const auto in_all = data["hosts_in_all"].get<uint64_t>();
    if (in_all > rows.size())
        screen.line("… and " + plural(in_all - rows.size(), "host") +
                        " more: sluicectl policy history --json",
                    Style::dim);
    if (in_all > hosts.size())
        screen.line(plural(in_all - hosts.size(), "host") + " of them are not counted above",
                    Style::dim);
}

Result<Answer> show_fleet_version(const std::string& text, const Session& session) {
    const auto version = parse_version("--version", text);
    if (!version)
        return version.error();
    auto desk = PolicyDesk::open(session);
    if (!desk)
        return desk.error();
    const auto stored = desk->read(*version);
    if (!stored)
        return stored.error();
    Answer answer;
    answer.data = {{"version", *version},
                   {"source", format_fleet_source({desk->fleet().fleet(), *version, false})},
                   {"pushed_at", format_time(stored->about.pushed_ms / 1000)},
                   {"by", stored->about.by},
                   {"from", text_or_null(stored->about.from)},
                   {"note", text_or_null(stored->about.note)},
                   {"text", stored->text}};
    return answer;
}

void print_fleet_version(const Json& data, Screen& screen) {
    std::string head = "# " + data["source"].get<std::string>() + ", pushed " +
                       data["pushed_at"].get<std::string>() + " by " +
                       data["by"].get<std::string>();
    if (!data["from"].is_null())
        head += " from " + data["from"].get<std::string>();
    screen.line(head);
    if (!data["note"].is_null())
        screen.line("# " + data["note"].get<std::string>());
    screen.raw(data["text"].get<std::string>());
}

}  // namespace sluice::cli
