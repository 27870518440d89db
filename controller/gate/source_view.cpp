// What SourceRules answers: lists, one address, counts.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "gate/prefix_set.h"
#include "gate/source_rules.h"
#include "gate/table_list.h"

namespace sluice {

namespace {

bool by_prefix(const RuleKey& a, const RuleKey& b) {
    return std::tie(a.network.high, a.network.low, a.length) <
           std::tie(b.network.high, b.network.low, b.length);
}

// Distinct prefixes among them, which are in order then.
size_t count_distinct(std::vector<RuleKey>& keys) {
    std::sort(keys.begin(), keys.end(), by_prefix);
    return static_cast<size_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
}

// The prefixes that lists want something for. A million of one list need no comparing.
class WantedPrefixes {
  public:
    void add(const Member& member) {
        if (keys_.empty())
            list_ = member.key.list;
        are_of_one_list_ = are_of_one_list_ && member.key.list == list_;
        keys_.push_back(member.rule_key());
    }
    [[nodiscard]] size_t count() { return are_of_one_list_ ? keys_.size() : count_distinct(keys_); }

  private:
    std::vector<RuleKey> keys_;
    uint16_t list_ = 0;
    bool are_of_one_list_ = true;
};

size_t order_of(RuleKind kind) {
    switch (kind) {
        case RuleKind::ban:
            return 0;
        case RuleKind::allow:
            return 1;
        case RuleKind::protect:
            return 2;
        case RuleKind::classify:
            break;
    }
    return 3;
}

// The packet path's own order of precedence, from the flags of all rules together.
SourceStanding standing_of(uint32_t flags) {
    if ((flags & SLUICE_RULE_ALLOW) != 0)
        return (flags & SLUICE_RULE_EXEMPT) != 0 ? SourceStanding::exempt : SourceStanding::allowed;
    if ((flags & SLUICE_RULE_FORCED) != 0)
        return SourceStanding::banned;
    if ((flags & SLUICE_RULE_PROTECTED) != 0)
        return SourceStanding::guarded;
    return (flags & SLUICE_RULE_BAN) != 0 ? SourceStanding::banned : SourceStanding::unknown;
}

// The flag by which a standing can be told.
uint32_t deciding_flag(SourceStanding standing, uint32_t flags) {
    switch (standing) {
        case SourceStanding::exempt:
            return SLUICE_RULE_EXEMPT;
        case SourceStanding::allowed:
            return SLUICE_RULE_ALLOW;
        case SourceStanding::guarded:
            return SLUICE_RULE_PROTECTED;
        case SourceStanding::banned:
            return (flags & SLUICE_RULE_FORCED) != 0 ? SLUICE_RULE_FORCED : SLUICE_RULE_BAN;
        case SourceStanding::unknown:
            break;
    }
    return 0;
}

BpfHash<sluice_manual_key, sluice_manual> manual_bans(const Tables& tables) {
    return {tables.bans_manual.get(), "bans_manual", kManualBans};
}

bool still_bans(const sluice_manual& ban, uint64_t now_ns) {
    return ban.until_ns == SLUICE_NEVER || now_ns < ban.until_ns;
}

RuleKind kind_of(uint32_t flags) {
    for (const auto kind : {RuleKind::ban, RuleKind::allow, RuleKind::protect})
        if ((flags & static_cast<uint32_t>(kind)) != 0)
            return kind;
    return RuleKind::classify;
}

// What beats bans, whatever their lengths, where it covers all of them.
class Overruling {
  public:
    static Result<Overruling> read(const RuleTable& rules, uint64_t now_ns) {
        Overruling found;
        const auto read = rules.for_each([&](const RuleKey& key, uint64_t value) {
            const uint32_t flags = sluice_rule_flags(value);
            if (!is_live(sluice_rule_until(value), now_ns))
                return;
            if ((flags & SLUICE_RULE_ALLOW) != 0)
                found.allowed_.add(key);
            else if ((flags & SLUICE_RULE_PROTECTED) != 0)
                found.guarded_.add(key);
        });
        if (!read)
            return read.error();
        return found;
    }
    [[nodiscard]] bool beats(const RuleKey& ban, bool forced) const {
        return allowed_.covers(ban) || (!forced && guarded_.covers(ban));
    }

