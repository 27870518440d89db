#include "cli/fleet_rules.h"

#include "cli/enforcement.h"
#include "cli/fleet_writer.h"
#include "cli/format.h"
#include "gate/source_rules.h"
#include "operate/ban_guard.h"
#include "operate/protected_sources.h"

namespace sluice::cli {

namespace {

std::string_view noun(RuleKind kind) {
    return kind == RuleKind::allow ? "allow" : "ban";
}

Error would_not_pass(const FeedUnban& unban, const std::string& cover) {
    const std::string prefix = unban.prefix.to_string();
    std::string hint = "un" + std::string(noun(unban.kind)) + ' ' + cover + " --fleet";
    if (unban.kind == RuleKind::ban)
        hint += ", or let this part pass: sluicectl allow " + prefix + " --fleet";
    return failed(prefix + " lies in " + cover + ", which the fleet would go on holding", hint);
}

std::string in_words(const FeedUnban& unban) {
    std::string text = "no " + std::string(noun(unban.kind)) + " in the fleet";
    if (unban.source)
        text += " by " + *unban.source;
    if (unban.grace)
        text += ", nor to be for " + format_span(*unban.grace);
    return text;
}

Result<FeedBanned> write_ban(const FleetBanOptions& options, const Session& session,
                             FleetWriter& fleet, Answer& answer) {
    const FeedBan& ban = options.ban;
    const std::string after = ban.kind == RuleKind::allow
                                  ? (ban.exempt ? "exempt for " : "for ") + options.ttl
                                  : ban.source + " for " + options.ttl;
    const Status recorded = fleet.record(
        session,
        {std::string(noun(ban.kind)) + " --fleet", ban.prefix.to_string(), "", after, ban.reason},
        answer.warnings);
    if (!recorded)
        return recorded.error();
    const auto reply = fleet.write(feed_ban_command(fleet.keys(), ban));
    if (!reply)
        return reply.error();
    auto done = parse_feed_banned(*reply);
    if (done) {
        session.made();
        answer.changed = true;
    }
    return done;
}

}  // namespace

Result<Answer> ban_in_fleet(FleetBanOptions options, const Session& session, Answer answer) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto fleet = FleetWriter::open(tables);
    if (!fleet)
        return fleet.error();
    SourceRules rules(tables);
    const auto guarded = wanted_protections(tables, session.who);
    if (!guarded)
        return guarded.error();
    for (const Prefix& asked : {options.typed, options.ban.prefix})
        if (const Status allowed = check_ban(rules, asked, options.force, *guarded); !allowed)
            return allowed.error();
    const auto enforced = is_enforced(tables, answer.warnings);
    if (!enforced)
        return enforced.error();
    options.ban.forced = options.force;
    options.ban.actor = session.who.to_string();
    FeedBanned done{.added = true};
    if (!options.dry_run) {
        const auto written = write_ban(options, session, *fleet, answer);
        if (!written)
            return written.error();
        done = *written;
    }
    answer.data = {{"prefix", options.ban.prefix.to_string()},
                   {"source", options.ban.source},
                   {"fleet", true},
                   {"expires_in_s", options.dry_run ? seconds(options.ban.ttl)
                                                    : fleet->seconds_until(done.expires_ms)},
                   {"added", done.added},
                   {"kept_longer", done.kept_longer},
                   {"enforced", *enforced && !options.dry_run},
                   {"dry_run", options.dry_run}};
    return answer;
}

Result<Answer> allow_in_fleet(FleetBanOptions options, const Session& session, Answer answer) {
    if (is_too_wide(options.ban.prefix) && !options.force)
        return failed(options.ban.prefix.to_string() + " is too wide to be allowed by mistake",
                      "to insist: --force");
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto fleet = FleetWriter::open(tables);
    if (!fleet)
        return fleet.error();
    options.ban.actor = session.who.to_string();
    const auto done = write_ban(options, session, *fleet, answer);
    if (!done)
        return done.error();
    answer.data = {{"prefix", options.ban.prefix.to_string()},
                   {"fleet", true},
                   {"exempt", options.ban.exempt},
                   {"expires_in_s", fleet->seconds_until(done->expires_ms)},
                   {"added", done->added}};
    return answer;
}

Result<Answer> unban_in_fleet(FeedUnban unban, bool ignore_missing, const Session& session,
                              Answer answer) {
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    auto fleet = FleetWriter::open(tables);
    if (!fleet)
        return fleet.error();
    unban.actor = session.who.to_string();
    unban.insists = ignore_missing;
    const Status recorded = fleet->record(session,
                                          {"un" + std::string(noun(unban.kind)) + " --fleet",
                                           unban.prefix.to_string(), "", in_words(unban), ""},
                                          answer.warnings);
    if (!recorded)
        return recorded.error();
    using Outcome = FeedUnbanned::Outcome;
    uint64_t removed = 0;
    FeedUnbanned done;
    do {
        const auto reply = fleet->write(feed_unban_command(fleet->keys(), unban));
        const auto one = reply ? parse_feed_unbanned(*reply) : reply.error();
        if (!one)
            return one.error();
        done = *one;
        removed += done.removed;
    } while (done.outcome == Outcome::more);
    const std::string prefix = unban.prefix.to_string();
    if (done.outcome == Outcome::covered)
        return would_not_pass(unban, done.still_under);
    if (removed == 0 && !ignore_missing)
        return make_error(ErrorCode::not_found,
                          "the fleet has no " + std::string(noun(unban.kind)) + " of " + prefix +
                              (unban.source ? " in list " + *unban.source : std::string()),
                          done.still_under.empty() ? "" : "another list has " + done.still_under);
    session.made();
    if (!done.still_under.empty())
        answer.warnings.push_back("the fleet still has a " + std::string(noun(unban.kind)) +
                                  " of " + done.still_under);
    answer.changed = removed != 0 || unban.grace;
    const char* still = unban.kind == RuleKind::allow ? "still_allowed_by" : "still_banned_by";
    answer.data = {{"prefix", prefix}, {"fleet", true}, {"removed", removed}};
    if (unban.kind == RuleKind::ban)
        answer.data["grace_s"] = seconds(unban.grace);
    answer.data[still] = done.still_under.empty() ? Json() : Json(done.still_under);
    return answer;
}

}  // namespace sluice::cli
