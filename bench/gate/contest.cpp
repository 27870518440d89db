#include "contest.h"

#include <algorithm>
#include <utility>

namespace sluice::bench {

Result<Contest> Contest::make(const ContestOptions& options) {
    Contest contest;
    contest.options_ = options;
    if (const auto pinned = pin_to(options.cpu); !pinned)
        return pinned.error();
    for (auto* lane : {&contest.bare_lane_, &contest.gate_lane_}) {
        auto made = Lane::make();
        if (!made)
            return made.error();
        lane->emplace(std::move(*made));
    }

    auto gate = MeasuredGate::make();
    if (!gate)
        return gate.error();
    contest.gate_.emplace(std::move(*gate));
    if (const auto prepared = prepare(*contest.gate_); !prepared)
        return prepared.error();
    if (const auto attached = contest.gate_lane_->attach(contest.gate_->fd()); !attached)
        return attached.error();

    auto bare = BareProgram::load();
    if (!bare)
        return bare.error();
    contest.bare_.emplace(std::move(*bare));
    if (const auto attached = contest.bare_lane_->attach(contest.bare_->drop()); !attached)
        return attached.error();
    return contest;
}

Result<Measurement> Contest::run(const Case& which) {
    auto to_bare = bare_lane_->traffic(which.packets, {options_.cpu});
    if (!to_bare)
        return to_bare.error();
    auto to_gate = gate_lane_->traffic(which.packets, {options_.cpu});
    if (!to_gate)
        return to_gate.error();

    // Every source has been here before its packets are timed.
    const uint64_t warm_up = std::max(which.packets.sources, 20'000U);
    const auto turn = [&](Traffic& traffic) -> Result<double> {
        if (const auto warm = traffic.time(warm_up); !warm)
            return warm.error();
        return traffic.time(options_.packets);
    };
    if (const auto first = turn(*to_gate); !first)
        return first.error();

    Measurement measurement;
    const uint64_t before = gate_->counted(which.verdict), sent_before = to_gate->sent();
    for (unsigned i = 0; i < options_.rounds; i++) {
        const auto bare_ns = turn(*to_bare);
        if (!bare_ns)
            return bare_ns.error();
        const auto gate_ns = turn(*to_gate);
        if (!gate_ns)
            return gate_ns.error();
        measurement.rounds.push_back({*bare_ns, *gate_ns});
    }
    measurement.sent = to_gate->sent() - sent_before;
    measurement.as_meant = gate_->counted(which.verdict) - before;
    return measurement;
}

}  // namespace sluice::bench
