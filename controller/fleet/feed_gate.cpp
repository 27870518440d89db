#include "fleet/feed_gate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "gate/listing.h"
#include "operate/protected_sources.h"

namespace sluice {

namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds;

nanoseconds time_left(uint64_t until_ms, uint64_t now_ms) {
    return milliseconds(static_cast<int64_t>(until_ms - now_ms));
}

uint64_t wall_ms() {
    return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
}

// The kind and the list behind a name in the book.
std::pair<RuleKind, std::string> list_of(std::string_view member) {
    const bool allow = member.starts_with('+');
    const std::string_view source =
        member.substr(allow ? 1 : 0, member.find('|') - (allow ? 1 : 0));
    return {allow ? RuleKind::allow : RuleKind::ban, fleet_list(source)};
}

void count(FeedRefusals& refused, const Refusals& more, std::string_view why) {
    if (refused.first.empty() && !more.named.empty())
        refused.first = more.named.front().to_string() + ' ' + std::string(why);
    refused.count += more.count;
}

// What the fleet says about each switch, and which are to be given back.
using WantedSwitches = std::map<std::string, std::optional<FleetMode>>;

WantedSwitches wanted_switches(const Tables& tables, const FeedBook& book, uint64_t now_ms) {
    WantedSwitches wanted;
    // Behind an operator's word for a time the fleet's may come back, too.
    for (const SwitchEntry& entry : list_overrides(tables))
        wanted[entry.id] = std::nullopt;
    for (const auto& [target, held] : book.switches) {
        if (held.word.is_over(now_ms))
            continue;
        const uint64_t end = held.word.expires_ms;
        wanted[target] = FleetMode{held.word.mode,
                                   end == 0 ? std::nullopt : std::optional(time_left(end, now_ms))};
    }
    return wanted;
}

// The gate switched off everywhere, whatever its operators said.
bool is_panic(const WantedSwitches& wanted) {
    const auto gate = wanted.find(format_switch_target(WholeGate{}));
    return gate != wanted.end() && gate->second && beats_operator(WholeGate{}, gate->second->mode);
}

}  // namespace

Result<FeedRefusals> FeedGate::put(std::span<const FeedRecord> records, const FeedBook& book,
                                   uint64_t now_ms) {
    using Origin = std::tuple<std::string, std::string, std::string>;  // list, actor, reason
    std::map<Origin, std::vector<RuleEntry>> entries;
    FeedRefusals refused;
    for (const FeedRecord& record : records) {
        if (record.expires_ms != 0 && record.expires_ms <= now_ms)
            continue;
        if (record.kind == RuleKind::ban && is_too_wide(record.prefix) && !record.forced) {
            Refusals wide;
            wide.add(record.prefix);
            count(refused, wide, "is too wide to be banned by mistake");
            continue;
        }
        const std::string list = fleet_list(record.source);
        // Of one list's bans the longest holds; but here the feed knows better.
        const HeldRecord* held = book.find(record.prefix, record.member);
        const bool is_shorter = held != nullptr && record.expires_ms != 0 &&
                                (held->expires_ms == 0 || held->expires_ms > record.expires_ms);
        if (is_shorter)
            (void)rules_.withdraw(record.prefix, record.kind, list);
        RuleEntry entry{.prefix = record.prefix,
                        .kind = record.kind,
                        .exempt = record.exempt,
                        .since_s = record.since_s};
        if (record.expires_ms != 0)
            entry.ttl = time_left(record.expires_ms, now_ms);
        entries[{list, record.actor, record.reason}].push_back(entry);
    }
    for (const auto& [origin, group] : entries) {
        const auto& [list, actor, reason] = origin;
        const auto outcome = rules_.import(
            list, group,
            {.reason = reason, .actor = actor, .however_wide = true, .list_overruled = true});
        if (!outcome)
            return outcome.error();
        count(refused, outcome->allowed, "is allowed here");
        count(refused, outcome->protected_, "is protected here");
    }
    return refused;
}

