// What SourceRules lists again after a reboot or an upgrade.
#include <ctime>
#include <map>
#include <utility>

#include "gate/source_rules.h"

namespace sluice {

namespace {

sluice_listing entry_of(const RuleEntry& rule, uint64_t until_ns) {
    sluice_listing entry{};
    entry.until_ns = until_ns;
    entry.since_s = rule.since_s != 0 ? rule.since_s : static_cast<uint64_t>(::time(nullptr));
    auto flags = static_cast<unsigned>(rule.kind);
    if (rule.kind == RuleKind::ban && rule.forced)
        flags |= SLUICE_RULE_FORCED;
    if (rule.kind == RuleKind::allow && rule.exempt)
        flags |= SLUICE_RULE_EXEMPT;
    entry.flags = static_cast<uint8_t>(flags);
    entry.source_class = rule.source_class;
    return entry;
}

KeptRule kept_rule(const Member& member, uint64_t now_ns, uint32_t origin) {
    const sluice_listing& entry = member.entry;
    KeptRule rule{.entry = {.prefix = member.prefix(),
                            .kind = member.kind(),
                            .forced = (entry.flags & SLUICE_RULE_FORCED) != 0,
                            .exempt = (entry.flags & SLUICE_RULE_EXEMPT) != 0,
                            .source_class = entry.source_class,
                            .since_s = entry.since_s},
                  .origin = origin};
    if (entry.until_ns != SLUICE_NEVER)
        rule.entry.ttl = std::chrono::nanoseconds(entry.until_ns - now_ns);
    return rule;
}

// The listing's names for origins, made where one is first used.
class ListedOrigins {
  public:
    struct Listed {
        uint16_t list = 0;
        uint32_t note = 0;
    };

    ListedOrigins(Listing& listing, const std::vector<RuleOrigin>& origins)
        : listing_(listing), origins_(origins), listed_(origins.size()) {}

    Result<Listed> of(uint32_t origin) {
        auto& listed = listed_[origin];
        if (!listed) {
            const RuleOrigin& from = origins_[origin];
            const auto list = listing_.find_or_make_list(from.list);
            if (!list)
                return list.error();
            listed = Listed{*list, listing_.note(from.actor, from.reason)};
        }
        return *listed;
    }

  private:
    Listing& listing_;
    const std::vector<RuleOrigin>& origins_;
    std::vector<std::optional<Listed>> listed_;
};

}  // namespace

Result<KeptRules> kept_rules(const Tables& tables, uint64_t now_ns) {
    Listing listing(tables);
    if (const Status begun = listing.begin(); !begun)
        return begun.error();
    KeptRules kept;
    std::map<std::pair<uint16_t, uint32_t>, uint32_t> origins;  // by list and note
    const auto read = listing.for_each([&](const Member& member) {
        if (!member.live(now_ns))
            return;
        const auto [origin, is_new] = origins.try_emplace(
            {member.key.list, member.entry.note}, static_cast<uint32_t>(kept.origins.size()));
        if (is_new)
            kept.origins.push_back(listing.origin(member));
        kept.rules.push_back(kept_rule(member, now_ns, origin->second));
    });
    if (!read)
        return read.error();
    return kept;
}

Result<std::vector<Member>> SourceRules::members_of(const KeptRules& kept) {
    const uint64_t now = gate_now_ns(*tables_);
    ListedOrigins origins(listing_, kept.origins);
    std::vector<Member> members;
    members.reserve(kept.rules.size());
    for (const KeptRule& rule : kept.rules) {
        if (rule.entry.ttl && rule.entry.ttl->count() <= 0)
            continue;
        const auto until = deadline_after(now, rule.entry.ttl);
        if (!until)
            return until.error().with_context(rule.entry.prefix.to_string());
        const auto origin = origins.of(rule.origin);
        if (!origin)
            return origin.error();
        Member member{listing_key(rule.entry.prefix, rule.entry.kind, origin->list),
                      entry_of(rule.entry, *until)};
        member.entry.note = origin->note;
        members.push_back(member);
    }
    (void)merge_duplicates(members);
    return members;
}

Result<size_t> SourceRules::restore(const KeptRules& kept) {
    if (auto begun = begin(); !begun)
        return begun.error();
    auto members = members_of(kept);
    if (!members)
        return members.error();
    const size_t held = members->size();
    const auto listed = sorted_listing();
    if (!listed)
        return listed.error();

    const uint64_t now = gate_now_ns(*tables_);
    Change change;
    auto old = listed->begin();
    std::erase_if(*members, [&](const Member& member) {
        while (old != listed->end() && *old < member)
            ++old;
        if (old == listed->end() || Member::compare(*old, member) != 0)
            return false;
        const bool longer =
            member.kind() == RuleKind::ban && member.entry.until_ns > old->entry.until_ns;
        if (old->live(now) && !longer)
            return true;
        change.before.push_back(*old);
        return false;
    });
    change.put = *std::move(members);
    if (change.put.empty())
        return held;
    const Status restored = apply_together(*listed, change);
    return restored ? Result<size_t>(held) : restored.error();
}

}  // namespace sluice
