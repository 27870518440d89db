// What a machine has besides its cards: CPUs, nodes, caches, and who else moves interrupts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/cpu_set.h"
#include "tune/machine.h"

namespace sluice {

struct Cpu {
    unsigned number = 0;
    unsigned node = 0;
    CpuSet siblings;        // the threads of its core that are online, itself among them
    CpuSet cache;           // those that share its largest cache, itself among them
    bool isolated = false;  // or nohz_full: kept free for something else

    // The thread that stands for the core.
    [[nodiscard]] bool is_first_of_core() const { return *siblings.begin() == number; }
};

struct Host {
    std::vector<Cpu> cpus;  // online, by number
    std::vector<unsigned> nodes;
    unsigned possible = 0;  // CPUs that may ever come online
    bool irqbalance = false;
    bool tuned = false;
    bool sys_read_only = false;            // as in a container
    bool irqs_read_only = false;           // /proc/irq
    std::optional<unsigned> flow_entries;  // net.core.rps_sock_flow_entries, where it can be seen

    [[nodiscard]] const Cpu* find(unsigned number) const;
};

// An error where the tree says nothing of CPUs, or nonsense.
Result<Host> look_at_cpus(const Machine& machine);

}  // namespace sluice
