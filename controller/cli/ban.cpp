// sluicectl ban and unban: one prefix at a time.
#include "cli/ban_checks.h"
#include "cli/command_line.h"
#include "cli/enforcement.h"
#include "cli/fleet_rules.h"
#include "cli/format.h"
#include "cli/prefix_argument.h"
#include "gate/source_rules.h"
#include "operate/ban_guard.h"
#include "operate/protected_sources.h"

namespace sluice::cli {

namespace {

struct BanOptions {
    std::string prefix;
    std::string ttl = "1h";
    std::string reason;
    std::string source{kOperatorList};
    bool force = false;
    bool fleet = false;
    bool dry_run = false;
    bool quiet = false;
};

Status note_spared(SourceRules& rules, const Prefix& prefix,
                   const std::vector<ProtectedSource>& guarded,
                   std::vector<std::string>& warnings) {
    const auto spared = spared_inside(rules, prefix, guarded);
    if (!spared)
        return spared.error();
    constexpr size_t kShown = 3;
    for (size_t i = 0; i < std::min(kShown, spared->size()); ++i)
        warnings.push_back("not reached by this ban: " + (*spared)[i]);
    if (spared->size() > kShown)
        warnings.push_back("and " + format_count(spared->size() - kShown) + " more");
    return {};
}

std::string bans_before(const std::vector<ListedRule>& words, uint64_t now_ns) {
    return words.empty() ? "not banned" : "banned by " + describe_words(words, now_ns);
}

Result<RuleOutcome> rehearse(const std::optional<ListedRule>& standing, Ttl ttl, uint64_t now_ns) {
    const auto until = deadline_after(now_ns, ttl);
    if (!until)
        return until.error();
    RuleOutcome outcome;
    outcome.added = !standing;
    outcome.until_ns = *until;
    if (standing && standing->until_ns > *until) {
        outcome.kept_longer = true;
        outcome.until_ns = standing->until_ns;
    }
    return outcome;
}

Result<Answer> ban(const BanOptions& options, const Session& session) {
    Answer answer;
    answer.quiet = options.quiet;
    const auto argument = parse_banned(options.prefix, answer.warnings);
    if (!argument)
        return argument.error();
    const auto ttl = parse_ttl(options.ttl);
    if (!ttl)
        return ttl.error();
    if (const Status source = check_source(options.source); !source)
        return source.error();
    if (const Status reason = check_reason(options.reason, session.who); !reason)
        return reason.error();
    if (options.fleet)
        return ban_in_fleet({.ban = {.prefix = argument->prefix,
                                     .source = options.source,
                                     .ttl = *ttl,
                                     .reason = options.reason},
                             .typed = *Prefix::parse(options.prefix),
                             .ttl = options.ttl,
                             .force = options.force,
                             .dry_run = options.dry_run},
                            session, answer);
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    Tables& tables = gate->tables;
    SourceRules rules(tables);
    const Operator& who = session.who;
    const Prefix& prefix = argument->prefix;

    // The host's own follow it whatever becomes of the ban; whoever asks is protected once it is
    // accepted, and in the log.
    if (!options.dry_run)
        if (const Status refreshed = refresh_protection(tables, rules, {who.name, {}}); !refreshed)
            return refreshed.error();
    const auto guarded = wanted_protections(tables, who);
    if (!guarded)
        return guarded.error();
    // The very address that was typed must not be a protected one, even where its /64 is not.
    const Prefix typed = *Prefix::parse(options.prefix);
    for (const Prefix& asked : {typed, prefix})
        if (const Status allowed = check_ban(rules, asked, options.force, *guarded); !allowed)
            return allowed.error();

    const auto words = words_on(rules, prefix, RuleKind::ban);
    if (!words)
        return words.error();
    std::optional<ListedRule> standing;
    if (const auto own = std::ranges::find(*words, options.source, &ListedRule::list);
        own != words->end())
        standing = *own;
    // Who only makes it last longer need not repeat why.
    const bool keeps_reason = options.reason.empty() && standing;
    const BanRequest request{.ttl = *ttl,
                             .list = options.source,
                             .reason = keeps_reason ? standing->reason : options.reason,
                             .actor = who.to_string(),
                             .forced = options.force};
    const uint64_t now_ns = gate_now_ns(tables);
    if (!options.dry_run) {
        session.record({"ban", prefix.to_string(), bans_before(*words, now_ns),
                        options.source + " for " + options.ttl, options.reason},
                       answer.warnings);
        if (const Status known = protect_operator(rules, who); !known)
            return known.error();
    }
    const auto outcome =
        options.dry_run ? rehearse(standing, *ttl, now_ns) : rules.ban(prefix, request);
    if (!outcome)
        return outcome.error();
    session.made();
    const auto enforced = is_enforced(tables, answer.warnings);
    if (!enforced)
        return enforced.error();
    for (const Status& noted :
         {options.force ? Status{} : note_spared(rules, prefix, *guarded, answer.warnings),
          warn_of_own_ban(rules, who, answer.warnings)})
        if (!noted)
            return noted.error();
    answer.changed = !options.dry_run;
    answer.data = {{"prefix", prefix.to_string()},
                   {"source", options.source},
                   {"expires_in_s", seconds_until(outcome->until_ns, now_ns)},
                   {"added", outcome->added},
                   {"kept_longer", outcome->kept_longer},
                   {"enforced", *enforced && !options.dry_run},
                   {"dry_run", options.dry_run}};
    return answer;
}

void show_ban(const Json& data, Screen& screen) {
    const bool dry_run = data["dry_run"];
    const std::string verb =
        data["added"] ? (dry_run ? "Would ban " : "Banned ") : "Is banned already: ";
    const bool fleet = data.contains("fleet");
    std::string line = verb + data["prefix"].get<std::string>() +
                       (fleet ? " in the whole fleet" : "") + ", ends " +
                       format_expiry(data["expires_in_s"]);
    if (data["kept_longer"])
        line += std::string("; the longer time ") + (dry_run ? "would stay" : "stays") +
                "; to shorten it: sluicectl unban " + data["prefix"].get<std::string>() +
                (fleet ? " --fleet" : "");
    else if (!data["added"])
        line += dry_run ? "; would be extended" : "; extended";
    screen.line(line + '.');
}

// Whom one does not want to see banned for longer is allowed.
constexpr std::chrono::hours kLongestGrace{7 * 24};

struct UnbanOptions {
    std::string prefix;
    std::optional<std::string> source;
    std::optional<std::string> grace;
    bool fleet = false;
    bool ignore_missing = false;
};

std::string what_is_left(const std::optional<std::string>& source,
                         std::optional<std::chrono::nanoseconds> grace) {
    return "not banned" + (source ? " by " + *source : std::string()) +
           (grace ? ", nor to be for " + format_span(*grace) : std::string());
}

Result<Answer> unban(const UnbanOptions& options, const Session& session) {
    Answer answer;
    const auto argument = parse_banned(options.prefix, answer.warnings);
    if (!argument)
        return argument.error();
    if (options.source)
        if (const Status source = check_source(*options.source); !source)
            return source.error();
    const auto grace = parse_optional_time("--grace", options.grace, kLongestGrace);
    if (!grace)
        return grace.error();
    if (options.fleet)
        return unban_in_fleet(
            {.prefix = argument->prefix, .source = options.source, .grace = *grace},
            options.ignore_missing, session, answer);
    auto gate = session.open_to_write();
    if (!gate)
        return gate.error();
    const Prefix& prefix = argument->prefix;
    SourceRules rules(gate->tables);
    const auto words = words_on(rules, prefix, RuleKind::ban);
    if (!words)
        return words.error();
    const std::optional<std::string_view> list =
        options.source ? std::optional<std::string_view>(*options.source) : std::nullopt;
    const auto inside = prefix.is_host() ? Result<size_t>(0) : rules.bans_inside(prefix, list);
    if (!inside)
        return inside.error();
    session.record({"unban", prefix.to_string(),
                    *inside > words->size() ? plural(*inside, "ban") + " inside"
                                            : bans_before(*words, gate_now_ns(gate->tables)),
                    what_is_left(options.source, *grace), ""},
                   answer.warnings);
    const auto outcome = rules.unban(prefix, list);
    const bool missing = !outcome && outcome.error().code == ErrorCode::not_found;
    if (!outcome && !(missing && options.ignore_missing))
        return outcome.error();
    if (missing && !*grace)
        session.refused(outcome.error());
    session.made();
    if (*grace)
        if (const auto kept = rules.protect(prefix, {.ttl = **grace,
                                                     .list = std::string(kGrace),
                                                     .reason = "grace after an unban",
                                                     .actor = session.who.to_string()});
            !kept)
            return kept.error().with_context("unbanned, but without its grace");
    const RemovalOutcome done = missing ? RemovalOutcome{} : *outcome;
    if (done.still_under)
        answer.warnings.push_back("still banned, by " + done.still_under->to_string());
    if (done.by_hand)
        answer.warnings.push_back("still banned by hand: delete it from " + session.pin_dir +
                                  "/bans_manual with bpftool");
    answer.changed = !missing || *grace;
    answer.data = {
        {"prefix", prefix.to_string()},
        {"removed", done.removed},
        {"grace_s", seconds(*grace)},
        {"still_banned_by", done.still_under ? Json(done.still_under->to_string()) : Json()}};
    return answer;
}

void show_unban(const Json& data, Screen& screen) {
    const auto removed = data["removed"].get<uint64_t>();
    const auto prefix = data["prefix"].get<std::string>();
    const std::string where = data.contains("fleet") ? " in the whole fleet" : "";
    screen.line(removed == 0
                    ? "Was not banned" + where + ": " + prefix + '.'
                    : "Unbanned " + prefix + where + ": " + plural(removed, "ban") + " removed.");
    if (!data["grace_s"].is_null())
        screen.line("No ban hits it for " + format_seconds(data["grace_s"].get<double>()) +
                    ", except by force.");
}

}  // namespace

void add_ban(CommandLine& line) {
    auto options = std::make_shared<BanOptions>();
    CLI::App* app = line.add("ban", "Drop everything from a prefix");
    app->add_option("PREFIX", options->prefix, "192.0.2.1, 192.0.2.0/24, 2001:db8::/48")
        ->required();
    app->add_option("--ttl", options->ttl, "How long, or permanent")
        ->type_name("TIME")
        ->capture_default_str();
    app->add_option("--reason", options->reason, "Shown by bans and why")->type_name("TEXT");
    app->add_option("--source", options->source, "The list that says so")
        ->type_name("NAME")
        ->capture_default_str();
    app->add_flag("--force", options->force, "Even where it is protected, or very wide");
    app->add_flag("--fleet", options->fleet, "On all hosts of the fleet");
    app->add_flag("--dry-run", options->dry_run, "Say what would change, and change nothing");
    app->add_flag("--quiet", options->quiet, "No text on success");
    line.handle(
        app, [options](const Session& session) { return ban(*options, session); }, show_ban);

    auto unban_options = std::make_shared<UnbanOptions>();
    CLI::App* un = line.add("unban", "Take back the bans of a prefix and of all inside it");
    un->add_option("PREFIX", unban_options->prefix, "As it was banned")->required();
    un->add_option("--source", unban_options->source, "Only this list's ban")->type_name("NAME");
    un->add_option("--grace", unban_options->grace, "No ban hits it for so long, except by force")
        ->type_name("TIME");
    un->add_flag("--fleet", unban_options->fleet, "The fleet's bans, on all hosts");
    un->add_flag("--ignore-missing", unban_options->ignore_missing,
                 "Succeed where there is no such ban");
    line.handle(
        un, [unban_options](const Session& session) { return unban(*unban_options, session); },
        show_unban);
}

}  // namespace sluice::cli
