// A switch word taken apart, changed, and put together again: plain values, no tables.
#pragma once

#include <sluice/mode.h>

#include <cstdint>

namespace sluice {

struct SwitchWord {
    uint32_t now = 0;
    uint32_t after = 0;                           // what comes back at the deadline
    uint32_t policy = 0;                          // what the policy says
    sluice_origin origin = SLUICE_ORIGIN_POLICY;  // of `now`
    bool after_is_override = false;
    bool waits = false;     // for a confirmation
    uint64_t deadline = 0;  // in units of 2^20 ns; 0 = none

    static SwitchWord from(uint64_t word);
    [[nodiscard]] uint64_t word() const;

    // Where nobody says anything: `value`, by the policy.
    static SwitchWord by_policy(uint32_t value);

    [[nodiscard]] bool is_override() const { return origin != SLUICE_ORIGIN_POLICY; }
    [[nodiscard]] bool is_expired(uint64_t now_ns) const;
    // A change that is still to be confirmed.
    [[nodiscard]] bool is_pending(uint64_t now_ns) const { return waits && !is_expired(now_ns); }
    [[nodiscard]] uint64_t deadline_ns() const { return deadline << SLUICE_DEADLINE_SHIFT; }

    // With what the deadline did, where it has passed, made plain.
    [[nodiscard]] SwitchWord settled(uint64_t now_ns) const;
    // The policy says `value` now; overrides stay. A deadline (in ns; 0 = none) makes the change
    // one that waits for a confirmation of the whole policy.
    [[nodiscard]] SwitchWord with_policy(uint32_t value, uint64_t now_ns,
                                         uint64_t deadline_ns) const;
    // An operator says `value`, for good or until a deadline (in ns). What comes back then is what
    // stood here for good before: a timed override is replaced, not stacked.
    [[nodiscard]] SwitchWord with_override(uint32_t value, uint64_t now_ns, uint64_t deadline_ns,
                                           bool must_confirm) const;
    // The fleet says `value`, for good or until a deadline (in ns). An operator's word here beats
    // it, unless `beats_operator`.
    [[nodiscard]] SwitchWord with_fleet(uint32_t value, uint64_t now_ns, uint64_t deadline_ns,
                                        bool beats_operator) const;
    // The fleet says nothing any more.
    [[nodiscard]] SwitchWord without_fleet(uint64_t now_ns) const;
    // Confirmed: stays for good, or until `then_ns` where that is not 0.
    [[nodiscard]] SwitchWord confirmed(uint64_t then_ns) const;
};

}  // namespace sluice