Status FeedGate::remove(const HeldMember& member) {
    const auto [kind, list] = list_of(member.member);
    const auto gone = rules_.withdraw(member.record.prefix, kind, list);
    return gone || gone.error().code == ErrorCode::not_found ? Status() : gone.error();
}

Status FeedGate::grant_grace(const FeedRemoval& removal, uint64_t now_ms) {
    if (removal.grace_until_ms <= now_ms)
        return {};
    const auto kept =
        rules_.protect(removal.prefix, {.ttl = time_left(removal.grace_until_ms, now_ms),
                                        .list = std::string(kGrace),
                                        .reason = "grace after an unban",
                                        .actor = removal.actor});
    return kept ? Status() : kept.error();
}

bool FeedGate::follows_switches(const FeedBook& book, uint64_t now_ms) const {
    const auto all = wanted_switches(tables_, book, now_ms);
    if (book.beaten && !is_panic(all))
        return false;
    return std::ranges::all_of(all, [&](const auto& wanted) {
        const auto target = parse_switch_target(wanted.first);
        return !target || !mode_of(tables_, *target) ||
               follows_fleet(tables_, *target, wanted.second);
    });
}

Status FeedGate::follow_switches(FeedBook& book, uint64_t now_ms) {
    Status status;
    const auto all = wanted_switches(tables_, book, now_ms);
    for (const auto& [id, wanted] : all) {
        const auto target = parse_switch_target(id);
        // What this host's policy does not have needs no switch.
        if (!target || !mode_of(tables_, *target))
            continue;
        const auto beaten = follow_fleet(tables_, *target, wanted);
        if (!beaten) {
            status = beaten.error();
            continue;
        }
        if (*beaten)
            book.beaten = FeedBook::Beaten{
                (*beaten)->mode,
                (*beaten)->left
                    ? wall_ms() + static_cast<uint64_t>((*beaten)->left->count() / 1'000'000)
                    : 0};
    }
    if (!book.beaten || is_panic(all))
        return status;
    // The fleet has let go of the gate.
    const FeedBook::Beaten before = *std::exchange(book.beaten, std::nullopt);
    if (before.until_ms != 0 && before.until_ms <= wall_ms())
        return status;
    SwitchTiming timing;
    if (before.until_ms != 0)
        timing.lasts = time_left(before.until_ms, wall_ms());
    const auto back = set_mode(tables_, WholeGate{}, before.mode, timing);
    return back ? status : back.error();
}

Result<std::vector<unsigned>> FeedGate::align(FeedBook& book) {
    Listing listing(tables_);
    if (const Status begun = listing.begin(); !begun)
        return begun.error();
    const uint64_t now_ns = gate_now_ns(tables_);
    std::set<std::string> listed;
    std::vector<unsigned> unknown;
    const Status read = listing.for_each([&](const Member& member) {
        const std::string list = listing.list_name(member.key.list);
        if (!is_fleet_list(list) || !member.live(now_ns))
            return;
        const std::string name = feed_member(member.kind(), source_of(list), member.prefix());
        listed.insert(name);
        if (const HeldRecord* held = book.find(member.prefix(), name); held && held->rev != 0)
            return;
        const uint64_t until_ns = member.entry.until_ns;
        book.put(name,
                 {.prefix = member.prefix(),
                  .expires_ms =
                      until_ns == SLUICE_NEVER ? 0 : wall_ms() + (until_ns - now_ns) / 1'000'000});
        unknown.push_back(feed_bucket(member.prefix()));
    });
    if (!read)
        return read.error();
    std::vector<HeldMember> missing;
    book.for_each([&](const std::string& member, const HeldRecord& record) {
        if (!listed.contains(member))
            missing.push_back({member, record});
    });
    for (const auto& [member, record] : missing)
        book.erase(record.prefix, member);
    return unknown;
}

}  // namespace sluice
