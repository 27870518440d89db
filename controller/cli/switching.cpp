#include "cli/switching.h"

#include "cli/fleet_writer.h"
#include "cli/format.h"
#include "gate/source_rules.h"
#include "operate/operator.h"
#include "operate/protected_sources.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

std::optional<SwitchEntry> standing(const Tables& tables, const SwitchTarget& target) {
    const auto id = format_switch_target(target);
    for (SwitchEntry& entry : list_switches(tables))
        if (entry.id == id)
            return std::move(entry);
    return std::nullopt;
}

// "observe for 30 min, to be confirmed within 1 min"
std::string in_words(std::optional<Mode> wanted, const SwitchTiming& timing) {
    std::string text = wanted ? std::string(mode_name(*wanted)) : "as the policy says";
    if (timing.lasts)
        text += " for " + format_span(*timing.lasts);
    if (timing.confirm)
        text += ", to be confirmed within " + format_span(*timing.confirm);
    return text;
}

// What the switch says once an override is gone.
Result<Mode> mode_of_policy(const Tables& tables, const SwitchTarget& target) {
    const auto entry = standing(tables, target);
    if (entry && !entry->after.empty())
        return parse_mode(entry->after);
    return mode_of(tables, target);
}

}  // namespace

void add_timing(CLI::App* app, TimingOptions& options) {
    app->add_option("--for", options.lasts, "Then what was before comes back")->type_name("TIME");
    app->add_option("--confirm", options.confirm,
                    "Take it back, unless `sluicectl confirm` comes within this time")
        ->type_name("TIME");
}

Result<SwitchTiming> read_timing(const TimingOptions& options) {
    const auto lasts = parse_optional_time("--for", options.lasts, kLongestOverride);
    if (!lasts)
        return lasts.error();
    const auto confirm = parse_optional_time("--confirm", options.confirm, kLongestConfirm);
    if (!confirm)
        return confirm.error();
    return SwitchTiming{*lasts, *confirm};
}

Result<std::optional<Mode>> read_wanted(std::string_view text, std::string_view back_word) {
    if (text == back_word)
        return std::optional<Mode>();
    const auto mode = parse_mode(text);
    if (!mode)
        return make_error(ErrorCode::usage, mode.error().message,
                          mode.error().hint + ' ' + std::string(back_word));
    return std::optional(*mode);
}

Result<Answer> change_mode(const Session& session, Tables& tables, const SwitchTarget& target,
                           std::optional<Mode> wanted, const SwitchTiming& timing,
                           const ChangeOptions& options) {
    if (!wanted && (timing.lasts || timing.confirm))
        return make_error(ErrorCode::usage,
                          "going back to the policy takes neither --for nor "
                          "--confirm");
    const Operator& who = session.who;
    SourceRules rules(tables);
    // Back to the policy can mean more drops as well.
    if (!options.dry_run && wanted.value_or(Mode::enforce) == Mode::enforce)
        if (const Status guarded = refresh_protection(tables, rules, who); !guarded)
            return guarded.error();
    Answer answer;
    const auto replaced = standing(tables, target);
    Result<Mode> before = mode_of(tables, target);
    if (wanted && before)
        if (const Status fits = check_mode_change(tables, target, *wanted, timing); !fits)
            return fits.error();
    Result<Mode> now = before;
    if (options.dry_run)
        now = wanted ? Result<Mode>(*wanted) : mode_of_policy(tables, target);
    else if (before)
        session.record({std::string(options.command), format_switch_target(target),
                        std::string(mode_name(*before)), in_words(wanted, timing), options.reason},
                       answer.warnings);
    if (!options.dry_run && before)
        before = wanted ? set_mode(tables, target, *wanted, timing) : clear_mode(tables, target);
    if (!before)
        return before.error();
    session.made();
    if (!options.dry_run)
        now = mode_of(tables, target);
    if (!now)
        return now.error();
    const auto effective = options.dry_run ? now : effective_mode(tables, target);
    if (!effective)
        return effective.error();

    const std::string id = format_switch_target(target);
    answer.changed = !options.dry_run;
    answer.data = {{"target", id},
                   {"before", mode_name(*before)},
                   {"now", mode_name(*now)},
                   {"effective", mode_name(*effective)},
                   {"lasts_s", seconds(timing.lasts)},
                   {"confirm_within_s", seconds(timing.confirm)},
                   {"dry_run", options.dry_run}};
    if (replaced && replaced->waits_for_confirmation)
        answer.warnings.push_back("a change to " + replaced->now +
                                  " waited for its confirmation; this takes its place");
    if (*effective == Mode::enforce)
        if (const Status looked = warn_of_own_ban(rules, who, answer.warnings); !looked)
            return looked.error();
    if (*effective != *now)
        answer.warnings.push_back("in effect it is " + std::string(mode_name(*effective)) +
                                  ": of gate, service and rule the most lenient wins");
    return answer;
}

