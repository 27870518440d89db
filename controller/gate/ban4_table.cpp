#include "gate/ban4_table.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "gate/rule_key.h"
#include "gate/table_list.h"

namespace sluice {

namespace {

// At 55 % of the slots, 100,000 bans lie in 2 MiB and 2 % of them find their line full.
constexpr uint32_t kFill = 55;

template <class Number>
void store(Number& where, uint64_t value) {
    __atomic_store_n(&where, static_cast<Number>(value), __ATOMIC_RELEASE);
}

// The deadline has two parts. Written in this order it is never earlier, for a moment, than both
// the old and the new one.
void write_until(sluice_ban4_line& line, unsigned slot, uint64_t until) {
    const uint64_t high = until >> 32;
    if (high > line.until_high[slot]) {
        store(line.until_high[slot], high);
        store(line.until_low[slot], until & 0xffffffff);
    } else {
        store(line.until_low[slot], until & 0xffffffff);
        store(line.until_high[slot], high);
    }
}

void clear_until(sluice_ban4_line& line, unsigned slot) {
    store(line.until_high[slot], 0);
    store(line.until_low[slot], 0);
}

}  // namespace

Ban4Table::Ban4Table(Tables& tables)
    : tables_(&tables),
      view_(tables.settings().ban4_view, tables.sizes.ban4_lines),
      lines_(tables.ban4_lines.span()),
      filter_(tables.ban4_filter.span()),
      overflow_({tables.ban4_overflow.get(), "ban4_overflow", ban4_overflow_entries(tables.sizes)},
                [this](uint32_t address) { return view_.line(hash_of(address)); }) {}

uint64_t Ban4Table::slot_until(const sluice_ban4_line& line, unsigned slot) {
    return __atomic_load_n(&line.until_low[slot], __ATOMIC_RELAXED) |
           static_cast<uint64_t>(__atomic_load_n(&line.until_high[slot], __ATOMIC_RELAXED)) << 32;
}

uint64_t Ban4Table::hash_of(uint32_t address) const {
    return sluice_address_hash(&tables_->seed(), RuleKey::of_ipv4(address).network);
}

int Ban4Table::slot_of(const sluice_ban4_line& line, uint32_t address) {
    for (unsigned slot = 0; slot < SLUICE_BAN4_SLOTS; ++slot)
        if (line.address[slot] == address && slot_until(line, slot) != 0)
            return static_cast<int>(slot);
    return -1;
}

int Ban4Table::free_slot(const sluice_ban4_line& line) const {
    const uint64_t now = gate_now_ns(*tables_);
    int expired = -1;
    for (unsigned slot = 0; slot < SLUICE_BAN4_SLOTS; ++slot) {
        const uint64_t until = slot_until(line, slot);
        if (until == 0)
            return static_cast<int>(slot);
        if (!is_live(until, now))
            expired = static_cast<int>(slot);
    }
    return expired;
}

uint64_t Ban4Table::until(uint32_t address) const {
    if (__atomic_load_n(&tables_->settings().bans4, __ATOMIC_RELAXED) == 0)
        return 0;
    const uint64_t hash = hash_of(address);
    const uint32_t index = view_.line(hash);
    const uint64_t bits = sluice_filter_bits(hash);
    const uint64_t filter = __atomic_load_n(&filter_[index], __ATOMIC_RELAXED);
    if ((filter & bits) != bits)
        return 0;
    if (const int slot = slot_of(lines_[index], address); slot >= 0)
        return slot_until(lines_[index], static_cast<unsigned>(slot));
    if ((filter & SLUICE_FILTER_OVERFLOW) == 0)
        return 0;
    return overflow_.find(address).value_or(0);
}

void Ban4Table::count(int change) {
    auto& bans = tables_->settings().bans4;
    store(bans, bans + static_cast<uint32_t>(change));
}

void Ban4Table::fill(uint32_t index, unsigned slot, uint32_t address, uint64_t until) {
    auto& line = lines_[index];
    if (slot_until(line, slot) != 0) {
        displaced_.push_back(line.address[slot]);
        clear_until(line, slot);
        count(-1);
    }
    store(filter_[index], filter_[index] | sluice_filter_bits(hash_of(address)));
    store(line.address[slot], address);
    write_until(line, slot, until);
}

void Ban4Table::recompute_filter(uint32_t index) {
    uint64_t bits = 0;
    for (unsigned slot = 0; slot < SLUICE_BAN4_SLOTS; ++slot)
        if (slot_until(lines_[index], slot) != 0)
            bits |= sluice_filter_bits(hash_of(lines_[index].address[slot]));
    if ((filter_[index] & SLUICE_FILTER_OVERFLOW) != 0)
        for (const uint32_t address : overflow_.behind(index))
            bits |= sluice_filter_bits(hash_of(address)) | SLUICE_FILTER_OVERFLOW;
    store(filter_[index], bits);
}

Status Ban4Table::spill(uint32_t index, uint32_t address, uint64_t until) {
    store(filter_[index],
          filter_[index] | sluice_filter_bits(hash_of(address)) | SLUICE_FILTER_OVERFLOW);
    auto put = overflow_.put(address, until);
    if (!put)
        recompute_filter(index);
    return put;
}

Status Ban4Table::set(uint32_t address, uint64_t until) {
    const uint64_t hash = hash_of(address);
    for (;;) {
        const uint32_t index = view_.line(hash);
        auto& line = lines_[index];
        if (const int slot = slot_of(line, address); slot >= 0) {
            write_until(line, static_cast<unsigned>(slot), until);
            return {};
        }
        const bool spilled =
            (filter_[index] & SLUICE_FILTER_OVERFLOW) != 0 && overflow_.find(address).has_value();
        if (const int slot = free_slot(line); slot >= 0) {
            if (!spilled)
                count(1);
            fill(index, static_cast<unsigned>(slot), address, until);
            if (spilled) {
                overflow_.erase(address);
                recompute_filter(index);
            }
            return {};
        }
        if (spilled)
            return overflow_.put(address, until);

        const uint64_t slots = uint64_t{view_.lines()} * SLUICE_BAN4_SLOTS;
        const bool crowded = tables_->settings().bans4 * 100ULL >= slots * kFill;
        if (!crowded || !view_.can_grow()) {
            count(1);
            const auto put = spill(index, address, until);
            if (put)
                return put;
            count(-1);
            if (!view_.can_grow())
                return put.error().with_context("all lines for exact IPv4 bans are in use");
        }
        if (auto grown = grow(); !grown)
            return grown;
    }
}

void Ban4Table::remove(uint32_t address) {
    const uint32_t index = view_.line(hash_of(address));
    auto& line = lines_[index];
    if (const int slot = slot_of(line, address); slot >= 0)
        clear_until(line, static_cast<unsigned>(slot));
    else if ((filter_[index] & SLUICE_FILTER_OVERFLOW) == 0 || !overflow_.find(address))
        return;
    else
        overflow_.erase(address);
    recompute_filter(index);
    count(-1);
}

Status Ban4Table::grow() {
    const uint64_t now = gate_now_ns(*tables_);
    std::vector<Ban4> live;
    const auto read = for_each([&](uint32_t address, uint64_t until) {
        if (is_live(until, now))
            live.push_back({address, until});
        else
            displaced_.push_back(address);
    });
    if (!read)
        return read;
    auto prepared = prepare(live, 2 * view_.lines());
    if (!prepared)
        return prepared.error();
    return commit(*prepared);
}

Result<Ban4Table::Prepared> Ban4Table::prepare(std::span<const Ban4> bans, uint32_t least_lines) {
    // Room for a quarter more than there is.
    const size_t room = bans.size() + bans.size() / 4;
    const uint32_t lines = std::clamp(view_.lines_for(room, SLUICE_BAN4_SLOTS, kFill), least_lines,
                                      std::max(least_lines, view_.capacity()));
    Prepared prepared{LineView::make(view_.idle_base(), lines), bans.size(), {}, {}};
    const auto area = lines_.subspan(view_.idle_base(), lines);
    const auto words = filter_.subspan(view_.idle_base(), lines);
    std::fill(area.begin(), area.end(), sluice_ban4_line{});
    std::fill(words.begin(), words.end(), 0);

    for (const auto& ban : bans) {
        const uint64_t hash = hash_of(ban.address);
        const uint32_t index = sluice_view_line(prepared.view, hash);
        auto& line = lines_[index];
        filter_[index] |= sluice_filter_bits(hash);
        unsigned slot = 0;
        while (slot < SLUICE_BAN4_SLOTS && slot_until(line, slot) != 0)
            ++slot;
        if (slot < SLUICE_BAN4_SLOTS) {
            line.address[slot] = ban.address;
            write_until(line, slot, ban.until);
        } else {
            filter_[index] |= SLUICE_FILTER_OVERFLOW;
            prepared.spilled.push_back(ban.address);
            prepared.spilled_until.push_back(ban.until);
        }
    }
    // Until the old half is out of use, what spilled from it stays beside what spills now.
    std::unordered_set<uint32_t> together(prepared.spilled.begin(), prepared.spilled.end());
    const auto read =
        overflow_.for_each([&](uint32_t address, uint64_t) { together.insert(address); });
    if (!read)
        return read.error();
    if (together.size() > overflow_.capacity())
        return failed("the table of exact IPv4 bans has no room for " +
                          std::to_string(bans.size()) + " bans (ban4_lines: " +
                          std::to_string(uint64_t{view_.capacity()} * SLUICE_BAN4_SLOTS) +
                          " entries, ban4_overflow: " + std::to_string(overflow_.capacity()) +
                          " entries)",
                      std::string(kMakeRoom));
    return prepared;
}

Status Ban4Table::commit(const Prepared& prepared) {
    std::vector<uint32_t> stale;
    const std::unordered_set<uint32_t> spilled(prepared.spilled.begin(), prepared.spilled.end());
    auto ready = overflow_.for_each([&](uint32_t address, uint64_t) {
        if (!spilled.contains(address))
            stale.push_back(address);
    });
    if (ready)
        ready = overflow_.put_all(prepared.spilled, prepared.spilled_until);
    if (!ready)
        return ready;
    if (prepared.count > 0)
        store(tables_->settings().bans4, prepared.count);
    view_.publish(prepared.view);
    store(tables_->settings().bans4, prepared.count);
    overflow_.forget();
    if (auto waited = wait_for_packets_in_flight(); !waited)
        return waited;
    overflow_.erase_all(stale);
    return {};
}

Result<std::array<TableUse, 2>> Ban4Table::use() const {
    TableUse lines{"ban4_lines", 0, uint64_t{view_.capacity()} * SLUICE_BAN4_SLOTS};
    for_lines_from(0, view_.lines(), [&lines](uint32_t, uint64_t) { ++lines.used; });
    const auto overflow = overflow_.use();
    if (!overflow)
        return overflow.error();
    return std::array{lines, *overflow};
}

}  // namespace sluice
