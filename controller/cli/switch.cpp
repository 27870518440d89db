// sluicectl switch: one rule, service or the gate, off, to observe or on, here, for a time.
#include <array>

#include "cli/ban_checks.h"
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/switching.h"

namespace sluice::cli {

namespace {

struct Options {
    std::string rule;
    TimingOptions timing;
    bool fleet = false;
    std::string reason;
};

Result<Answer> change(const std::string& verb, const Options& options, const Session& session) {
    const auto wanted = read_wanted(verb == "on" ? "enforce" : verb, "clear");
    if (!wanted)
        return wanted.error();
    if (options.rule.starts_with("bans."))
        return make_error(ErrorCode::usage,
                          "switching one source of bans is not available in this version",
                          "sluicectl bans flush --source NAME takes its bans back");
    const auto target = parse_switch_target(options.rule);
    if (!target)
        return target.error();
    const auto timing = read_timing(options.timing);
    if (!timing)
        return timing.error();
    if (const Status reason = check_reason(options.reason, session.who); !reason)
        return reason.error();
    const std::string command = "switch " + verb;
    const ChangeOptions change{.command = command, .reason = options.reason};
    if (options.fleet)
        return change_mode_in_fleet(session, *target, *wanted, *timing, change);
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    return change_mode(session, gate->tables, *target, *wanted, *timing, change);
}

Result<Answer> list(const Session& session) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    Answer answer;
    Json switches = Json::array();
    for (const SwitchEntry& entry : list_switches(tables))
        switches.push_back({{"id", entry.id},
                            {"now", entry.now},
                            {"after", entry.after.empty() ? Json() : Json(entry.after)},
                            {"left_s", seconds(entry.left)},
                            {"fleet", entry.by_fleet},
                            {"waits_for_confirmation", entry.waits_for_confirmation}});
    answer.data = {{"switches", switches}};
    return answer;
}

void show_list(const Json& data, Screen& screen) {
    if (data["switches"].empty()) {
        screen.line("Everything is as the policy says.");
        return;
    }
    std::vector<Row> rows;
    for (const Json& entry : data["switches"])
        rows.push_back({{entry["id"].get<std::string>()},
                        {entry["now"].get<std::string>()},
                        {entry["after"].is_null() ? "" : entry["after"].get<std::string>()},
                        {entry["left_s"].is_null() ? "" : format_expiry(entry["left_s"])},
                        {entry["waits_for_confirmation"] ? "to be confirmed"
                         : entry["fleet"]                ? "by the fleet"
                                                         : "",
                         Style::careful}});
    screen.table({{"SWITCH"}, {"NOW"}, {"THEN"}, {"WHEN"}, {"NOTE"}}, rows);
}

struct Verb {
    const char* name;
    const char* summary;
};
constexpr std::array<Verb, 4> kVerbs = {{{"off", "Look at nothing, count nothing"},
                                         {"observe", "Count what would be dropped, drop nothing"},
                                         {"on", "Enforce"},
                                         {"clear", "Back to what the policy says"}}};

}  // namespace

void add_switch(CommandLine& line) {
    CLI::App* app = line.add("switch", "Turn a rule off, to observe or on, over the policy's head");
    app->require_subcommand(1);
    line.handle(line.add("list", "What differs from the policy, or will change by itself", app),
                list, show_list);
    for (const Verb& verb : kVerbs) {
        auto options = std::make_shared<Options>();
        CLI::App* below = line.add(verb.name, verb.summary, app);
        below->add_option("RULE", options->rule, "login.per_source.data; a service; or gate")
            ->required();
        if (std::string_view(verb.name) != "clear")
            add_timing(below, options->timing);
        below->add_flag("--fleet", options->fleet, "On all hosts of the fleet");
        below->add_option("--reason", options->reason, "For the system log")->type_name("TEXT");
        line.handle(
            below,
            [options, name = std::string(verb.name)](const Session& session) {
                return change(name, *options, session);
            },
            show_change);
    }
}

}  // namespace sluice::cli
