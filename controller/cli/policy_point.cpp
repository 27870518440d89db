#include "cli/policy_point.h"

#include <algorithm>

#include "cli/format.h"
#include "cli/policy_desk.h"
#include "fleet/canary_comparison.h"

namespace sluice::cli {

namespace {

std::string named(uint64_t version) {
    return "version " + std::to_string(version);
}

Error no_policy_yet(const std::string& fleet) {
    return make_error(ErrorCode::not_found, "fleet " + fleet + " has no policy yet",
                      "give it one: sluicectl policy push FILE");
}

// Makes `version` current, which ends the canary.
Result<Answer> point(const std::string& command, uint64_t version, bool force, PolicyDesk& desk,
                     const Session& session) {
    const PolicyPointers& pointers = desk.pointers();
    const auto stored = desk.read(version);
    if (!stored)
        return stored.error();
    Answer answer;
    const bool ends_canary = pointers.canary != 0;
    const bool stays = version == pointers.current;
    if (!stays)
        if (const Status fine = desk.check(*stored, force, answer.warnings); !fine)
            return fine.error();
    answer.data = {{"fleet", desk.fleet().fleet()},
                   {"version", version},
                   {"before", pointers.current},
                   {"ended_canary", ends_canary ? Json(pointers.canary) : Json()},
                   {"pushed_by", stored->about.by},
                   {"note", stored->about.note}};
    if (stays && !ends_canary) {
        answer.warnings.push_back(named(version) + " is current already");
        return answer;
    }
    std::string before = named(pointers.current);
    if (ends_canary)
        before += ", and " + named(pointers.canary) + " for " + pointers.canary_hosts;
    const Status recorded = desk.fleet().record(
        session,
        {command, "fleet " + desk.fleet().fleet(), before, named(version) + " for all hosts", ""},
        answer.warnings);
    if (!recorded)
        return recorded.error();
    const auto reply = desk.fleet().write_replicated(policy_point_command(
        desk.keys(), {.version = version,
                      .rev = pointers.rev,
                      .actor = session.who.name,
                      .from = session.who.from ? session.who.from->to_string() : ""}));
    const auto done = reply ? parse_policy_pointed(*reply) : reply.error();
    if (!done)
        return done.error();
    if (done->outcome == PolicyPointed::Outcome::moved)
        return failed("somebody else changed the fleet's policy at the same moment",
                      "look at it, and try again: sluicectl policy history");
    if (done->outcome == PolicyPointed::Outcome::missing)
        return make_error(ErrorCode::not_found, "the fleet has no " + named(version) + " any more",
                          "those it has: sluicectl policy history");
    session.made();
    answer.changed = true;
    if (!stays)
        desk.write_shared_budgets(answer.warnings);
    return answer;
}

std::string percent(double part) {
    constexpr double kPercent = 100;
    return format_short(part * kPercent) + " %";
}

// What one host can't have, others of its kind can't either.
Status check_refusals(const FleetView& view, uint64_t version, bool force,
                      std::vector<std::string>& warnings) {
    const auto refuses = [&](const HostView& host) {
        return !host.is_away() && host.last.refused_version == version;
    };
    const auto hosts = static_cast<uint64_t>(std::ranges::count_if(view.hosts, refuses));
    if (hosts == 0)
        return {};
    const Heartbeat& first = std::ranges::find_if(view.hosts, refuses)->last;
    const std::string told = plural(hosts, "host") + " could not put " + named(version) +
                             " in force: " + first.name + " (" + first.id.substr(0, 8) +
                             "): " + first.refusal;
    if (!force)
        return failed(told, "all of them: sluicectl policy history; to insist: --force");
    warnings.push_back(told);
    return {};
}

// Cutting real users looks like this: many sources, little each.
Status check_canary(const FleetView& view, const PolicyPointers& pointers, bool force,
                    std::vector<std::string>& warnings) {
    const CanaryComparison compared = compare_canary(view, pointers.canary, pointers.current);
    if (!compared.is_known()) {
        warnings.push_back("its hosts have seen too few packets to say what " +
                           named(pointers.canary) + " holds back");
        return {};
    }
    const std::string told =
        named(pointers.canary) + " holds back " + percent(compared.canary.share()) +
        " of its hosts' packets, where the others hold back " + percent(compared.others.share());
    if (!compared.holds_back_more())
        return {};
    const CutRate& rate = compared.canary.rate;
    const std::string whose = ", from " + plural(static_cast<uint64_t>(rate.sources), "source") +
                              ", of which the ten heaviest have " + percent(rate.heaviest);
    if (!compared.is_wide() || force) {
        warnings.push_back(told + whose);
        return {};
    }
    return failed(told + whose + ": that is how a limit looks that cuts off real users",
                  "look at them on one of its hosts: sluicectl top; to insist: --force");
}

}  // namespace

Result<Answer> promote_policy(const PromoteOptions& options, const Session& session) {
    std::optional<uint64_t> wanted;
    if (options.version) {
        const auto parsed = parse_version("V", *options.version);
        if (!parsed)
            return parsed.error();
        wanted = *parsed;
    }
    auto desk = PolicyDesk::open(session);
    if (!desk)
        return desk.error();
    if (desk->pointers().last == 0)
        return no_policy_yet(desk->fleet().fleet());
    const uint64_t canary = desk->pointers().canary;
    if (!wanted && canary == 0)
        return make_error(ErrorCode::not_found, "there is no canary to promote",
                          "name a version: sluicectl policy promote V");
    const uint64_t version = wanted.value_or(canary);
    const auto view = read_all_hosts(desk->fleet().redis(), desk->fleet().fleet());
    if (!view)
        return view.error().with_context("Redis");
    std::vector<std::string> warnings;
    Status fine = check_refusals(*view, version, options.force, warnings);
    if (fine && version == canary)
        fine = check_canary(*view, desk->pointers(), options.force, warnings);
    if (!fine)
        return fine.error();
    auto answer = point("policy promote", version, options.force, *desk, session);
    if (answer)
        answer->warnings.insert(answer->warnings.begin(), warnings.begin(), warnings.end());
    return answer;
}

Result<Answer> rollback_policy(const RollbackOptions& options, const Session& session) {
    std::optional<uint64_t> wanted;
    if (options.version) {
        const auto parsed = parse_version("V", *options.version);
        if (!parsed)
            return parsed.error();
        wanted = *parsed;
    }
    auto desk = PolicyDesk::open(session);
    if (!desk)
        return desk.error();
    const PolicyPointers& pointers = desk->pointers();
    if (pointers.current == 0)
        return no_policy_yet(desk->fleet().fleet());
    if (!wanted && pointers.canary != 0)
        wanted = pointers.current;
    if (!wanted) {
        const auto current = desk->read(pointers.current);
        if (!current)
            return current.error();
        if (current->about.before == 0)
            return make_error(ErrorCode::not_found,
                              named(pointers.current) + " is the first that the fleet had",
                              "to go to another one: sluicectl policy rollback V");
        wanted = current->about.before;
    }
    return point("policy rollback", *wanted, options.force, *desk, session);
}

void show_point(const Json& data, Screen& screen) {
    const std::string fleet = data["fleet"].get<std::string>();
    std::string text = "Version " + data["version"].dump() + " of fleet " + fleet +
                       " is current; all hosts have it within a second.";
    screen.line(text);
    if (!data["ended_canary"].is_null() && data["ended_canary"] != data["version"])
        screen.line("The canary of version " + data["ended_canary"].dump() + " is over.");
}

}  // namespace sluice::cli
