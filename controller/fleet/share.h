// What a host may let through of one shared budget, until when, and what holds after that.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

// A token bucket; units are the budget's: connections, packets, bytes.
struct Allowance {
    double per_second = 0;
    double burst = 0;        // the most that the bucket holds
    bool unlimited = false;  // nothing is counted

    friend bool operator==(const Allowance&, const Allowance&) = default;
};

// Complete in itself: whoever enforces it needs nobody to be alive when it ends.
struct Share {
    Allowance now;
    double added = 0;             // tokens that go into the bucket once, beside its rate
    uint64_t valid_until_ns = 0;  // monotonic
    Allowance after;              // from then on, for good

    friend bool operator==(const Share&, const Share&) = default;

    [[nodiscard]] const Allowance& at(uint64_t monotonic_ns) const {
        return monotonic_ns < valid_until_ns ? now : after;
    }
};

// A bucket's content when a share takes the place of another. What is there is kept as far as it
// fits: refilling by the new rate for the time before it would hand out tokens at each change.
inline double tokens_kept(double tokens, const Share& share) {
    return std::clamp(tokens + share.added, 0.0, share.now.burst);
}

}  // namespace sluice
