#include "cli/policy_override.h"

#include <algorithm>

#include "base/text.h"
#include "cli/format.h"
#include "cli/policy_desk.h"
#include "fleet/policy_override.h"
#include "gate/policy_store.h"
#include "operate/policy_compiles.h"
#include "policy/capacity.h"
#include "policy/find_service.h"
#include "policy/parse.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds;

struct Options {
    std::string service;
    std::vector<std::string> values;
    std::optional<std::string> lasts;
    std::string reason;
    bool fleet = false;
    bool clear = false;
    bool force = false;
    bool dry_run = false;
};

// What the options ask for; until_ms is left to whoever knows the clock.
struct Wanted {
    PolicyOverride entry;
    nanoseconds lasts{};
};

Result<Wanted> read_options(const Options& options, const Operator& who) {
    if (const Status reason = check_reason(options.reason); !reason)
        return reason.error();
    Wanted wanted;
    wanted.entry = {.change = {options.service, {}},
                    .actor = who.to_string(),
                    .reason = options.reason,
                    .by_fleet = options.fleet};
    if (options.clear) {
        if (!options.values.empty() || options.lasts)
            return make_error(ErrorCode::usage, "--clear takes neither values nor --for");
        return wanted;
    }
    if (options.values.empty())
        return make_error(ErrorCode::usage, "which numbers?", "such as budget.data=60000/s");
    for (const std::string& text : options.values) {
        auto value = parse_change_value(text);
        if (!value)
            return value.error();
        wanted.entry.change.values.push_back(*std::move(value));
    }
    const auto lasts = parse_optional_time("--for", options.lasts, kLongestPolicyOverride);
    if (!lasts)
        return lasts.error();
    if (!*lasts)
        return make_error(ErrorCode::usage, "for how long?",
                          "add --for 1h; for good, change the policy");
    wanted.lasts = **lasts;
    return wanted;
}

// What becomes of the configuration in force, if it may.
Result<Policy> changed_policy(const ConfigFile& own, const ServiceChange& change, bool force) {
    auto tree = read_toml(own.text, own.source);
    if (!tree)
        return tree.error();
    if (const Status changed = change_service(*tree, change); !changed)
        return changed.error();
    auto policy = read_policy(*tree, own.source);
    if (!policy)
        return policy;
    if (const Status compiled = compiles_here(*policy); !compiled)
        return compiled.error();
    const auto above = above_capacity(*policy);
    // What the policy itself has above it, somebody insisted on.
    const auto mine = std::ranges::find_if(above, [&](const std::string& text) {
        return std::ranges::any_of(change.values, [&](const auto& value) {
            return text.starts_with(change.service + '.' + value.first + ' ');
        });
    });
    if (mine != above.end() && !force)
        return failed(*mine, "ask for less, or insist: --force");
    return policy;
}

bool changes_budget(const ServiceChange& change) {
    return std::ranges::any_of(
        change.values, [](const auto& value) { return value.first.starts_with("budget."); });
}

AuditEntry audit_of(const Wanted& wanted, const Options& options) {
    return {options.fleet ? "policy override --fleet" : "policy override", options.service, "",
            options.clear
                ? "as the policy says"
                : format_change_values(wanted.entry.change) + " for " + format_span(wanted.lasts),
            options.reason};
}

Status override_here(const Wanted& wanted, const Options& options, const Session& session,
                     Answer& answer) {
    if (!session.overrides.set)
        return make_error(ErrorCode::failed, "sluiced is not there, and nobody else would end it",
                          "start sluiced; or change the policy: sluicectl policy apply FILE");
    if (options.clear && !session.overrides.has(options.service))
        return make_error(
            ErrorCode::not_found,
            "nothing is overridden at " + in_quotes(options.service) + " on this host",
            "what is: sluicectl status; the fleet's goes with --fleet");
    if (options.dry_run)
        return {};
    session.record(audit_of(wanted, options), answer.warnings);
    const Status done = options.clear ? session.overrides.end(options.service)
                                      : session.overrides.set(wanted.entry, wanted.lasts);
    if (done) {
        session.made();
        answer.changed = true;
        if (const std::string why = session.overrides.unsaved(); !why.empty())
            answer.warnings.push_back("would not outlive a restart of sluiced: " + why);
    }
    return done;
}

