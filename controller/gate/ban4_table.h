// Ban4Table: exact IPv4 bans, in dense lines of seven that the packet path reads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gate/line_view.h"
#include "gate/overflow.h"
#include "gate/tables.h"

namespace sluice {

struct Ban4 {
    uint32_t address = 0;  // host order
    uint64_t until = 0;    // units of the tables
};

// Writers hold the WriterLock. A ban that is there stays there at every moment of every change.
class Ban4Table {
  public:
    // `tables` stays where it is for as long as this.
    explicit Ban4Table(Tables& tables);
    Ban4Table(const Ban4Table&) = delete;
    Ban4Table& operator=(const Ban4Table&) = delete;

    // Another writer may have been here.
    void forget() { overflow_.forget(); }

    // The deadline as the packet path finds it; 0 = not banned. It may have passed.
    [[nodiscard]] uint64_t until(uint32_t address) const;

    // Bans, extends or shortens. Grows the table when that is due.
    Status set(uint32_t address, uint64_t until);
    void remove(uint32_t address);

    // A new content, built beside the old one; `commit` publishes it at once and cannot fail for
    // lack of room. Addresses are distinct.
    struct Prepared {
        uint64_t view = 0;
        size_t count = 0;
        std::vector<uint32_t> spilled;
        std::vector<uint64_t> spilled_until;
    };
    Result<Prepared> prepare(std::span<const Ban4> bans, uint32_t least_lines = 0);
    Status commit(const Prepared& prepared);

    // visit(address, until) for every entry, expired ones too.
    template <class Visit>
    Status for_each(Visit&& visit) const {
        for_lines(view_.base(), view_.lines(), visit);
        return for_overflow(visit);
    }
    template <class Visit>
    Status for_overflow(Visit&& visit) const {
        return overflow_.for_each(visit);
    }
    // The same for `count` lines from `first` on, counted from the live part's start.
    template <class Visit>
    void for_lines_from(uint32_t first, uint32_t count, Visit&& visit) const {
        for_lines(view_.base() + first, std::min(count, view_.lines() - first), visit);
    }
    [[nodiscard]] uint32_t lines() const { return view_.lines(); }

    // Expired addresses whose place was given away since the last call.
    std::vector<uint32_t> take_displaced() { return std::exchange(displaced_, {}); }

    // Of the lines, at the size that they may grow to, and of the overflow.
    [[nodiscard]] Result<std::array<TableUse, 2>> use() const;

  private:
    template <class Visit>
    void for_lines(uint32_t begin, uint32_t count, Visit&& visit) const {
        for (uint32_t i = begin; i < begin + count; ++i)
            for (unsigned slot = 0; slot < SLUICE_BAN4_SLOTS; ++slot)
                if (const uint64_t until = slot_until(lines_[i], slot); until != 0)
                    visit(lines_[i].address[slot], until);
    }

    [[nodiscard]] static uint64_t slot_until(const sluice_ban4_line& line, unsigned slot);
    [[nodiscard]] uint64_t hash_of(uint32_t address) const;
    [[nodiscard]] static int slot_of(const sluice_ban4_line& line, uint32_t address);
    [[nodiscard]] int free_slot(const sluice_ban4_line& line) const;
    void fill(uint32_t line, unsigned slot, uint32_t address, uint64_t until);
    void recompute_filter(uint32_t line);
    void count(int change);
    Status grow();
    Status spill(uint32_t line, uint32_t address, uint64_t until);

    const Tables* tables_;
    LineView view_;
    std::span<sluice_ban4_line> lines_;
    std::span<uint64_t> filter_;
    Overflow<uint32_t, uint64_t> overflow_;
    std::vector<uint32_t> displaced_;
};

}  // namespace sluice
