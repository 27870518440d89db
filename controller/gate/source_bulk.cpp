// What SourceRules does to many prefixes at once.
#include <algorithm>
#include <ctime>
#include <iterator>

#include "gate/prefix_set.h"
#include "gate/source_rules.h"

namespace sluice {

namespace {

// Up to here each prefix is changed in its place; beyond, building the tables anew is cheaper.
constexpr size_t kOneByOne = 2048;

// Enough to recognise whom a list is about.
constexpr size_t kNamedRefusals = 3;

unsigned flags_of(const RuleEntry& entry, bool forced) {
    unsigned flags = static_cast<unsigned>(entry.kind);
    if (entry.kind == RuleKind::ban && (entry.forced || forced))
        flags |= SLUICE_RULE_FORCED;
    if (entry.kind == RuleKind::allow && entry.exempt)
        flags |= SLUICE_RULE_EXEMPT;
    return flags;
}

bool says_the_same(const sluice_listing& a, const sluice_listing& b) {
    return a.until_ns == b.until_ns && a.flags == b.flags && a.source_class == b.source_class;
}

bool same_prefix(const Member& a, const Member& b) {
    return std::equal(std::begin(a.key.address), std::end(a.key.address),
                      std::begin(b.key.address)) &&
           a.key.length == b.key.length;
}

}  // namespace

size_t merge_duplicates(std::vector<Member>& members) {
    std::stable_sort(members.begin(), members.end());
    size_t kept = 0;
    for (size_t i = 0; i < members.size(); ++i) {
        if (kept > 0 && Member::compare(members[kept - 1], members[i]) == 0) {
            auto& entry = members[kept - 1].entry;
            const auto longest = std::max(entry.until_ns, members[i].entry.until_ns);
            const auto flags = static_cast<uint8_t>(entry.flags | members[i].entry.flags);
            entry = members[i].entry;
            if (members[i].kind() == RuleKind::ban) {
                entry.until_ns = longest;
                entry.flags = flags;
            }
        } else {
            members[kept++] = members[i];
        }
    }
    const size_t duplicates = members.size() - kept;
    members.resize(kept);
    return duplicates;
}

void Refusals::add(const Prefix& prefix) {
    if (count++ < kNamedRefusals)
        named.push_back(prefix);
}

Result<std::vector<Member>> SourceRules::take_entries(uint16_t list,
                                                      std::span<const RuleEntry> entries,
                                                      const ImportRequest& request,
                                                      ImportOutcome& outcome) {
    const uint64_t now = gate_now_ns(*tables_);
    const auto today = static_cast<uint64_t>(::time(nullptr));
    const uint32_t note = request.rehearse ? 0 : listing_.note(request.actor, request.reason);
    std::vector<Member> members;
    members.reserve(entries.size());
    for (const auto& entry : entries) {
        // What a feed says late is over; it is neither an error nor a ban for good.
        if (entry.ttl && entry.ttl->count() <= 0) {
            ++outcome.over;
            continue;
        }
        const auto until = deadline_after(now, entry.ttl);
        if (!until)
            return until.error().with_context(entry.prefix.to_string());
        const bool forced = entry.forced || request.forced;
        if (entry.kind == RuleKind::ban && is_too_wide(entry.prefix) && !forced &&
            !request.however_wide) {
            outcome.too_wide.add(entry.prefix);
            continue;
        }
        if (entry.kind == RuleKind::classify && entry.source_class == 0)
            return make_error(ErrorCode::usage, "class 0 means that there is none");
        Member member{listing_key(entry.prefix, entry.kind, list), {}};
        member.entry.until_ns = *until;
        member.entry.since_s = entry.since_s != 0 ? entry.since_s : today;
        member.entry.note = note;
        member.entry.flags = static_cast<uint8_t>(flags_of(entry, request.forced));
        member.entry.source_class = entry.kind == RuleKind::classify ? entry.source_class : 0;
        members.push_back(member);
    }
    outcome.duplicates = merge_duplicates(members);
    if (auto guarded = refuse_guarded(members, request, outcome); !guarded)
        return guarded.error();
    return members;
}

Status SourceRules::refuse_guarded(std::vector<Member>& members, const ImportRequest& request,
                                   ImportOutcome& outcome) const {
    const uint64_t now = gate_now_ns(*tables_);
    PrefixSet allowed;
    PrefixSet guarded;
    const auto read = rules_.rules().for_each([&](const RuleKey& key, uint64_t value) {
        if (!is_live(sluice_rule_until(value), now))
            return;
        if ((sluice_rule_flags(value) & SLUICE_RULE_ALLOW) != 0)
            allowed.add(key);
        if ((sluice_rule_flags(value) & SLUICE_RULE_PROTECTED) != 0)
            guarded.add(key);
    });
    if (!read)
        return read;
    std::erase_if(members, [&](const Member& member) {
        if (member.kind() != RuleKind::ban)
            return false;
        const auto key = member.rule_key();
        const bool is_allowed = allowed.covers(key);
        const bool is_guarded =
            !is_allowed && guarded.covers(key) && (member.entry.flags & SLUICE_RULE_FORCED) == 0;
        if (is_allowed)
            outcome.allowed.add(key.prefix());
        if (is_guarded)
            outcome.protected_.add(key.prefix());
        return (is_allowed || is_guarded) && !request.list_overruled;
    });
    return {};
}

Result<std::vector<Member>> SourceRules::sorted_listing() const {
    auto members = listing_.all();
    if (members)
        std::sort(members->begin(), members->end());
    return members;
}

Status SourceRules::apply_one_by_one(const Change& change) {
    mark_dirty();
    if (auto put = listing_.put_all(change.put, change.before); !put) {
        mark_done();
        return put;
    }
    listing_.erase_all(change.erase);
    Status settled;
    const auto settle_all = [this](std::span<const Member> members) -> Status {
        for (const auto& member : members)
            if (auto one = settle(member.rule_key()); !one)
                return one;
        return {};
    };
    // What is new comes before what goes.
    settled = settle_all(change.put);
    if (settled)
        settled = settle_all(change.erase);
    if (!settled) {
        listing_.take_back(change.put, change.before);
        (void)listing_.put_all(change.erase, {});
        (void)settle_all(change.put);
        (void)settle_all(change.erase);
        (void)finish();
        return settled;
    }
    return finish();
}

Status SourceRules::apply_together(std::span<const Member> listed, const Change& change) {
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<Member> expired;
    for (const auto& member : listed)
        if (!member.live(now))
            expired.push_back(member);

    // The listing as it will be: what stays, and what is put.
    std::vector<Member> wanted;
    wanted.reserve(listed.size() + change.put.size());
    auto put = change.put.begin();
    auto erase = change.erase.begin();
    for (const auto& member : listed) {
        while (put != change.put.end() && *put < member)
            wanted.push_back(*put++);
        while (erase != change.erase.end() && *erase < member)
            ++erase;
        const bool replaced = put != change.put.end() && Member::compare(*put, member) == 0;
        const bool erased = erase != change.erase.end() && Member::compare(*erase, member) == 0;
        if (!replaced && !erased && member.live(now))
            wanted.push_back(member);
    }
    wanted.insert(wanted.end(), put, change.put.end());
    if (wanted.size() > listing_.capacity())
        return failed("the listing would hold " + std::to_string(wanted.size()) +
                          " entries (listing: " + std::to_string(listing_.capacity()) + " entries)",
                      std::string(kMakeRoom));

    std::vector<RuleRow> rows;
    rows.reserve(wanted.size());
    for (size_t begin = 0; begin < wanted.size();) {
        size_t end = begin + 1;
        while (end < wanted.size() && same_prefix(wanted[begin], wanted[end]))
            ++end;
        const auto key = wanted[begin].rule_key();
        for (const uint64_t value : combine(std::span(wanted).subspan(begin, end - begin), now))
            rows.push_back({key, value});
        begin = end;
    }
    const auto prepared = rules_.prepare(rows);
    if (!prepared)
        return prepared.error();

    // Room first. Until the tables are published, the packet path knows nothing of this.
    mark_dirty();
    listing_.erase_all(expired);
    listing_.erase_all(change.erase);
    if (auto put_all = listing_.put_all(change.put, change.before); !put_all) {
        (void)listing_.put_all(change.erase, {});
        mark_done();
        return put_all;
    }
    if (auto published = rules_.commit(*prepared); !published)
        return published;
    (void)rules_.take_displaced();
    mark_done();
    return {};
}

Result<ImportOutcome> SourceRules::import(std::string_view list, std::span<const RuleEntry> entries,
                                          const ImportRequest& request) {
    if (auto begun = begin(); !begun)
        return begun.error();
    constexpr uint16_t kNoList = SLUICE_MAX_LISTS;  // nothing is listed under it
    const auto id = request.rehearse ? Result<uint16_t>(listing_.find_list(list).value_or(kNoList))
                                     : listing_.find_or_make_list(list);
    if (!id)
        return id.error();
    ImportOutcome outcome;
    auto members = take_entries(*id, entries, request, outcome);
    if (!members)
        return members.error();

    // Many are compared with the whole listing, read once.
    const bool together = members->size() > kOneByOne;
    auto listed = together ? sorted_listing() : Result(std::vector<Member>{});
    if (!listed)
        return listed.error();
    auto position = listed->begin();
    const auto find_old = [&](const Member& member) -> std::optional<sluice_listing> {
        if (!together)
            return listing_.find(member.key);
        while (position != listed->end() && *position < member)
            ++position;
        if (position == listed->end() || Member::compare(*position, member) != 0)
            return std::nullopt;
        return position->entry;
    };

    const uint64_t now = gate_now_ns(*tables_);
    Change change;
    for (auto& member : *members) {
        const auto old = find_old(member);
        const bool stood = old && Member{member.key, *old}.live(now);
        if (stood && member.kind() == RuleKind::ban) {
            member.entry.until_ns = std::max(member.entry.until_ns, old->until_ns);
            member.entry.flags |= old->flags;
        }
        if (stood && says_the_same(*old, member.entry)) {
            ++outcome.unchanged;
            continue;
        }
        if (stood)
            member.entry.since_s = old->since_s;
        if (old)
            change.before.push_back({member.key, *old});
        ++(stood ? outcome.changed : outcome.added);
        change.put.push_back(member);
    }
    if (change.put.empty() || request.rehearse)
        return outcome;
    const auto applied = together ? apply_together(*listed, change)
                                  : with_room([&] { return apply_one_by_one(change); });
    if (!applied)
        return applied.error();
    return outcome;
}

Result<ImportOutcome> SourceRules::replace_list(std::string_view list,
                                                std::span<const RuleEntry> entries,
                                                const ImportRequest& request) {
    if (auto begun = begin(); !begun)
        return begun.error();
    const auto id = listing_.find_or_make_list(list);
    if (!id)
        return id.error();
    ImportOutcome outcome;
    auto members = take_entries(*id, entries, request, outcome);
    if (!members)
        return members.error();
    const auto listed = sorted_listing();
    if (!listed)
        return listed.error();
    std::vector<Member> old;
    std::copy_if(listed->begin(), listed->end(), std::back_inserter(old),
                 [&](const Member& member) { return member.key.list == *id; });

    const uint64_t now = gate_now_ns(*tables_);
    Change change;
    auto position = old.begin();
    for (auto& member : *members) {
        for (; position != old.end() && *position < member; ++position)
            change.erase.push_back(*position);
        if (position == old.end() || Member::compare(*position, member) != 0) {
            ++outcome.added;
            change.put.push_back(member);
            continue;
        }
        if (says_the_same(position->entry, member.entry)) {
            ++outcome.unchanged;
        } else {
            const bool stood = position->live(now);
            ++(stood ? outcome.changed : outcome.added);
            if (stood)
                member.entry.since_s = position->entry.since_s;
            change.before.push_back(*position);
            change.put.push_back(member);
        }
        ++position;
    }
    change.erase.insert(change.erase.end(), position, old.end());
    outcome.removed = static_cast<size_t>(
        std::count_if(change.erase.begin(), change.erase.end(),
                      [now](const Member& member) { return member.live(now); }));
    if (change.put.empty() && change.erase.empty())
        return outcome;
    if (auto applied = apply_together(*listed, change); !applied)
        return applied.error();
    return outcome;
}

Result<bool> SourceRules::knows_list(std::string_view list) {
    if (auto fresh = refresh(); !fresh)
        return fresh.error();
    return list == kOperatorList || listing_.find_list(list) ||
           listing_.find_list(fleet_list(list));
}

Result<size_t> SourceRules::flush(std::string_view list) {
    if (auto begun = begin(); !begun)
        return begun.error();
    const auto id = listing_.find_list(list);
    if (!id)
        return size_t{0};
    const auto listed = sorted_listing();
    if (!listed)
        return listed.error();
    const uint64_t now = gate_now_ns(*tables_);
    Change change;
    size_t live = 0;
    for (const auto& member : *listed) {
        if (member.key.list != *id || member.kind() != RuleKind::ban)
            continue;
        change.erase.push_back(member);
        live += member.live(now) ? 1 : 0;
    }
    if (change.erase.empty())
        return live;
    const Status applied = change.erase.size() > kOneByOne ? apply_together(*listed, change)
                                                           : apply_one_by_one(change);
    if (!applied)
        return applied.error();
    return live;
}

Status SourceRules::apply(const Change& change) {
    if (change.put.size() + change.erase.size() <= kOneByOne)
        return apply_one_by_one(change);
    const auto listed = sorted_listing();
    return listed ? apply_together(*listed, change) : listed.error();
}

Status SourceRules::rebuild() {
    if (auto begun = begin(); !begun)
        return begun;
    return rebuild_tables();
}

Status SourceRules::repair() {
    return begin();
}

Status SourceRules::rebuild_tables() {
    const auto listed = sorted_listing();
    if (!listed)
        return listed.error();
    return apply_together(*listed, {});
}

}  // namespace sluice
