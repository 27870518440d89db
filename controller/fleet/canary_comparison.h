// A canary against the hosts that have the current version: does it hold back more, and whom?
#pragma once

#include <cstddef>
#include <cstdint>

#include "fleet/fleet_view.h"

namespace sluice {

// Hosts of one version that say how much their limits hold back.
struct CutOfGroup {
    size_t hosts = 0;
    CutRate rate;  // of all of them; `heaviest` weighted by what each holds back

    // Of their packets; 0 where there are none.
    [[nodiscard]] double share() const { return rate.packets > 0 ? rate.cut / rate.packets : 0; }
};

struct CanaryComparison {
    CutOfGroup canary, others;

    // Below it nothing can be said: packets a second of all its hosts.
    static constexpr double kLeastPackets = 10;
    // Less than this part of the packets is noise between hosts.
    static constexpr double kLeastDifference = 0.01;
    // So many sources, of which the ten heaviest have less than this part: users, and no attacker.
    static constexpr double kManySources = 20;
    static constexpr double kLittleEach = 0.5;

    [[nodiscard]] bool is_known() const { return canary.rate.packets >= kLeastPackets; }
    [[nodiscard]] bool holds_back_more() const {
        return is_known() && canary.share() - others.share() >= kLeastDifference;
    }
    // What it holds back is spread wide: many sources, little each.
    [[nodiscard]] bool is_wide() const {
        return canary.rate.sources >= kManySources && canary.rate.heaviest < kLittleEach;
    }
};

CanaryComparison compare_canary(const FleetView& view, uint64_t canary, uint64_t current);

}  // namespace sluice
