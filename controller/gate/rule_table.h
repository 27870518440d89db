// RuleTable: every rule but plain exact IPv4 bans, in lines of four that the packet path reads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gate/line_view.h"
#include "gate/overflow.h"
#include "gate/rule_key.h"
#include "gate/tables.h"

namespace sluice {

// One rule of one prefix; `value` as in struct sluice_rule_entry.
struct RuleRow {
    RuleKey key;
    uint64_t value = 0;
};

// What holds for one prefix: at most four different rules, all in its line or all in the overflow.
class RuleValues {
  public:
    void add(uint64_t value) { values_[count_++] = value; }
    [[nodiscard]] bool full() const { return count_ == values_.size(); }
    [[nodiscard]] std::span<const uint64_t> span() const { return {values_.data(), count_}; }
    [[nodiscard]] bool empty() const { return count_ == 0; }

  private:
    std::array<uint64_t, SLUICE_RULE_SLOTS> values_{};
    size_t count_ = 0;
};

// Writers hold the WriterLock. A rule that stays is there at every moment of every change.
class RuleTable {
  public:
    // `tables` stays where it is for as long as this.
    explicit RuleTable(Tables& tables);
    RuleTable(const RuleTable&) = delete;
    RuleTable& operator=(const RuleTable&) = delete;

    // Another writer may have been here.
    void forget() { overflow_.forget(); }

    // As the packet path finds them, expired ones too.
    [[nodiscard]] RuleValues values(const RuleKey& key) const;
    // Makes the rules of a prefix exactly these. Grows the table when that is due.
    Status set(const RuleKey& key, std::span<const uint64_t> wanted);

    // A new content, built beside the old one; `commit` publishes it at once and cannot fail for
    // lack of room. Rows of one prefix lie side by side.
    struct Prepared {
        uint64_t view = 0;
        std::vector<sluice_overflow_key> spilled;
        std::vector<sluice_overflow> spilled_values;
    };
    Result<Prepared> prepare(std::span<const RuleRow> rows, uint32_t least_lines = 0);
    Status commit(const Prepared& prepared);

    // visit(key, value) for every rule, expired ones too.
    template <class Visit>
    Status for_each(Visit&& visit) const {
        for_lines_from(0, view_.lines(), visit);
        return for_overflow(visit);
    }
    template <class Visit>
    Status for_overflow(Visit&& visit) const {
        return overflow_.for_each([&](const sluice_overflow_key& key, const sluice_overflow& over) {
            for (const uint64_t value : over.value)
                if (value != 0)
                    visit(RuleKey{key.network, key.length}, value);
        });
    }
    // The same for `count` lines from `first` on, counted from the live part's start.
    template <class Visit>
    void for_lines_from(uint32_t first, uint32_t count, Visit&& visit) const {
        const uint32_t begin = view_.base() + first;
        for (uint32_t i = begin; i < begin + std::min(count, view_.lines() - first); ++i)
            for (const auto& entry : lines_[i].entry)
                if (const uint64_t value = __atomic_load_n(&entry.value, __ATOMIC_ACQUIRE);
                    value != 0)
                    visit(RuleKey::of_entry({entry.network, value}), value);
    }
    [[nodiscard]] uint32_t lines() const { return view_.lines(); }

    // Prefixes of expired rules whose place was given away since the last call.
    std::vector<RuleKey> take_displaced() { return std::exchange(displaced_, {}); }

    // Of the lines, at the size that they may grow to, and of the overflow.
    [[nodiscard]] Result<std::array<TableUse, 2>> use() const;

  private:
    [[nodiscard]] uint64_t hash_of(const RuleKey& key) const;
    [[nodiscard]] bool fits(const RuleKey& key, uint32_t line, size_t count) const;
    [[nodiscard]] bool crowded() const;
    void set_line(const RuleKey& key, uint32_t line, std::span<const uint64_t> wanted);
    void clear_line(const RuleKey& key, uint32_t line);
    Status spill(const RuleKey& key, uint32_t line, std::span<const uint64_t> wanted);
    void recompute_filter(uint32_t line);
    Status grow();

    const Tables* tables_;
    LineView view_;
    std::span<sluice_rule_line> lines_;
    std::span<uint64_t> filter_;
    Overflow<sluice_overflow_key, sluice_overflow> overflow_;
    std::vector<RuleKey> displaced_;
};

}  // namespace sluice