Result<Answer> change_mode_in_fleet(const Session& session, const SwitchTarget& target,
                                    std::optional<Mode> wanted, const SwitchTiming& timing,
                                    const ChangeOptions& options) {
    if (timing.confirm)
        return make_error(ErrorCode::usage, "--confirm is of one host's changes",
                          "in the fleet give it an end: --for 10m");
    if (!wanted && timing.lasts)
        return make_error(ErrorCode::usage, "giving a switch back takes no --for");
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    // One that this host's policy does not have is more likely mistyped than another host's.
    if (const auto here = mode_of(tables, target); !here)
        return here.error();
    auto fleet = FleetWriter::open(tables);
    if (!fleet)
        return fleet.error();
    Answer answer;
    const std::string id = format_switch_target(target);
    std::optional<Mode> before;
    if (!options.dry_run) {
        const Status recorded =
            fleet->record(session,
                          {std::string(options.command) + " --fleet", id, "",
                           wanted ? in_words(wanted, timing) : "as each host says", options.reason},
                          answer.warnings);
        if (!recorded)
            return recorded.error();
        const auto reply = fleet->write(feed_switch_command(
            fleet->keys(), id, wanted, timing.lasts, session.who.to_string(), options.reason));
        const auto switched = reply ? parse_feed_switched(*reply) : reply.error();
        if (!switched)
            return switched.error();
        before = *switched;
        if (!wanted && !before)
            return make_error(ErrorCode::not_found, "the fleet says nothing about " + id,
                              "this host's own switches: sluicectl switch list");
        session.made();
    }
    answer.changed = !options.dry_run;
    answer.data = {{"target", id},
                   {"fleet", true},
                   {"before", before ? Json(mode_name(*before)) : Json()},
                   {"now", wanted ? Json(mode_name(*wanted)) : Json()},
                   {"lasts_s", seconds(timing.lasts)},
                   {"dry_run", options.dry_run}};
    return answer;
}

namespace {

void show_change_in_fleet(const Json& data, Screen& screen) {
    const std::string word =
        data["now"].is_null() ? "as each host says" : data["now"].get<std::string>();
    std::string text = data["target"].get<std::string>() +
                       " in the whole fleet: " + (data["dry_run"] ? "would be " : "") + word;
    if (!data["lasts_s"].is_null())
        text += " for " + format_seconds(data["lasts_s"].get<double>());
    screen.line(text, data["now"].is_null() ? Style::plain : style_of_mode(word));
}

}  // namespace

void show_change(const Json& data, Screen& screen) {
    if (data.contains("fleet"))
        return show_change_in_fleet(data, screen);
    const auto now = data["now"].get<std::string>();
    const auto before = data["before"].get<std::string>();
    const bool dry_run = data["dry_run"];
    std::string text = data["target"].get<std::string>() + ": ";
    text += before == now ? (dry_run ? "would stay " : "") + now
                          : (dry_run ? "would go from " : "") + before + " to " + now;
    if (!data["lasts_s"].is_null())
        text += " for " + format_seconds(data["lasts_s"].get<double>());
    screen.line(text, style_of_mode(now));
    if (!data["confirm_within_s"].is_null())
        screen.line(
            (dry_run ? "It would be taken back after " : "Within ") +
            format_seconds(data["confirm_within_s"].get<double>()) +
            (dry_run ? " without a confirmation." : ": sluicectl confirm; or it is taken back."));
}

}  // namespace sluice::cli
