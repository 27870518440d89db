// From one limit in domain words to the integers that the packet path computes with.
#pragma once

#include <sluice/service.h>

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// The clocks of this host, measured when the gate is loaded.
struct ClockFacts {
    uint32_t tick_ns = 0;  // how often the coarse clock moves
    uint32_t lag_ns = 0;   // how far it may lie behind the fine one
};

// What a burst defaults to: this much time of the rate, at least 1.
inline constexpr std::chrono::nanoseconds kSourceDefaultBurst = std::chrono::seconds(1);
inline constexpr std::chrono::nanoseconds kBudgetDefaultBurst = std::chrono::milliseconds(50);

// The range of scales that classes apply to the limits of sources; it includes 1.
struct ScaleRange {
    double least = 1;
    double most = 1;
};

ScaleRange scale_range(const std::vector<SourceClass>& classes);

// A bucket per source or prefix. The admitted rate is never above the written one; bursts are
// exact where one event takes longer than a few microseconds, else in the mean.
Result<sluice_limit> compile_limit(const TokenBucket& bucket, Dimension dimension,
                                   const ClockFacts& clock, ScaleRange scales = {});

// A service's budget on this host, at most 1e-5 below the written rate.
Result<sluice_budget_limit> compile_budget(const TokenBucket& bucket, Dimension dimension,
                                           const ClockFacts& clock);

// No limit, but the demand is counted.
sluice_budget_limit counted_only();
// One of so many equal parts of a budget, with a burst that lets single packets through.
TokenBucket share_of(const TokenBucket& whole, Dimension dimension, unsigned parts);
// The smallest burst that does.
uint64_t least_burst(Dimension dimension);

// A strict window: a log of times where every class stays within its slots, else cells.
Result<sluice_window_limit> compile_window(const StrictWindow& window, const ClockFacts& clock,
                                           ScaleRange scales = {});

}  // namespace sluice