  private:
    PrefixSet allowed_, guarded_;
};

}  // namespace

ListedRule SourceRules::describe(const Member& member) const {
    auto origin = listing_.origin(member);
    return {.prefix = member.prefix(),
            .kind = member.kind(),
            .list = std::move(origin.list),
            .until_ns = member.entry.until_ns,
            .since_s = member.entry.since_s,
            .actor = std::move(origin.actor),
            .reason = std::move(origin.reason),
            .forced = (member.entry.flags & SLUICE_RULE_FORCED) != 0,
            .exempt = (member.entry.flags & SLUICE_RULE_EXEMPT) != 0,
            .source_class = member.entry.source_class};
}

Result<RuleList> SourceRules::list(RuleKind kind, std::optional<std::string_view> source,
                                   size_t limit) {
    if (auto fresh = refresh(); !fresh)
        return fresh.error();
    const auto own = source ? listing_.find_list(*source) : std::nullopt;
    const auto of_fleet = source ? listing_.find_list(fleet_list(*source)) : std::nullopt;
    const auto is_meant = [&](uint16_t list) {
        return !source || (own && list == *own) || (of_fleet && list == *of_fleet);
    };
    auto members = listing_.all();
    if (!members)
        return members.error();
    const uint64_t now = gate_now_ns(*tables_);
    std::erase_if(*members, [&](const Member& member) {
        return member.kind() != kind || !is_meant(member.key.list) || !member.live(now);
    });
    RuleList found;
    found.total = members->size();
    const size_t wanted = limit == 0 ? members->size() : std::min(limit, members->size());
    std::partial_sort(members->begin(), members->begin() + static_cast<ptrdiff_t>(wanted),
                      members->end());
    found.rules.reserve(wanted);
    for (size_t i = 0; i < wanted; ++i)
        found.rules.push_back(describe((*members)[i]));
    if (kind != RuleKind::ban)
        return found;
    const auto overruling = Overruling::read(rules_.rules(), now);
    if (!overruling)
        return overruling.error();
    // One that somebody forced holds, whatever other lists say.
    const auto is_forced = [&](const RuleKey& key) {
        return std::ranges::any_of(rules_.values(key), [&](uint64_t value) {
            return (sluice_rule_flags(value) & SLUICE_RULE_FORCED) != 0 &&
                   is_live(sluice_rule_until(value), now);
        });
    };
    for (ListedRule& rule : found.rules) {
        const auto key = RuleKey::of(rule.prefix);
        rule.overruled =
            overruling->beats(key, rule.forced) && overruling->beats(key, is_forced(key));
    }
    return found;
}

Result<std::vector<ListedRule>> SourceRules::protections() {
    if (auto fresh = refresh(); !fresh)
        return fresh.error();
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<RuleKey> keys;
    // Not from the listing, which is slow to go through.
    const auto read = rules_.rules().for_each([&](const RuleKey& key, uint64_t value) {
        if ((sluice_rule_flags(value) & SLUICE_RULE_PROTECTED) != 0)
            keys.push_back(key);
    });
    if (!read)
        return read.error();
    std::vector<ListedRule> found;
    for (const auto& key : keys)
        for (const auto& member : listing_.members(key, RuleKind::protect))
            if (member.live(now))
                found.push_back(describe(member));
    return found;
}

std::optional<uint64_t> SourceRules::banned_by_hand(const IpAddress& address) const {
    if (__atomic_load_n(&tables_->bans_manual_on[0], __ATOMIC_RELAXED) == 0)
        return std::nullopt;
    sluice_manual_key key{};
    std::copy(address.bytes().begin(), address.bytes().end(), key.address);
    const auto found = manual_bans(*tables_).find(key);
    if (!found || !still_bans(*found, gate_now_ns(*tables_)))
        return std::nullopt;
    return found->until_ns;
}

Result<SourceLookup> SourceRules::lookup(const IpAddress& address) {
    if (auto fresh = refresh(); !fresh)
        return fresh.error();
    const uint64_t now = gate_now_ns(*tables_);
    const bool ipv4 = address.family() == Family::ipv4;
    const auto whole = RuleKey::of(Prefix::host(address));
    SourceLookup found;
    const auto take = [&](const RuleKey& key, uint64_t value) {
        if (!is_live(sluice_rule_until(value), now))
            return 0U;
        SourceMatch match{key.prefix(),
                          sluice_rule_flags(value),
                          static_cast<uint8_t>(sluice_rule_class(value)),
                          until_to_ns(sluice_rule_until(value)),
                          {}};
        for (const auto& member : listing_.members(key, kind_of(match.flags)))
            if (member.live(now))
                match.listed.push_back(describe(member));
        found.matches.push_back(std::move(match));
        return sluice_rule_flags(value);
    };

    sluice_code code = SLUICE_CODE_RULES;
    if (ipv4)
        code = __atomic_load_n(&tables_->settings().codes, __ATOMIC_RELAXED) == 0
                   ? SLUICE_CODE_NONE
                   : rules_.codes().code(address.ipv4_host_order());
    uint32_t flags = 0;
    if (code != SLUICE_CODE_NONE)
        for (const uint8_t length : rules_.lengths().in_use(address.family())) {
            const RuleKey key{sluice_network(whole.network, length), length};
            for (const uint64_t value : rules_.rules().values(key).span())
                flags |= take(key, value);
        }
    // Where the code alone decides, the packet path asks no further.
    if (code == SLUICE_CODE_ALLOW)
        flags = SLUICE_RULE_ALLOW;
    else if (code == SLUICE_CODE_BAN)
        flags = SLUICE_RULE_BAN;
    if (code == SLUICE_CODE_RULES)
        for (const auto& match : found.matches)
            if (found.source_class == 0)
                found.source_class = match.source_class;
    if (ipv4)
        if (const uint64_t until = rules_.bans4().until(address.ipv4_host_order()); until != 0) {
            const uint32_t more = take(whole, sluice_rule_value(until, SLUICE_RULE_BAN, 0, 128));
            flags |= flags == SLUICE_RULE_ALLOW ? 0 : more;
        }
    found.by_hand_until_ns = banned_by_hand(address);

    std::stable_sort(found.matches.begin(), found.matches.end(),
                     [](const SourceMatch& a, const SourceMatch& b) {
                         return a.prefix.length() > b.prefix.length();
                     });
    found.standing = standing_of(flags);
    const uint32_t wanted = deciding_flag(found.standing, flags);
    for (const auto& match : found.matches)
        if ((match.flags & wanted) != 0 && !found.deciding)
            found.deciding = match;
    if (found.standing == SourceStanding::unknown && found.by_hand_until_ns)
        found.standing = SourceStanding::banned;
    return found;
}

Result<RuleCounts> SourceRules::counts() const {
    const uint64_t now = gate_now_ns(*tables_);
    RuleCounts counts;
    std::array<WantedPrefixes, 4> wanted;
    size_t listed = 0;
    const auto members = listing_.for_each([&](const Member& member) {
        ++listed;
        if (!member.live(now)) {
            counts.unswept = true;
            return;
        }
        counts.first_end_ns = std::min(counts.first_end_ns, uint64_t{member.entry.until_ns});
        wanted[order_of(member.kind())].add(member);
    });
    if (!members)
        return members.error();
    const auto overruling = Overruling::read(rules_.rules(), now);
    if (!overruling)
        return overruling.error();
    std::vector<RuleKey> others, beaten, unbeaten_by_force;
    // Plain bans of single addresses: many, each there once.
    const auto plain = rules_.bans4().for_each([&](uint32_t address, uint64_t until) {
        if (!is_live(until, now))
            return;
        ++counts.bans_enforced;
        if (const RuleKey key = RuleKey::of_ipv4(address); overruling->beats(key, false))
            beaten.push_back(key);
    });
    const auto read = rules_.rules().for_each([&](const RuleKey& key, uint64_t value) {
        const uint32_t flags = sluice_rule_flags(value);
        if ((flags & SLUICE_RULE_BAN) == 0 || !is_live(sluice_rule_until(value), now))
            return;
        const bool is_plain_too =
            key.is_ipv4_host() &&
            is_live(rules_.bans4().until(static_cast<uint32_t>(key.network.low)), now);
        if (!is_plain_too)
            others.push_back(key);
        const bool forced = (flags & SLUICE_RULE_FORCED) != 0;
        if (overruling->beats(key, forced))
            beaten.push_back(key);
        else if (forced)
            unbeaten_by_force.push_back(key);
    });
    for (const Status& done : {plain, read})
        if (!done)
            return done.error();
    counts.bans_enforced += count_distinct(others);
    // Here, too, one that somebody forced holds.
    std::sort(unbeaten_by_force.begin(), unbeaten_by_force.end(), by_prefix);
    std::erase_if(beaten, [&](const RuleKey& key) {
        return std::binary_search(unbeaten_by_force.begin(), unbeaten_by_force.end(), key,
                                  by_prefix);
    });
    counts.bans_overruled = count_distinct(beaten);
    counts.bans_wanted = wanted[order_of(RuleKind::ban)].count();
    counts.allows = wanted[order_of(RuleKind::allow)].count();
    counts.guarded = wanted[order_of(RuleKind::protect)].count();
    counts.classified = wanted[order_of(RuleKind::classify)].count();
    const auto by_hand = bans_by_hand();
    if (!by_hand)
        return by_hand.error();
    counts.bans_by_hand = *by_hand;
    const auto tables = table_use(listed);
    if (!tables)
        return tables.error();
    counts.tables = *tables;
    return counts;
}

Result<size_t> SourceRules::bans_by_hand() const {
    size_t live = 0;
    if (__atomic_load_n(&tables_->bans_manual_on[0], __ATOMIC_RELAXED) == 0)
        return live;
    const uint64_t now = gate_now_ns(*tables_);
    const auto read = manual_bans(*tables_).for_each(
        [&](const sluice_manual_key&, const sluice_manual& ban) { live += still_bans(ban, now); });
    if (!read)
        return read.error();
    return live;
}

Result<std::vector<TableUse>> SourceRules::table_use(size_t listed) const {
    std::vector<TableUse> tables = {{"listing", listed, listing_.capacity()}};
    for (const auto& use : {rules_.bans4().use(), rules_.rules().use()}) {
        if (!use)
            return use.error();
        tables.insert(tables.end(), use->begin(), use->end());
    }
    return tables;
}

}  // namespace sluice
