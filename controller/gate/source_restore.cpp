// What SourceRules lists again after a reboot.
#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "gate/source_rules.h"

namespace sluice {

namespace {

// Few texts for many rules.
class Notes {
  public:
    explicit Notes(Listing& listing) : listing_(listing) {}

    uint32_t of(const KeptRule& rule) {
        const auto [note, is_new] = notes_.try_emplace({rule.actor, rule.reason});
        if (is_new)
            note->second = listing_.note(rule.actor, rule.reason);
        return note->second;
    }

  private:
    Listing& listing_;
    std::map<std::pair<std::string_view, std::string_view>, uint32_t> notes_;
};

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

}  // namespace

Result<std::vector<KeptRule>> kept_rules(const Tables& tables, uint64_t now_ns) {
    Listing listing(tables);
    if (const Status begun = listing.begin(); !begun)
        return begun.error();
    const auto members = listing.all();
    if (!members)
        return members.error();
    std::vector<KeptRule> kept;
    kept.reserve(members->size());
    for (const Member& member : *members) {
        const sluice_listing& entry = member.entry;
        if (!member.live(now_ns))
            continue;
        KeptRule rule;
        rule.entry = {.prefix = member.prefix(),
                      .kind = member.kind(),
                      .forced = (entry.flags & SLUICE_RULE_FORCED) != 0,
                      .exempt = (entry.flags & SLUICE_RULE_EXEMPT) != 0,
                      .source_class = entry.source_class,
                      .since_s = entry.since_s};
        if (entry.until_ns != SLUICE_NEVER)
            rule.entry.ttl = std::chrono::nanoseconds(entry.until_ns - now_ns);
        rule.list = listing.list_name(member.key.list);
        auto note = listing.read_note(entry.note);
        rule.actor = std::move(note.actor);
        rule.reason = std::move(note.reason);
        kept.push_back(std::move(rule));
    }
    return kept;
}

Result<size_t> SourceRules::restore(std::span<const KeptRule> rules) {
    if (auto begun = begin(); !begun)
        return begun.error();
    const auto listed = sorted_listing();
    if (!listed)
        return listed.error();
    const uint64_t now = gate_now_ns(*tables_);
    Notes notes(listing_);
    std::vector<Member> put;
    put.reserve(rules.size());
    std::vector<Member> before;
    size_t held = 0;
    for (const KeptRule& rule : rules) {
        if (rule.entry.ttl && rule.entry.ttl->count() <= 0)
            continue;
        const auto until = deadline_after(now, rule.entry.ttl);
        if (!until)
            return until.error().with_context(rule.entry.prefix.to_string());
        const auto list = listing_.find_or_make_list(rule.list);
        if (!list)
            return list.error();
        ++held;
        Member member{listing_key(rule.entry.prefix, rule.entry.kind, *list),
                      entry_of(rule.entry, *until)};
        const auto old = std::lower_bound(listed->begin(), listed->end(), member);
        if (old != listed->end() && Member::compare(*old, member) == 0) {
            const bool longer = member.kind() == RuleKind::ban && *until > old->entry.until_ns;
            if (old->live(now) && !longer)
                continue;
            before.push_back(*old);
        }
        member.entry.note = notes.of(rule);
        put.push_back(member);
    }
    if (put.empty())
        return held;
    mark_dirty();
    Status restored = listing_.put_all(put, before);
    if (restored) {
        restored = rebuild_tables();
        if (!restored) {
            listing_.erase_all(put);
            (void)listing_.put_all(before, {});
        }
    }
    mark_done();
    return restored ? Result<size_t>(held) : restored.error();
}

}  // namespace sluice
