// sluicectl allow, unallow, allows: who skips the limits, and no ban hits.
#include "cli/ban_checks.h"
#include "cli/command_line.h"
#include "cli/fleet_rules.h"
#include "cli/format.h"
#include "cli/prefix_argument.h"
#include "cli/rule_list.h"
#include "gate/source_rules.h"

namespace sluice::cli {

namespace {

struct AllowOptions {
    std::string prefix;
    std::string ttl = "permanent";
    std::string reason;
    bool exempt = false;
    bool force = false;
    bool fleet = false;
};

Result<std::string> allows_before(SourceRules& rules, const Prefix& prefix, uint64_t now_ns) {
    const auto words = words_on(rules, prefix, RuleKind::allow);
    if (!words)
        return words.error();
    return words->empty() ? "not allowed" : "allowed by " + describe_words(*words, now_ns);
}

Result<Answer> allow(const AllowOptions& options, const Session& session) {
    Answer answer;
    const auto argument = parse_prefix(options.prefix, answer.warnings);
    if (!argument)
        return argument.error();
    const auto ttl = parse_ttl(options.ttl);
    if (!ttl)
        return ttl.error();
    if (const Status reason = check_reason(options.reason, session.who); !reason)
        return reason.error();
    if (options.fleet)
        return allow_in_fleet({.ban = {.kind = RuleKind::allow,
                                       .prefix = argument->prefix,
                                       .ttl = *ttl,
                                       .exempt = options.exempt,
                                       .reason = options.reason},
                               .ttl = options.ttl,
                               .force = options.force},
                              session, answer);
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    const Operator& who = session.who;
    const uint64_t now_ns = gate_now_ns(gate->tables);
    SourceRules rules(gate->tables);
    const auto before = allows_before(rules, argument->prefix, now_ns);
    if (!before)
        return before.error();
    session.record({"allow", argument->prefix.to_string(), *before,
                    (options.exempt ? "exempt for " : "for ") + options.ttl, options.reason},
                   answer.warnings);
    const auto outcome = rules.allow(argument->prefix, {.ttl = *ttl,
                                                        .exempt = options.exempt,
                                                        .reason = options.reason,
                                                        .actor = who.to_string(),
                                                        .forced = options.force});
    if (!outcome)
        return outcome.error();
    answer.changed = true;
    answer.data = {{"prefix", argument->prefix.to_string()},
                   {"exempt", options.exempt},
                   {"expires_in_s", seconds_until(outcome->until_ns, now_ns)},
                   {"added", outcome->added}};
    return answer;
}

void show_allow(const Json& data, Screen& screen) {
    screen.line("Allowed " + data["prefix"].get<std::string>() +
                (data.contains("fleet") ? " in the whole fleet: " : ": ") +
                (data["exempt"] ? "no limits, no budgets" : "no per-source limits") + ", ends " +
                format_expiry(data["expires_in_s"]) + '.');
}

struct UnallowOptions {
    std::string prefix;
    bool fleet = false;
};

Result<Answer> unallow(const UnallowOptions& options, const Session& session) {
    Answer answer;
    const auto argument = parse_prefix(options.prefix, answer.warnings);
    if (!argument)
        return argument.error();
    if (options.fleet)
        return unban_in_fleet({.kind = RuleKind::allow, .prefix = argument->prefix}, false, session,
                              answer);
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    SourceRules rules(gate->tables);
    const auto before = allows_before(rules, argument->prefix, gate_now_ns(gate->tables));
    if (!before)
        return before.error();
    session.record({"unallow", argument->prefix.to_string(), *before, "not allowed", ""},
                   answer.warnings);
    const auto outcome = rules.unallow(argument->prefix);
    if (!outcome)
        return outcome.error();
    if (outcome->still_under)
        answer.warnings.push_back("still allowed, by " + outcome->still_under->to_string());
    answer.changed = true;
    answer.data = {{"prefix", argument->prefix.to_string()},
                   {"removed", outcome->removed},
                   {"still_allowed_by",
                    outcome->still_under ? Json(outcome->still_under->to_string()) : Json()}};
    return answer;
}

void show_unallow(const Json& data, Screen& screen) {
    screen.line("No longer allowed" +
                std::string(data.contains("fleet") ? " in the whole fleet: " : ": ") +
                data["prefix"].get<std::string>() + ", " +
                plural(data["removed"].get<uint64_t>(), "allow") + " removed.");
}

}  // namespace

void add_allow(CommandLine& line) {
    auto options = std::make_shared<AllowOptions>();
    CLI::App* app = line.add("allow", "Let a prefix skip per-source limits and every ban");
    app->add_option("PREFIX", options->prefix, "192.0.2.1, 192.0.2.0/24, 2001:db8::/48")
        ->required();
    app->add_option("--ttl", options->ttl, "How long, or permanent")
        ->type_name("TIME")
        ->capture_default_str();
    app->add_option("--reason", options->reason, "Shown by allows and why")->type_name("TEXT");
    app->add_flag("--exempt", options->exempt, "Skip the budgets of services, too");
    app->add_flag("--force", options->force, "Even where it is very wide");
    app->add_flag("--fleet", options->fleet, "On all hosts of the fleet");
    line.handle(
        app, [options](const Session& session) { return allow(*options, session); }, show_allow);

    auto unallow_options = std::make_shared<UnallowOptions>();
    CLI::App* un = line.add("unallow", "Take back the allows of a prefix and of all inside it");
    un->add_option("PREFIX", unallow_options->prefix, "As it was allowed")->required();
    un->add_flag("--fleet", unallow_options->fleet, "The fleet's allows, on all hosts");
    line.handle(
        un,
        [unallow_options](const Session& session) { return unallow(*unallow_options, session); },
        show_unallow);

    line.handle(
        line.add("allows", "List what is allowed"),
        [](const Session& session) { return list_rules(session, {.kind = RuleKind::allow}); },
        show_rules);
}

}  // namespace sluice::cli
