// What the packet path counted, summed over CPUs, interfaces and services as asked.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gate/tables.h"

namespace sluice {

// By sluice_counter_index(): every verdict, then what each drop would have been in observe mode.
using Counters = std::array<sluice_counter, SLUICE_COUNTERS>;

// "drop_banned", or "would_drop_banned" for the twin that observe mode counts.
std::string_view counter_name(uint32_t index);
// What the verdict means, in a few words.
std::string_view counter_meaning(uint32_t index);

enum class CounterKind { passed, dropped, would_drop };
CounterKind counter_kind(uint32_t index);

struct CounterFilter {
    std::optional<uint32_t> service{};  // stable id
    std::optional<uint32_t> interface_slot{};
};
Counters read_counters(const Tables& tables, const CounterFilter& filter = {});

// How full the table of per-source state is.
struct SourceUse {
    uint64_t capacity = 0;  // words: one per source, service and limit
    uint64_t live = 0;      // of them, those that still hold somebody back
    uint64_t evicted_live = 0;
};
// Reads the whole table: some tens of milliseconds for a million sources.
SourceUse source_use(const Tables& tables);

}  // namespace sluice
