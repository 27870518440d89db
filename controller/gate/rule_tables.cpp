#include "gate/rule_tables.h"

#include <algorithm>
#include <iterator>

namespace sluice {

namespace {

// How many lines one operation looks through for what has expired: 64 KiB of exact bans.
constexpr uint32_t kSweptLines = 1024;
// And how many operations share one look through the overflow.
constexpr uint32_t kOverflowTurn = 16;

size_t family_index(const RuleKey& key) {
    return key.family() == Family::ipv4 ? 0 : 1;
}

}  // namespace

RuleTables::RuleTables(Tables& tables)
    : tables_(&tables),
      bans4_(tables),
      rules_(tables),
      lengths_(tables),
      codes_(tables),
      // Short-lived processes should not all look at the same lines.
      cursor_(static_cast<uint32_t>(gate_now_ns(tables) >> 10)) {}

void RuleTables::begin() {
    bans4_.forget();
    rules_.forget();
}

std::vector<uint64_t> RuleTables::values(const RuleKey& key) const {
    const auto found = rules_.values(key);
    std::vector<uint64_t> all(found.span().begin(), found.span().end());
    if (key.is_ipv4_host())
        if (const uint64_t until = bans4_.until(static_cast<uint32_t>(key.network.low)); until != 0)
            all.push_back(ban4_value(until));
    return all;
}

Status RuleTables::set(const RuleKey& key, std::span<const uint64_t> wanted) {
    uint64_t ban_until = 0;
    std::vector<uint64_t> others;
    for (const uint64_t value : wanted) {
        if (is_plain_ban(key, value))
            ban_until = sluice_rule_until(value);
        else
            others.push_back(value);
    }
    const auto before = rules_.values(key);
    const bool same = std::is_permutation(others.begin(), others.end(), before.span().begin(),
                                          before.span().end());
    if (!same) {
        if (!others.empty())
            if (auto added = lengths_.add(key.family(), key.length); !added)
                return added;
        rules_changed_ = true;
        touched_.add(key);
        if (auto put = rules_.set(key, others); !put)
            return put;
    }
    if (!key.is_ipv4_host())
        return {};
    const auto address = static_cast<uint32_t>(key.network.low);
    if (ban_until == 0) {
        bans4_.remove(address);
        return {};
    }
    auto put = bans4_.set(address, ban_until);
    if (!put)
        (void)rules_.set(key, before.span());  // takes no more room than it did
    return put;
}

Status RuleTables::finish() {
    if (!rules_changed_)
        return {};
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<RuleRow> rows;
    std::array<LengthSet, 2> lengths;
    const auto read = rules_.for_each([&](const RuleKey& key, uint64_t value) {
        if (!is_live(sluice_rule_until(value), now))
            return;
        lengths[family_index(key)].set(key.length);
        if (touched_.meets(key))
            rows.push_back({key, value});
    });
    if (!read)
        return read;
    if (touched_.any())
        codes_.recompute(touched_, rows, lengths[0].any());
    touched_.clear();
    rules_changed_ = false;
    if (auto kept = lengths_.keep_only(Family::ipv4, lengths[0]); !kept)
        return kept;
    return lengths_.keep_only(Family::ipv6, lengths[1]);
}

Result<RuleTables::Prepared> RuleTables::prepare(std::span<const RuleRow> rows) {
    Prepared prepared;
    std::vector<Ban4> bans;
    for (const auto& row : rows) {
        if (is_plain_ban(row.key, row.value)) {
            bans.push_back(
                {static_cast<uint32_t>(row.key.network.low), sluice_rule_until(row.value)});
        } else {
            prepared.rows.push_back(row);
            prepared.lengths[family_index(row.key)].set(row.key.length);
        }
    }
    // The lengths of the old rules are looked up until these are out of use.
    for (const auto family : {Family::ipv4, Family::ipv6}) {
        LengthSet together = prepared.lengths[family == Family::ipv4 ? 0 : 1];
        for (const uint8_t length : lengths_.in_use(family))
            together.set(length);
        if (auto fit = RuleLengths::check(family, together); !fit)
            return fit.error();
    }
    auto bans4 = bans4_.prepare(bans);
    if (!bans4)
        return bans4.error();
    auto rules = rules_.prepare(prepared.rows);
    if (!rules)
        return rules.error();
    prepared.bans4 = std::move(*bans4);
    prepared.rules = std::move(*rules);
    return prepared;
}

Status RuleTables::commit(const Prepared& prepared) {
    for (const auto family : {Family::ipv4, Family::ipv6})
        for (uint32_t length = 0; length < LengthSet{}.size(); ++length)
            if (prepared.lengths[family == Family::ipv4 ? 0 : 1].test(length))
                if (auto added = lengths_.add(family, length); !added)
                    return added;
    if (auto put = rules_.commit(prepared.rules); !put)
        return put;
    if (auto put = bans4_.commit(prepared.bans4); !put)
        return put;
    touched_.add_all();
    rules_changed_ = true;
    return finish();
}

std::vector<RuleKey> RuleTables::take_displaced() {
    auto displaced = rules_.take_displaced();
    for (const uint32_t address : bans4_.take_displaced())
        displaced.push_back(RuleKey::of_ipv4(address));
    return displaced;
}

std::vector<RuleKey> RuleTables::find_expired(size_t most) {
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<RuleKey> expired;
    const auto look = [&](const RuleKey& key, uint64_t value) {
        if (expired.size() < most && !is_live(sluice_rule_until(value), now))
            expired.push_back(key);
    };
    const auto look_at_ban = [&](uint32_t address, uint64_t until) {
        look(RuleKey::of_ipv4(address), ban4_value(until));
    };
    const auto window = [this](uint32_t lines) {
        return cursor_ * kSweptLines % lines / kSweptLines * kSweptLines;
    };
    bans4_.for_lines_from(window(bans4_.lines()), kSweptLines, look_at_ban);
    rules_.for_lines_from(window(rules_.lines()), kSweptLines, look);
    // What lies in the overflow can only be read as a whole.
    if (cursor_++ % kOverflowTurn == 0) {
        (void)bans4_.for_overflow(look_at_ban);
        (void)rules_.for_overflow(look);
    }
    return expired;
}

}  // namespace sluice
