// Builds a folder that looks like the /sys and /proc of a machine, as `tune capture` makes them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tune/device.h"

namespace sluice {

class Tree {
  public:
    explicit Tree(std::string folder) : folder_(std::move(folder)) {}
    // Writes what was said of interrupts.
    ~Tree();
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    void write(const std::string& path, std::string_view text) const;

    // Lists as the kernel has them.
    void cpus(const std::string& online, const std::string& possible,
              const std::string& isolated = "") const;
    // Threads of one core, or the sharers of a cache of level 3.
    void core(const std::string& threads) const;
    void cache(const std::string& sharers) const;
    void node(unsigned number, const std::string& cpus) const;

    struct Queues {
        unsigned receive = 1, send = 1;
        std::string rps = "0", xps = "0";  // masks of all of them
    };
    // `node` -1: near none in particular.
    void card(const std::string& name, int node, const DeviceFacts& facts,
              const Queues& queues) const;
    void lower(const std::string& upper, const std::string& lower) const;
    void irq(const std::string& card, unsigned number, const std::string& name,
             const std::string& affinity, bool managed = false);
    void program(unsigned pid, const std::string& name) const;

  private:
    std::string folder_;
    std::string interrupts_;
};

}  // namespace sluice
