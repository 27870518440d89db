#include "tune/place.h"

#include <algorithm>
#include <utility>

namespace sluice {

namespace {

std::vector<const Cpu*> candidates(const Host& host, std::optional<unsigned> node, bool isolated) {
    const bool is_known = node && std::ranges::find(host.nodes, *node) != host.nodes.end();
    std::vector<const Cpu*> found;
    for (const Cpu& cpu : host.cpus)
        if (cpu.isolated == isolated && (!is_known || cpu.node == *node))
            found.push_back(&cpu);
    return found;
}

// 0 is the CPU itself; the larger, the further its memory.
unsigned distance(const Cpu& from, const Cpu& to) {
    if (from.number == to.number)
        return 0;
    if (from.siblings.contains(to.number))
        return 1;
    if (from.cache.contains(to.number))
        return 2;
    return from.node == to.node ? 3 : 4;
}

}  // namespace

Workers workers_near(const Host& host, std::optional<unsigned> node, unsigned reserve) {
    auto near = candidates(host, node, false);
    // All of the node is isolated: another node is better than a CPU that is nobody's to take.
    if (near.empty())
        near = candidates(host, std::nullopt, false);
    Workers workers;
    workers.all_isolated = near.empty();
    if (near.empty())
        near = candidates(host, node, true);
    std::vector<const Cpu*> cores;
    CpuSet seen;
    for (const Cpu* cpu : near)
        if (std::ranges::none_of(cpu->siblings,
                                 [&](unsigned other) { return seen.contains(other); })) {
            cores.push_back(cpu);
            seen.insert(cpu->number);
        }
    for (; reserve > 0 && cores.size() > 1; --reserve) {
        workers.reserved.insert(cores.back()->siblings.begin(), cores.back()->siblings.end());
        cores.pop_back();
    }
    workers.cores = cores.size();
    for (const Cpu* core : cores)
        workers.order.push_back(core->number);
    for (const Cpu* cpu : near)
        if (!seen.contains(cpu->number) && !workers.reserved.contains(cpu->number))
            workers.order.push_back(cpu->number);
    return workers;
}

std::map<unsigned, CpuSet> senders(const Host& host, const std::map<unsigned, unsigned>& cpu_of) {
    std::map<unsigned, CpuSet> shares;
    for (const auto& [queue, unused] : cpu_of)
        shares[queue];
    for (const Cpu& cpu : host.cpus) {
        std::optional<unsigned> best;
        auto rank = std::pair(~0U, ~size_t{0});
        for (const auto& [queue, home] : cpu_of) {
            const Cpu* at = host.find(home);
            if (at == nullptr)
                continue;
            const auto own = std::pair(distance(*at, cpu), shares[queue].size());
            if (own < rank) {
                rank = own;
                best = queue;
            }
        }
        if (best)
            shares[*best].insert(cpu.number);
    }
    return shares;
}

}  // namespace sluice