Status override_in_fleet(const Wanted& wanted, const Options& options, PolicyDesk& desk,
                         const Session& session, Answer& answer) {
    if (desk.pointers().current == 0)
        return failed(
            "the fleet has no policy yet that could be overridden",
            "push one: sluicectl policy push FILE; on this host alone: leave out --fleet");
    if (options.dry_run)
        return {};
    const Status recorded =
        desk.fleet().record(session, audit_of(wanted, options), answer.warnings);
    if (!recorded)
        return recorded;
    const auto lasts = std::chrono::duration_cast<milliseconds>(wanted.lasts);
    const auto reply = desk.fleet().write_replicated(policy_override_command(
        desk.keys(), wanted.entry, options.clear ? milliseconds(0) : lasts));
    const auto done = reply ? parse_policy_overridden(*reply) : reply.error();
    if (!done)
        return done.error();
    session.made();
    answer.changed = true;
    desk.write_shared_budgets(answer.warnings);
    return {};
}

Result<Answer> run(const Options& options, const Session& session) {
    const auto wanted = read_options(options, session.who);
    if (!wanted)
        return wanted.error();
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    auto own = current_policy(**gate);
    if (!own)
        return own.error();
    Answer answer;
    if (!options.clear) {
        const auto policy = changed_policy({own->policy, own->text, own->source},
                                           wanted->entry.change, options.force);
        if (!policy)
            return policy.error();
        const Service* service = find_service(*policy, options.service);
        if (!options.fleet && service != nullptr && service->shared &&
            changes_budget(wanted->entry.change))
            return failed(options.service + "'s budget is the whole fleet's", "add --fleet");
    }
    Status done;
    if (options.fleet) {
        auto desk = PolicyDesk::open(session);
        if (!desk)
            return desk.error();
        done = override_in_fleet(*wanted, options, *desk, session, answer);
    } else {
        done = override_here(*wanted, options, session, answer);
    }
    if (!done)
        return done.error();
    Json values = Json::object();
    for (const auto& [key, value] : wanted->entry.change.values)
        values[key] = value;
    answer.data = {{"service", options.service},
                   {"values", values},
                   {"fleet", options.fleet},
                   {"lasts_s", options.clear ? Json() : seconds(wanted->lasts)},
                   {"dry_run", options.dry_run}};
    return answer;
}

void show(const Json& data, Screen& screen) {
    const bool dry_run = data["dry_run"];
    std::string text = data["service"].get<std::string>();
    text += data["fleet"] ? " on all hosts" : "";
    if (data["lasts_s"].is_null())
        return screen.line(text + (dry_run ? " would be" : " is") + " as the policy says.");
    screen.line(text + (dry_run ? " would have" : " has") + " other numbers for " +
                format_seconds(data["lasts_s"].get<double>()) + ':');
    for (const auto& [key, value] : data["values"].items())
        screen.line("  " + key + " = " + value.get<std::string>());
}

}  // namespace

void add_policy_override(CommandLine& line, CLI::App* policy) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("override", "Other numbers for a service, for a time", policy);
    app->add_option("SERVICE", options->service, "As in the policy")->required();
    app->add_option("VALUES", options->values, "Such as budget.data=60000/s");
    app->add_option("--for", options->lasts, "Then the policy's come back")->type_name("TIME");
    app->add_flag("--clear", options->clear, "They come back now");
    app->add_flag("--fleet", options->fleet, "On all hosts");
    app->add_option("--reason", options->reason, "For the audit log")->type_name("TEXT");
    app->add_flag("--force", options->force, "A budget may be above the service's capacity");
    app->add_flag("--dry-run", options->dry_run, "Say whether it would do, and change nothing");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
