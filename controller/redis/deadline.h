// Moments by which something has to be over, on a clock that nobody can set.
#pragma once

#include <chrono>
#include <cstddef>

namespace sluice::redis {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// The deadline of the first of `tries` in a row, where all have the same share of what is left.
inline Deadline share_of(Deadline deadline, size_t tries) {
    const Clock::time_point now = Clock::now();
    return now + (deadline - now) / static_cast<Clock::rep>(tries);
}

}  // namespace sluice::redis
