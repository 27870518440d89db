// sluicectl policy: check a configuration, apply it, show what is in force.
#include <algorithm>
#include <iterator>

#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/policy_of_fleet.h"
#include "cli/policy_override.h"
#include "cli/schedule_view.h"
#include "fleet/fleet_policy.h"
#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "operate/apply_policy.h"
#include "operate/config_file.h"
#include "operate/policy_compiles.h"
#include "operate/protected_sources.h"
#include "operate/scheduled_config.h"
#include "operate/table_needs.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

Result<Answer> check(const std::string& path, const Session&) {
    const auto config = load_config_file(path);
    if (!config)
        return config.error();
    const Policy& policy = config->policy;
    // Reading it has found whatever has a place in the file.
    if (const Status compiled = compiles_here(policy); !compiled)
        return failed(path + ": " + compiled.error().message, compiled.error().hint);
    const auto cpus = cpu_count();
    if (!cpus)
        return cpus.error();
    Json schedules = Json::array();
    for (const Service& service : policy.services)
        for (Json& schedule : schedules_json(service, wall_now()))
            schedules.push_back(std::move(schedule));
    Answer answer;
    answer.data = {{"file", path},
                   {"mode", mode_name(policy.mode)},
                   {"services", policy.services.size()},
                   {"classes", policy.classes.size()},
                   {"allows", policy.sources.allow.size()},
                   {"schedules", schedules},
                   {"memory_bytes", needed_sizes(policy, *cpus).memory()}};
    answer.warnings = policy.warnings;
    return answer;
}

void show_check(const Json& data, Screen& screen) {
    screen.line(data["file"].get<std::string>() +
                " is good: " + plural(data["services"].get<uint64_t>(), "service") + ", " +
                plural(data["allows"].get<uint64_t>(), "allow") + ", mode " +
                data["mode"].get<std::string>() + "; a new gate takes " +
                format_bytes(data["memory_bytes"].get<uint64_t>()) + '.');
    for (const Json& schedule : data["schedules"])
        screen.item(schedule["service"].get<std::string>() + ", " +
                    schedule["name"].get<std::string>() + ": " + values_text(schedule["values"]) +
                    ", " + schedule["when"].get<std::string>() + ", " + next_text(schedule));
}

Result<Answer> show_policy(const std::optional<std::string>& version, const Session& session) {
    if (version)
        return show_fleet_version(*version, session);
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const auto policy = current_policy(tables);
    if (!policy)
        return policy.error();
    Answer answer;
    answer.data = {{"version", policy->version},
                   {"source", policy->source},
                   {"applied_at", format_time(policy->applied_s)},
                   {"text", policy->text}};
    return answer;
}

void print_policy(const Json& data, Screen& screen) {
    if (data.contains("pushed_at"))
        return print_fleet_version(data, screen);
    screen.line("# version " + data["version"].dump() + ", applied " +
                data["applied_at"].get<std::string>() + ", from " +
                data["source"].get<std::string>());
    screen.raw(data["text"].get<std::string>());
}

// The operator's word stays over the policy's, and goes with what it is about; neither should
// surprise anybody.
void warn_of_overrides(const Tables& tables, const std::vector<SwitchEntry>& before,
                       bool to_be_confirmed, std::vector<std::string>& warnings) {
    const auto now = list_overrides(tables);
    for (const SwitchEntry& entry : now)
        warnings.push_back(entry.id + " stays in mode " + entry.now +
                           ", an operator's override; sluicectl switch clear " + entry.id);
    for (const SwitchEntry& entry : before)
        if (std::ranges::none_of(now, [&](const SwitchEntry& e) { return e.id == entry.id; }))
            warnings.push_back(
                entry.id + " is not in this policy: the operator's override (" + entry.now +
                (entry.waits_for_confirmation ? ", not confirmed yet" : "") +
                (to_be_confirmed ? ") goes once the policy is confirmed" : ") is gone"));
}

Result<Answer> apply(const std::string& path, const std::optional<std::string>& confirm,
                     const Session& session) {
    const auto within = parse_optional_time("--confirm", confirm, kLongestConfirm);
    if (!within)
        return within.error();
    auto config = load_config_file(path);
    if (config)
        config = with_schedules(*std::move(config), wall_now());
    if (!config)
        return config.error();
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    Tables& tables = gate->tables;
    const Operator& who = session.who;
    const auto replaced = current_policy(tables);
    const uint64_t before = replaced ? replaced->version : 0;
    const auto overrides_before = list_overrides(tables);
    Answer answer;
    session.record(
        {"policy apply", config->source, "version " + std::to_string(before),
         *within ? "a new one, to be confirmed within " + format_span(**within) : "a new one", ""},
        answer.warnings);
    const auto version = apply_policy(tables, *config, *within, who);
    if (!version)
        return version.error();
    session.made();
    answer.changed = true;
    answer.data = {{"version", *version},
                   {"before", before},
                   {"source", config->source},
                   {"confirm_within_s", seconds(*within)}};
    answer.warnings.insert(answer.warnings.end(), config->policy.warnings.begin(),
                           config->policy.warnings.end());
    if (replaced && parse_fleet_source(replaced->source))
        answer.warnings.push_back("it takes the place of " + replaced->source +
                                  " on this host, until the fleet's policy changes or sluiced "
                                  "starts again");
    std::ranges::copy(remarks_on(tables, config->policy), std::back_inserter(answer.warnings));
    warn_of_overrides(tables, overrides_before, within->has_value(), answer.warnings);
    SourceRules rules(tables);
    if (const Status looked = warn_of_own_ban(rules, who, answer.warnings); !looked)
        return looked.error();
    return answer;
}

void show_apply(const Json& data, Screen& screen) {
    screen.line("Policy version " + data["version"].dump() + " is in force, from " +
                data["source"].get<std::string>() + '.');
    if (!data["confirm_within_s"].is_null())
        screen.line("Within " + format_seconds(data["confirm_within_s"].get<double>()) +
                    ": sluicectl confirm; or version " + data["before"].dump() + " comes back.");
}

}  // namespace

void add_policy(CommandLine& line) {
    CLI::App* app = line.add("policy", "Check a configuration, apply it, show what is in force");
    app->require_subcommand(1);

    auto checked = std::make_shared<std::string>();
    CLI::App* checking =
        line.add("check", "Is this configuration good, and what does it need?", app);
    checking->add_option("FILE", *checked, "Such as /etc/sluice/sluice.toml")->required();
    line.handle(
        checking, [checked](const Session& session) { return check(*checked, session); },
        show_check);

    auto version = std::make_shared<std::optional<std::string>>();
    CLI::App* showing = line.add("show", "The policy in force, as it was written", app);
    showing->add_option("--version", *version, "One of the fleet's policy, from Redis")
        ->type_name("V");
    line.handle(
        showing, [version](const Session& session) { return show_policy(*version, session); },
        print_policy);

    auto applied = std::make_shared<std::string>();
    auto confirm = std::make_shared<std::optional<std::string>>();
    CLI::App* applying = line.add("apply", "Put a configuration in force on this gate", app);
    applying->add_option("FILE", *applied, "Such as /etc/sluice/sluice.toml")->required();
    applying
        ->add_option("--confirm", *confirm,
                     "Take it back, unless `sluicectl confirm` comes within this time")
        ->type_name("TIME");
    line.handle(
        applying,
        [applied, confirm](const Session& session) { return apply(*applied, *confirm, session); },
        show_apply);
    add_policy_of_fleet(line, app);
    add_policy_override(line, app);
}

}  // namespace sluice::cli
