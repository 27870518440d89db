// What this host's limits hold back, and how widely it is spread: for the comparison of a canary.
#pragma once

#include <chrono>
#include <optional>

#include "fleet/heartbeat.h"
#include "gate/counters.h"
#include "gate/tables.h"
#include "observe/heavy_sources.h"

namespace sluice {

class CutMeter {
  public:
    using Clock = std::chrono::steady_clock;

    // Rates are means that forget with this time constant.
    static constexpr std::chrono::seconds kMemory{10};

    // To be called each second. Nothing after the first call. Bans and malformed packets are no
    // policy's, so they are not held back by it.
    std::optional<CutRate> measure(const Tables& tables, const HeavySources& heavy,
                                   Clock::time_point now);
    // Another policy: what the one before held back is not its.
    void restart() { before_.reset(); }

  private:
    struct Reading {
        Clock::time_point at;
        double packets = 0;
        double cut = 0;
    };
    std::optional<Reading> before_;
    std::optional<CutRate> rate_;
};

}  // namespace sluice
