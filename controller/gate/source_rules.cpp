#include "gate/source_rules.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "gate/table_list.h"

namespace sluice {

namespace {

// How many expired prefixes one operation clears away beside its own work.
constexpr size_t kSweptAtOnce = 256;
constexpr unsigned kWidestIpv4 = 8;   // the largest block that was ever handed out
constexpr unsigned kWidestIpv6 = 19;  // the same for IPv6

std::string_view noun(RuleKind kind) {
    return kind == RuleKind::allow ? "allow" : "ban";
}

}  // namespace

bool is_too_wide(const Prefix& prefix) {
    return prefix.length() < (prefix.family() == Family::ipv4 ? kWidestIpv4 : kWidestIpv6);
}

Result<uint64_t> deadline_after(uint64_t now_ns, const Ttl& ttl) {
    if (!ttl)
        return uint64_t{SLUICE_NEVER};
    if (ttl->count() <= 0)
        return make_error(ErrorCode::usage, "a rule must last for a time above zero");
    if (*ttl > kLongestTtl)
        return make_error(ErrorCode::usage, "a rule can last for 30 years at most",
                          "make it permanent");
    return now_ns + static_cast<uint64_t>(ttl->count());
}

std::vector<uint64_t> combine(std::span<const Member> members, uint64_t now_ns) {
    uint64_t ban = 0;
    uint64_t forced = 0;
    uint64_t allow = 0;
    uint64_t exempt = 0;
    uint64_t guarded = 0;
    const Member* classified = nullptr;
    for (const auto& member : members) {
        if (!member.live(now_ns))
            continue;
        const uint64_t until = until_from_ns(member.entry.until_ns);
        const auto extend = [until](uint64_t& longest) { longest = std::max(longest, until); };
        switch (member.kind()) {
            case RuleKind::ban:
                extend((member.entry.flags & SLUICE_RULE_FORCED) != 0 ? forced : ban);
                break;
            case RuleKind::allow:
                extend((member.entry.flags & SLUICE_RULE_EXEMPT) != 0 ? exempt : allow);
                break;
            case RuleKind::protect:
                extend(guarded);
                break;
            case RuleKind::classify: {
                // Of several classes the one that is for a time only, then the newest.
                const auto rank = [](const Member& m) {
                    return std::pair(m.entry.until_ns != SLUICE_NEVER, m.entry.since_s);
                };
                if (classified == nullptr || rank(member) > rank(*classified))
                    classified = &member;
                break;
            }
        }
    }
    std::vector<uint64_t> values;
    if (members.empty())
        return values;
    const uint64_t length = members.front().key.length;
    const auto add = [&](uint64_t until, uint64_t flags, uint64_t source_class) {
        values.push_back(sluice_rule_value(until, flags, source_class, length));
    };
    if (forced != 0)
        add(forced, SLUICE_RULE_BAN | SLUICE_RULE_FORCED, 0);
    if (ban > forced)
        add(ban, SLUICE_RULE_BAN, 0);
    if (exempt != 0)
        add(exempt, SLUICE_RULE_ALLOW | SLUICE_RULE_EXEMPT, 0);
    if (allow > exempt)
        add(allow, SLUICE_RULE_ALLOW, 0);
    if (guarded != 0)
        add(guarded, SLUICE_RULE_PROTECTED, 0);
    if (classified != nullptr)
        add(until_from_ns(classified->entry.until_ns), SLUICE_RULE_CLASS,
            classified->entry.source_class);
    return values;
}

SourceRules::SourceRules(Tables& tables) : tables_(&tables), listing_(tables), rules_(tables) {}

Status SourceRules::refresh() {
    rules_.begin();
    return listing_.begin();
}

Status SourceRules::begin() {
    if (auto fresh = refresh(); !fresh)
        return fresh;
    // A writer that was killed half-way has left tables that do not follow from the listing.
    return tables_->settings().rules_dirty != 0 ? rebuild_tables() : Status{};
}

void SourceRules::mark_dirty() {
    tables_->settings().rules_dirty = 1;
}

void SourceRules::mark_done() {
    tables_->settings().changes++;
    tables_->settings().rules_dirty = 0;
}

Status SourceRules::clear_up() {
    auto expired = rules_.find_expired(kSweptAtOnce);
    for (;;) {
        const auto displaced = rules_.take_displaced();
        expired.insert(expired.end(), displaced.begin(), displaced.end());
        if (expired.empty())
            break;
        for (const auto& key : expired)
            if (auto settled = settle(key); !settled)
                return settled;
        expired.clear();
    }
    return rules_.finish();
}

Status SourceRules::finish() {
    const Status finished = clear_up();
    if (finished)
        mark_done();
    return finished;
}

Status SourceRules::settle(const RuleKey& key) {
    const uint64_t now = gate_now_ns(*tables_);
    auto members = listing_.members(key);
    std::erase_if(members, [&](const Member& member) {
        if (member.live(now))
            return false;
        listing_.erase(member);
        return true;
    });
    return rules_.set(key, combine(members, now));
}

Result<RuleOutcome> SourceRules::add(const Prefix& prefix, const Word& word) {
    const uint64_t now = gate_now_ns(*tables_);
    const auto until = deadline_after(now, word.ttl);
    if (!until)
        return until.error();
    const auto list = listing_.find_or_make_list(word.list);
    if (!list)
        return list.error();

    Member member{listing_key(prefix, word.kind, *list), {}};
    const auto old = listing_.find(member.key);
    const bool stood = old && Member{member.key, *old}.live(now);
    member.entry.until_ns = *until;
    member.entry.since_s = stood ? old->since_s : static_cast<uint64_t>(::time(nullptr));
    member.entry.flags = static_cast<uint8_t>(word.flags);
    member.entry.source_class = word.source_class;
    RuleOutcome outcome;
    outcome.added = !stood;
    // Feeds repeat themselves in any order: the longest of one list's bans holds.
    if (stood && word.kind == RuleKind::ban) {
        member.entry.flags |= old->flags;
        outcome.kept_longer = old->until_ns > *until;
        member.entry.until_ns = std::max<uint64_t>(old->until_ns, *until);
    }
    member.entry.note = outcome.kept_longer ? old->note : listing_.note(word.actor, word.reason);
    outcome.until_ns = member.entry.until_ns;

    mark_dirty();
    const auto done = with_room([&]() -> Status {
        if (auto put = listing_.put(member); !put)
            return put;
        const auto key = RuleKey::of(prefix);
        auto settled = settle(key);
        if (!settled) {
            if (old)
                (void)listing_.put({member.key, *old});
            else
                listing_.erase(member);
            (void)settle(key);
        }
        return settled;
    });
    if (auto finished = finish(); !finished)
        return finished.error();
    if (!done)
        return done.error();
    return outcome;
}

Status SourceRules::with_room(const std::function<Status()>& change) {
    auto done = change();
    if (done)
        return done;
    const auto dropped = drop_expired();
    return dropped && *dropped > 0 ? change() : done;
}

std::optional<SourceRules::Cover> SourceRules::cover_of(const RuleKey& key, uint32_t flags) const {
    const uint64_t now = gate_now_ns(*tables_);
    const auto match = [&](uint32_t length) -> std::optional<Cover> {
        const RuleKey wider{sluice_network(key.network, length), length};
        for (const uint64_t value : rules_.values(wider))
            if ((sluice_rule_flags(value) & flags) != 0 && is_live(sluice_rule_until(value), now))
                return Cover{wider, value};
        return std::nullopt;
    };
    std::optional<Cover> widest;
    for (const uint8_t length : rules_.lengths().in_use(key.family()))
        if (length <= key.length)
            if (auto cover = match(length))
                widest = cover;
    if (!widest && key.is_ipv4_host())
        widest = match(key.length);  // plain exact bans are in no list of lengths
    return widest;
}

Status SourceRules::check_ban(const Prefix& prefix, bool forced) const {
    const auto key = RuleKey::of(prefix);
    if (const auto cover = cover_of(key, SLUICE_RULE_ALLOW)) {
        const auto allowed = cover->key.prefix().to_string();
        return failed(prefix.to_string() + " is allowed" +
                          (cover->key == key ? "" : " by " + allowed) +
                          ", and an allow beats every ban",
                      "un-allow it first: sluicectl unallow " + allowed);
    }
    if (forced)
        return {};
    if (is_too_wide(prefix))
        return failed(prefix.to_string() + " is too wide to be banned by mistake",
                      "to insist: --force");
    if (const auto cover = cover_of(key, SLUICE_RULE_PROTECTED))
        return failed(prefix.to_string() + " is protected" +
                          (cover->key == key ? "" : " by " + cover->key.prefix().to_string()),
                      "to insist: --force");
    return {};
}

Result<RuleOutcome> SourceRules::ban(const Prefix& prefix, const BanRequest& request) {
    if (auto begun = begin(); !begun)
        return begun.error();
    if (auto sound = check_ban(prefix, request.forced); !sound)
        return sound.error();
    const unsigned flags = SLUICE_RULE_BAN | (request.forced ? SLUICE_RULE_FORCED : 0U);
    return add(prefix,
               {request.list, RuleKind::ban, request.ttl, flags, 0, request.actor, request.reason});
}

Result<RuleOutcome> SourceRules::allow(const Prefix& prefix, const AllowRequest& request) {
    if (auto begun = begin(); !begun)
        return begun.error();
    if (is_too_wide(prefix) && !request.forced)
        return failed(prefix.to_string() + " is too wide to be allowed by mistake",
                      "to insist: --force");
    const unsigned flags = SLUICE_RULE_ALLOW | (request.exempt ? SLUICE_RULE_EXEMPT : 0U);
    return add(prefix, {request.list, RuleKind::allow, request.ttl, flags, 0, request.actor,
                        request.reason});
}

Result<RuleOutcome> SourceRules::protect(const Prefix& prefix, const ProtectRequest& request) {
    if (auto begun = begin(); !begun)
        return begun.error();
    return add(prefix, {request.list, RuleKind::protect, request.ttl, SLUICE_RULE_PROTECTED, 0,
                        request.actor, request.reason});
}

Result<RuleOutcome> SourceRules::classify(const Prefix& prefix, const ClassifyRequest& request) {
    if (request.source_class == 0)
        return make_error(ErrorCode::usage, "class 0 means that there is none");
    if (auto begun = begin(); !begun)
        return begun.error();
    return add(prefix, {request.list, RuleKind::classify, request.ttl, SLUICE_RULE_CLASS,
                        request.source_class, request.actor, request.reason});
}

Result<RemovalOutcome> SourceRules::unban(const Prefix& prefix,
                                          std::optional<std::string_view> list) {
    return remove(prefix, RuleKind::ban, list);
}

Result<RemovalOutcome> SourceRules::unallow(const Prefix& prefix,
                                            std::optional<std::string_view> list) {
    return remove(prefix, RuleKind::allow, list);
}

Result<RemovalOutcome> SourceRules::withdraw(const Prefix& prefix, RuleKind kind,
                                             std::string_view list) {
    if (auto begun = begin(); !begun)
        return begun.error();
    const uint64_t now = gate_now_ns(*tables_);
    const auto key = RuleKey::of(prefix);
    const auto id = listing_.find_list(list);
    RemovalOutcome outcome;
    mark_dirty();
    for (const auto& member : listing_.members(key, kind)) {
        if (!id || member.key.list != *id)
            continue;
        outcome.removed += member.live(now) ? 1 : 0;
        listing_.erase(member);
    }
    if (auto settled = settle(key); !settled)
        return settled.error();
    if (auto finished = finish(); !finished)
        return finished.error();
    if (outcome.removed == 0)
        return make_error(ErrorCode::not_found, "no such rule for " + prefix.to_string() +
                                                    " in list " + std::string(list));
    return outcome;
}

Error SourceRules::would_not_pass(const Prefix& prefix, RuleKind kind, const Prefix& cover) const {
    std::string hint = "unallow " + cover.to_string();
    if (kind == RuleKind::ban)
        hint = "unban " + cover.to_string() + ", or let this part pass: sluicectl allow " +
               prefix.to_string();
    // One that is listed by itself can go without the other.
    if (kind == RuleKind::ban)
        for (const Member& own : listing_.members(RuleKey::of(prefix), kind))
            if (const std::string list = listing_.list_name(own.key.list); !is_fleet_list(list)) {
                hint += "; to take back its own ban alone: --source " + list;
                break;
            }
    return failed(
        prefix.to_string() + " lies in " + cover.to_string() + ", which would go on holding", hint);
}

bool SourceRules::fleet_says(const Prefix& prefix, RuleKind kind) const {
    const uint64_t now = gate_now_ns(*tables_);
    return std::ranges::any_of(
        listing_.members(RuleKey::of(prefix), kind), [&](const Member& member) {
            return member.live(now) && is_fleet_list(listing_.list_name(member.key.list));
        });
}

Result<std::vector<Member>> SourceRules::inside(const Prefix& prefix, RuleKind kind,
                                                std::optional<std::string_view> list) const {
    const uint64_t now = gate_now_ns(*tables_);
    const auto key = RuleKey::of(prefix);
    const auto id = list ? listing_.find_list(*list) : std::nullopt;
    const auto policy = listing_.find_list(kPolicyList), whitelist = listing_.find_list(kRlList);
    const auto is_kept = [&](const Member& member) {
        return member.key.list == policy || member.key.list == whitelist;
    };
    std::vector<Member> found;
    const auto take = [&](const Member& member) {
        const bool meant = list ? id && member.key.list == *id
                                : !is_fleet_list(listing_.list_name(member.key.list)) &&
                                      (kind == RuleKind::ban || !is_kept(member));
        if (meant && member.live(now))
            found.push_back(member);
    };
    if (prefix.is_host()) {
        for (const Member& member : listing_.members(key, kind))
            take(member);
    } else if (const Status read = listing_.for_each([&](const Member& member) {
                   if (member.kind() == kind && key.contains(member.rule_key()))
                       take(member);
               });
               !read) {
        return read.error();
    }
    std::sort(found.begin(), found.end());
    return found;
}

Result<size_t> SourceRules::bans_inside(const Prefix& prefix,
                                        std::optional<std::string_view> list) const {
    const auto found = inside(prefix, RuleKind::ban, list);
    return found ? Result<size_t>(found->size()) : found.error();
}

Result<RemovalOutcome> SourceRules::remove(const Prefix& prefix, RuleKind kind,
                                           std::optional<std::string_view> list) {
    if (auto begun = begin(); !begun)
        return begun.error();
    const auto key = RuleKey::of(prefix);
    const auto flag = static_cast<uint32_t>(kind);
    const auto cover = cover_of(key, flag);
    if (!list && cover && cover->key.length < key.length)
        return would_not_pass(prefix, kind, cover->key.prefix());

    auto meant = inside(prefix, kind, list);
    if (!meant)
        return meant.error();
    RemovalOutcome outcome;
    outcome.removed = meant->size();
    if (outcome.removed != 0)
        if (const Status applied = apply({.put = {}, .before = {}, .erase = *std::move(meant)});
            !applied)
            return applied.error();

    if (const auto still = cover_of(key, flag))
        outcome.still_under = still->key.prefix();
    outcome.by_hand =
        kind == RuleKind::ban && prefix.is_host() && banned_by_hand(prefix.address()).has_value();
    if (outcome.removed > 0)
        return outcome;

    std::string hint;
    if (outcome.by_hand)
        hint = "it is banned by hand: delete it from " + tables_->pin_dir +
               "/bans_manual with bpftool";
    else if (outcome.still_under && fleet_says(*outcome.still_under, kind))
        hint = "the fleet has " + outcome.still_under->to_string() + ": sluicectl un" +
               std::string(noun(kind)) + ' ' + outcome.still_under->to_string() + " --fleet";
    else if (outcome.still_under && kind == RuleKind::allow && !list)
        hint =
            "the policy allows it: take it out of [sources] allow; or, where list \"rl\" does, "
            "out of the whitelist in Redis";
    else if (outcome.still_under)
        hint = "another list has " + outcome.still_under->to_string();
    return make_error(ErrorCode::not_found,
                      "there is no " + std::string(noun(kind)) + " of " + prefix.to_string() +
                          (list ? " in list " + std::string(*list) : std::string{}),
                      hint);
}

Result<size_t> SourceRules::drop_expired() {
    const uint64_t now = gate_now_ns(*tables_);
    const auto members = listing_.all();
    if (!members)
        return members.error();
    std::vector<RuleKey> expired;
    for (const auto& member : *members)
        if (!member.live(now))
            expired.push_back(member.rule_key());
    for (const auto& key : expired)
        if (auto settled = settle(key); !settled)
            return settled.error();
    return expired.size();
}

Result<size_t> SourceRules::sweep() {
    if (auto begun = begin(); !begun)
        return begun.error();
    mark_dirty();
    auto dropped = drop_expired();
    if (auto finished = finish(); !finished)
        return finished.error();
    return dropped;
}

Status SourceRules::sweep_some() {
    if (auto fresh = refresh(); !fresh)
        return fresh;
    if (tables_->settings().rules_dirty != 0 || rules_.find_expired(1).empty())
        return {};
    mark_dirty();
    const Status cleared = clear_up();
    if (cleared)
        tables_->settings().rules_dirty = 0;
    return cleared;
}

}  // namespace sluice
