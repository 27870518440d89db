// Who works on packets: by CPU and by queue, between two looks.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tune/machine.h"

namespace sluice {

// Counters as they stand; of a captured tree those of its last moment.
struct Reading {
    struct Cpu {
        uint64_t packets = 0;           // into the stack: what native XDP drops never gets here
        uint64_t dropped = 0;           // because the CPU's backlog was full
        uint64_t squeezed = 0;          // times that work was left when its turn was over
        uint64_t steered = 0;           // handed over by RPS from another CPU
        uint64_t softirq = 0, all = 0;  // ticks
    };
    std::chrono::steady_clock::time_point at{};
    std::map<unsigned, Cpu> cpus;
    std::map<std::string, uint64_t>
        queues;  // packets received, by "eth0 rx-0", as the driver has it
};
Reading read_counters(const Machine& machine, const std::vector<std::string>& ports);

struct CpuRate {
    unsigned cpu = 0;
    double packets = 0, dropped = 0, squeezed = 0, steered = 0;  // a second
    double softirq = 0;                                          // share of its time, 0 to 1
};
struct QueueRate {
    std::string queue;
    double packets = 0;  // a second
};
struct Rates {
    std::vector<CpuRate> cpus;
    std::vector<QueueRate> queues;
};
Rates rates_between(const Reading& first, const Reading& last);
// Looks twice; blocks for `span`.
Rates measure(const Machine& machine, const std::vector<std::string>& ports,
              std::chrono::milliseconds span);

}  // namespace sluice
