// sluicectl mode: show or change what a verdict means, for the gate or for one service.
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/switching.h"
#include "gate/counters.h"
#include "gate/service_ids.h"

namespace sluice::cli {

namespace {

struct Options {
    std::optional<std::string> mode;
    std::optional<std::string> service;
    TimingOptions timing;
    bool fleet = false;
    bool dry_run = false;
};

SwitchTarget target_of(const Options& options) {
    if (options.service)
        return OneService{*options.service};
    return WholeGate{};
}

// What enforcing would have dropped so far, by verdict.
Json would_drop(const Tables& tables, const Options& options) {
    CounterFilter filter;
    if (options.service)
        filter.service = find_service_id(tables, *options.service);
    const Counters counters = read_counters(tables, filter);
    Json found = Json::object();
    for (uint32_t index = 0; index < counters.size(); ++index)
        if (counter_kind(index) == CounterKind::would_drop && counters[index].packets != 0)
            found[std::string(counter_name(index))] = counters[index].packets;
    return found;
}

Result<Answer> look(const Options& options, const Session& session) {
    if (options.timing.lasts || options.timing.confirm || options.dry_run || options.fleet)
        return make_error(ErrorCode::usage, "which mode?", "one of: observe, enforce, off, policy");
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const SwitchTarget target = target_of(options);
    const auto own = mode_of(tables, target);
    if (!own)
        return own.error();
    const auto effective = effective_mode(tables, target);
    if (!effective)
        return effective.error();
    Answer answer;
    answer.data = {{"target", format_switch_target(target)},
                   {"mode", mode_name(*own)},
                   {"effective", mode_name(*effective)},
                   {"origin", "policy"},
                   {"after", nullptr},
                   {"left_s", nullptr}};
    for (const SwitchEntry& entry : list_switches(tables))
        if (entry.id == format_switch_target(target)) {
            answer.data["origin"] = entry.by_fleet ? "fleet" : "operator";
            answer.data["after"] = entry.after.empty() ? Json() : Json(entry.after);
            answer.data["left_s"] = seconds(entry.left);
        }
    return answer;
}

Result<Answer> run(const Options& options, const Session& session) {
    if (!options.mode)
        return look(options, session);
    const auto wanted = read_wanted(*options.mode, "policy");
    if (!wanted)
        return wanted.error();
    const auto timing = read_timing(options.timing);
    if (!timing)
        return timing.error();
    if (options.fleet)
        return change_mode_in_fleet(session, target_of(options), *wanted, *timing,
                                    {.command = "mode", .dry_run = options.dry_run});
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    auto answer = change_mode(session, gate->tables, target_of(options), *wanted, *timing,
                              {.command = "mode", .dry_run = options.dry_run});
    if (answer)
        answer->data["would_drop"] = would_drop(gate->tables, options);
    return answer;
}

void show(const Json& data, Screen& screen) {
    if (!data.contains("now")) {
        const auto mode = data["mode"].get<std::string>();
        std::string text = data["target"].get<std::string>() + ": " + mode;
        if (data["effective"] != data["mode"])
            text += ", but in effect " + data["effective"].get<std::string>();
        if (data["origin"] != "policy") {
            text += data["origin"] == "fleet" ? " (the fleet's word" : " (an operator's override";
            if (!data["after"].is_null())
                text += "; back to " + data["after"].get<std::string>() + ' ' +
                        format_expiry(data["left_s"]);
            text += ')';
        }
        screen.line(text, style_of_mode(data["effective"].get<std::string>()));
        return;
    }
    show_change(data, screen);
    if (!data["dry_run"] || data.contains("fleet") || data["would_drop"].empty())
        return;
    const Json& would = data["would_drop"];
    screen.line();
    screen.line("Would have been dropped so far:");
    std::vector<Row> rows;
    for (const auto& [name, packets] : would.items())
        rows.push_back({{name}, {format_count(packets.get<uint64_t>())}});
    screen.table({{"VERDICT"}, {"PACKETS", true}}, rows);
}

}  // namespace

void add_mode(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("mode", "Show the mode, or change it");
    app->add_option("MODE", options->mode,
                    "observe, enforce, off, or policy: back to what the policy says");
    app->add_option("--service", options->service, "Of one service only")->type_name("NAME");
    add_timing(app, options->timing);
    app->add_flag("--fleet", options->fleet,
                  "On all hosts of the fleet; off beats their own words");
    app->add_flag("--dry-run", options->dry_run, "Say what would change, and change nothing");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
