// Which CPU does what: the kernel's rules of scaling, on numbers alone.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "tune/host.h"

namespace sluice {

// CPUs that may take a card's interrupts, the best first.
struct Workers {
    std::vector<unsigned> order;  // one thread of every core, then their siblings
    size_t cores = 0;             // how many of them are cores of their own
    CpuSet reserved;              // kept free, with their siblings
    bool all_isolated = false;    // there were none but isolated ones, which are then taken
};

// Near the card: on its node, or on all where it names none that is online. `reserve` cores, the
// last ones, are kept free as long as one is left.
Workers workers_near(const Host& host, std::optional<unsigned> node, unsigned reserve);

// Which CPUs send by which queue: each by that of its own CPU, of its core, of its cache, of its
// node, in this order of closeness; queues that are equally close take turns. By queue.
std::map<unsigned, CpuSet> senders(const Host& host, const std::map<unsigned, unsigned>& cpu_of);

}  // namespace sluice
