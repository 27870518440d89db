#include "gate/counters.h"

#include <cstddef>

namespace sluice {

namespace {

struct CounterText {
    std::string_view name;
    std::string_view meaning;
};

constexpr std::array<CounterText, SLUICE_COUNTERS> kTexts = {{
#define X(name, text) {#name, text},
    SLUICE_PASSES(X) SLUICE_DROPS(X)
#undef X
#define X(name, text) {"would_" #name, text},
        SLUICE_DROPS(X)
#undef X
}};

// The packet path adds to them meanwhile; each is a whole number at any time.
uint64_t peek(const __u64& counter) {
    return __atomic_load_n(&counter, __ATOMIC_RELAXED);
}

uint64_t live_words(const sluice_source_set& set, uint64_t now_ns) {
    const uint64_t touched = peek(set.touched);
    // The next visitor clears such a set before it reads it.
    if (now_ns > touched && now_ns - touched >= SLUICE_SET_STALE_NS)
        return 0;
    uint64_t live = 0;
    for (const __u64& entry : set.word)
        if (const uint64_t word = peek(entry);
            word != 0 && sluice_ahead(word, sluice_units(now_ns)) > 0)
            ++live;
    return live;
}

}  // namespace

std::string_view counter_name(uint32_t index) {
    return kTexts[index].name;
}
std::string_view counter_meaning(uint32_t index) {
    return kTexts[index].meaning;
}

CounterKind counter_kind(uint32_t index) {
    if (index < SLUICE_FIRST_DROP)
        return CounterKind::passed;
    return index < SLUICE_VERDICTS ? CounterKind::dropped : CounterKind::would_drop;
}

Counters read_counters(const Tables& tables, const CounterFilter& filter) {
    const TableSizes& sizes = tables.sizes;
    Counters sum{};
    for (size_t cpu = 0; cpu < sizes.cpus; ++cpu)
        for (size_t slot = 0; slot < sizes.interfaces; ++slot) {
            if (filter.interface_slot && *filter.interface_slot != slot)
                continue;
            for (size_t service = 0; service < sizes.services; ++service) {
                if (filter.service && *filter.service != service)
                    continue;
                const sluice_counters& row =
                    tables.counters[(cpu * sizes.interfaces + slot) * sizes.services + service];
                for (size_t index = 0; index < sum.size(); ++index) {
                    sum[index].packets += peek(row.by_verdict[index].packets);
                    sum[index].bytes += peek(row.by_verdict[index].bytes);
                }
            }
        }
    return sum;
}

SourceUse source_use(const Tables& tables) {
    SourceUse use;
    use.capacity = tables.sources.size() * SLUICE_SET_WORDS;
    const uint64_t now_ns = gate_now_ns(tables);
    for (const sluice_source_set& set : tables.sources.span())
        use.live += live_words(set, now_ns);
    for (const sluice_cpu& cpu : tables.cpus.span())
        use.evicted_live += peek(cpu.evicted_live) + peek(cpu.windows_evicted_live);
    return use;
}

}  // namespace sluice
