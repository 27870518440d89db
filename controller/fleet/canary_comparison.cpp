#include "fleet/canary_comparison.h"

namespace sluice {

namespace {

CutOfGroup group_of(const FleetView& view, uint64_t version, bool is_canary) {
    CutOfGroup group;
    for (const HostView& host : view.hosts) {
        const Heartbeat& last = host.last;
        if (host.is_away() || last.fleet_version != version || last.is_canary != is_canary ||
            !last.cut)
            continue;
        group.hosts++;
        group.rate.packets += last.cut->packets;
        group.rate.cut += last.cut->cut;
        group.rate.sources += last.cut->sources;
        group.rate.heaviest += last.cut->heaviest * last.cut->cut;
    }
    if (group.rate.cut > 0)
        group.rate.heaviest /= group.rate.cut;
    return group;
}

}  // namespace

CanaryComparison compare_canary(const FleetView& view, uint64_t canary, uint64_t current) {
    return {group_of(view, canary, true), group_of(view, current, false)};
}

}  // namespace sluice
