#include "gate/rule_table.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "gate/table_list.h"

namespace sluice {

namespace {

// At 40 % of the slots, 3 % of the rules find their line full.
constexpr uint32_t kFill = 40;

template <class Word>
void store(Word& where, uint64_t value) {
    __atomic_store_n(&where, value, __ATOMIC_RELEASE);
}

sluice_overflow_key overflow_key(const RuleKey& key) {
    return {key.network, key.length, 0};
}

bool is_entry_of(const sluice_rule_entry& entry, const RuleKey& key) {
    return entry.value != 0 && entry.network == key.line_network() &&
           sluice_rule_length(entry.value) == key.length;
}

struct KeyOrder {
    bool operator()(const sluice_overflow_key& a, const sluice_overflow_key& b) const {
        return std::memcmp(&a, &b, sizeof(a)) < 0;
    }
};

}  // namespace

RuleTable::RuleTable(Tables& tables)
    : tables_(&tables),
      view_(tables.settings().rule_view, tables.sizes.rule_lines),
      lines_(tables.rule_lines.span()),
      filter_(tables.rule_filter.span()),
      overflow_({tables.rule_overflow.get(), "rule_overflow", rule_overflow_entries(tables.sizes)},
                [this](const sluice_overflow_key& key) {
                    return view_.line(hash_of({key.network, key.length}));
                }) {}

uint64_t RuleTable::hash_of(const RuleKey& key) const {
    return sluice_rule_hash(&tables_->seed(), key.network, key.length);
}

RuleValues RuleTable::values(const RuleKey& key) const {
    RuleValues found;
    const uint64_t hash = hash_of(key);
    const uint32_t index = view_.line(hash);
    const uint64_t bits = sluice_filter_bits(hash);
    const uint64_t filter = __atomic_load_n(&filter_[index], __ATOMIC_RELAXED);
    if ((filter & bits) != bits)
        return found;
    if (key.fits_line())
        for (const auto& entry : lines_[index].entry)
            if (is_entry_of(entry, key) && !found.full())
                found.add(entry.value);
    // While a prefix moves, the same rules are in both places.
    if ((filter & SLUICE_FILTER_OVERFLOW) == 0 || !found.empty())
        return found;
    if (const auto over = overflow_.find(overflow_key(key)))
        for (const uint64_t value : over->value)
            if (value != 0)
                found.add(value);
    return found;
}

bool RuleTable::fits(const RuleKey& key, uint32_t index, size_t count) const {
    if (!key.fits_line())
        return false;
    const uint64_t now = gate_now_ns(*tables_);
    const auto usable = std::count_if(std::begin(lines_[index].entry),
                                      std::end(lines_[index].entry), [&](const auto& entry) {
                                          return entry.value == 0 || is_entry_of(entry, key) ||
                                                 !is_live(sluice_rule_until(entry.value), now);
                                      });
    return count <= static_cast<size_t>(usable);
}

bool RuleTable::crowded() const {
    uint64_t used = 0;
    for_lines_from(0, view_.lines(), [&](const RuleKey&, uint64_t) { ++used; });
    return used * 100 >= uint64_t{view_.lines()} * SLUICE_RULE_SLOTS * kFill;
}

void RuleTable::set_line(const RuleKey& key, uint32_t index, std::span<const uint64_t> wanted) {
    auto& line = lines_[index];
    std::array<bool, SLUICE_RULE_SLOTS> kept{};
    std::vector<uint64_t> missing;
    // One store changes a deadline.
    for (const uint64_t value : wanted) {
        bool found = false;
        for (unsigned slot = 0; slot < SLUICE_RULE_SLOTS && !found; ++slot) {
            auto& entry = line.entry[slot];
            found = is_entry_of(entry, key) && !kept[slot] &&
                    rule_identity(entry.value) == rule_identity(value);
            if (found) {
                kept[slot] = true;
                if (entry.value != value)
                    store(entry.value, value);
            }
        }
        if (!found)
            missing.push_back(value);
    }
    if (!wanted.empty())
        store(filter_[index], filter_[index] | sluice_filter_bits(hash_of(key)));
    // Then what is new: free places first, so that nothing goes before its successor is there.
    const uint64_t now = gate_now_ns(*tables_);
    const auto place = [&](auto&& usable) {
        for (unsigned slot = 0; slot < SLUICE_RULE_SLOTS && !missing.empty(); ++slot) {
            auto& entry = line.entry[slot];
            if (kept[slot] || !usable(entry))
                continue;
            if (!is_entry_of(entry, key)) {
                if (entry.value != 0)
                    displaced_.push_back(RuleKey::of_entry(entry));
                store(entry.value, 0);
                store(entry.network, key.line_network());
            }
            store(entry.value, missing.back());
            missing.pop_back();
            kept[slot] = true;
        }
    };
    place([](const auto& entry) { return entry.value == 0; });
    place([&](const auto& entry) {
        return !is_entry_of(entry, key) && !is_live(sluice_rule_until(entry.value), now);
    });
    place([&](const auto& entry) { return is_entry_of(entry, key); });
    for (unsigned slot = 0; slot < SLUICE_RULE_SLOTS; ++slot)
        if (!kept[slot] && is_entry_of(line.entry[slot], key))
            store(line.entry[slot].value, 0);
}

void RuleTable::clear_line(const RuleKey& key, uint32_t index) {
    if (key.fits_line())
        set_line(key, index, {});
}

Status RuleTable::spill(const RuleKey& key, uint32_t index, std::span<const uint64_t> wanted) {
    store(filter_[index],
          filter_[index] | sluice_filter_bits(hash_of(key)) | SLUICE_FILTER_OVERFLOW);
    sluice_overflow over{};
    std::copy(wanted.begin(), wanted.end(), over.value);
    auto put = overflow_.put(overflow_key(key), over);
    if (put)
        clear_line(key, index);
    recompute_filter(index);
    return put;
}

void RuleTable::recompute_filter(uint32_t index) {
    uint64_t bits = 0;
    for (const auto& entry : lines_[index].entry)
        if (entry.value != 0)
            bits |= sluice_filter_bits(hash_of(RuleKey::of_entry(entry)));
    if ((filter_[index] & SLUICE_FILTER_OVERFLOW) != 0)
        for (const auto& key : overflow_.behind(index))
            bits |= sluice_filter_bits(hash_of({key.network, key.length})) | SLUICE_FILTER_OVERFLOW;
    store(filter_[index], bits);
}

Status RuleTable::set(const RuleKey& key, std::span<const uint64_t> wanted) {
    if (wanted.size() > SLUICE_RULE_SLOTS)
        return failed("more than " + std::to_string(SLUICE_RULE_SLOTS) + " different rules for " +
                          key.prefix().to_string(),
                      "remove one of them first");
    const uint64_t hash = hash_of(key);
    for (;;) {
        const uint32_t index = view_.line(hash);
        const bool spilled = (filter_[index] & SLUICE_FILTER_OVERFLOW) != 0 &&
                             overflow_.find(overflow_key(key)).has_value();
        if (wanted.empty() || fits(key, index, wanted.size())) {
            if (key.fits_line())
                set_line(key, index, wanted);
            if (spilled)
                overflow_.erase(overflow_key(key));
            recompute_filter(index);
            return {};
        }
        const bool can_grow = key.fits_line() && view_.can_grow();
        if (spilled || !can_grow || !crowded()) {
            const auto put = spill(key, index, wanted);
            if (put)
                return put;
            if (!can_grow)
                return put.error().with_context("no room for the rule of " +
                                                key.prefix().to_string());
        }
        if (auto grown = grow(); !grown)
            return grown;
    }
}

Status RuleTable::grow() {
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<RuleRow> rows;
    const auto read = for_each([&](const RuleKey& key, uint64_t value) {
        if (is_live(sluice_rule_until(value), now))
            rows.push_back({key, value});
        else
            displaced_.push_back(key);
    });
    if (!read)
        return read;
    // Rules of a prefix lie in one line, though not always side by side.
    std::stable_sort(rows.begin(), rows.end(), [](const RuleRow& a, const RuleRow& b) {
        return KeyOrder{}(overflow_key(a.key), overflow_key(b.key));
    });
    auto prepared = prepare(rows, 2 * view_.lines());
    if (!prepared)
        return prepared.error();
    return commit(*prepared);
}

Result<RuleTable::Prepared> RuleTable::prepare(std::span<const RuleRow> rows,
                                               uint32_t least_lines) {
    // Room for a quarter more than there is.
    const size_t room = rows.size() + rows.size() / 4;
    const uint32_t lines = std::clamp(view_.lines_for(room, SLUICE_RULE_SLOTS, kFill), least_lines,
                                      std::max(least_lines, view_.capacity()));
    const uint32_t base = view_.idle_base();
    Prepared prepared{LineView::make(base, lines), {}, {}};
    const auto area = lines_.subspan(base, lines);
    const auto words = filter_.subspan(base, lines);
    std::fill(area.begin(), area.end(), sluice_rule_line{});
    std::fill(words.begin(), words.end(), 0);

    for (size_t begin = 0; begin < rows.size();) {
        const RuleKey& key = rows[begin].key;
        size_t end = begin + 1;
        while (end < rows.size() && rows[end].key == key)
            ++end;
        const size_t count = end - begin;
        if (count > SLUICE_RULE_SLOTS)
            return failed("more than " + std::to_string(SLUICE_RULE_SLOTS) +
                              " different rules for " + key.prefix().to_string(),
                          "remove one of them first");
        const uint64_t hash = hash_of(key);
        const uint32_t index = sluice_view_line(prepared.view, hash);
        auto& line = lines_[index];
        filter_[index] |= sluice_filter_bits(hash);
        size_t used = 0;
        while (used < SLUICE_RULE_SLOTS && line.entry[used].value != 0)
            ++used;
        if (key.fits_line() && used + count <= SLUICE_RULE_SLOTS) {
            for (size_t i = begin; i < end; ++i)
                line.entry[used++] = {key.line_network(), rows[i].value};
        } else {
            filter_[index] |= SLUICE_FILTER_OVERFLOW;
            sluice_overflow over{};
            for (size_t i = begin; i < end; ++i)
                over.value[i - begin] = rows[i].value;
            prepared.spilled.push_back(overflow_key(key));
            prepared.spilled_values.push_back(over);
        }
        begin = end;
    }
    // Until the old half is out of use, what spilled from it stays beside what spills now.
    std::set<sluice_overflow_key, KeyOrder> together(prepared.spilled.begin(),
                                                     prepared.spilled.end());
    const auto read = overflow_.for_each(
        [&](const sluice_overflow_key& key, const sluice_overflow&) { together.insert(key); });
    if (!read)
        return read.error();
    if (together.size() > overflow_.capacity())
        return failed("the table of rules has no room for " + std::to_string(rows.size()) +
                          " rules (rule_lines: " +
                          std::to_string(uint64_t{view_.capacity()} * SLUICE_RULE_SLOTS) +
                          " entries, rule_overflow, where IPv6 prefixes longer than /64 go: " +
                          std::to_string(overflow_.capacity()) + " entries)",
                      std::string(kMakeRoom));
    return prepared;
}

Status RuleTable::commit(const Prepared& prepared) {
    const std::set<sluice_overflow_key, KeyOrder> spilled(prepared.spilled.begin(),
                                                          prepared.spilled.end());
    std::vector<sluice_overflow_key> stale;
    auto ready = overflow_.for_each([&](const sluice_overflow_key& key, const sluice_overflow&) {
        if (!spilled.contains(key))
            stale.push_back(key);
    });
    if (ready)
        ready = overflow_.put_all(prepared.spilled, prepared.spilled_values);
    if (!ready)
        return ready;
    view_.publish(prepared.view);
    overflow_.forget();
    if (auto waited = wait_for_packets_in_flight(); !waited)
        return waited;
    overflow_.erase_all(stale);
    return {};
}

Result<std::array<TableUse, 2>> RuleTable::use() const {
    TableUse lines{"rule_lines", 0, uint64_t{view_.capacity()} * SLUICE_RULE_SLOTS};
    for_lines_from(0, view_.lines(), [&lines](const RuleKey&, uint64_t) { ++lines.used; });
    const auto overflow = overflow_.use();
    if (!overflow)
        return overflow.error();
    return std::array{lines, *overflow};
}

}  // namespace sluice
