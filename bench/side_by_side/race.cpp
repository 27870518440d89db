#include "race.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

namespace sluice::bench {

namespace {

// A turn of a slow contender is as long, with fewer packets.
constexpr double kTurnNs = 40e6;
constexpr uint64_t kFewest = 50'000;
// Sent before each turn, so that caches hold what they can.
constexpr uint64_t kWarmUp = 20'000;

struct Racer {
    Contender* contender;
    std::optional<Traffic> traffic{};
    uint64_t packets = 0;
    uint64_t sent_before = 0, passed_before = 0;
    std::vector<double> ns{}, ratios{};
    std::string problem{};

    [[nodiscard]] bool runs() const { return problem.empty(); }
    void stop(const Error& error) { problem = error.message; }
};

std::vector<unsigned> senders(unsigned cores) {
    std::vector<unsigned> cpus;
    for (unsigned cpu = 0; cpu < cores; cpu++)
        cpus.push_back(cpu);
    return cpus;
}

Status prepare(Racer& racer, const Row& row, uint16_t port, uint64_t most) {
    if (const auto applied = racer.contender->apply(row.setup); !applied)
        return applied.error();
    lab::FloodPlan plan = row.packets;
    plan.destination_port = port;
    auto traffic = racer.contender->lane().traffic(plan, senders(row.cores));
    if (!traffic)
        return traffic.error();
    racer.traffic.emplace(std::move(*traffic));
    if (const auto warm = racer.traffic->time(row.warm_up); !warm)
        return warm.error();
    const auto ns = racer.traffic->time(kFewest);
    if (!ns)
        return ns.error();
    racer.packets = std::clamp(static_cast<uint64_t>(kTurnNs / std::max(*ns, 1.0)),
                               std::min(kFewest, most), most);
    const auto passed = racer.contender->passed();
    if (!passed)
        return passed.error();
    racer.passed_before = *passed;
    racer.sent_before = racer.traffic->sent();
    return {};
}

Result<double> turn(Racer& racer) {
    if (const auto warm = racer.traffic->time(kWarmUp); !warm)
        return warm.error();
    return racer.traffic->time(racer.packets);
}

}  // namespace

Result<RowResult> race(const Row& row, Contender& bare, const RaceOptions& options) {
    if (row.cores > std::thread::hardware_concurrency())
        return make_error(ErrorCode::not_found, "this machine has too few cores");
    if (const auto pinned = pin_to(0); !pinned)
        return pinned.error();
    Racer reference{.contender = &bare};
    if (const auto ready = prepare(reference, row, kLimitedPort, options.packets); !ready)
        return ready.error();
    std::vector<Racer> racers;
    for (const Entrant& entrant : row.entrants) {
        racers.push_back({.contender = entrant.contender});
        if (const auto ready = prepare(racers.back(), row, entrant.port, options.packets); !ready)
            racers.back().stop(ready.error());
    }
    for (unsigned round = 0; round < options.rounds; round++) {
        const auto bare_ns = turn(reference);
        if (!bare_ns)
            return bare_ns.error();
        reference.ns.push_back(*bare_ns);
        for (size_t i = 0; i < racers.size(); i++) {
            Racer& racer = racers[i];
            if (!racer.runs())
                continue;
            const auto ns = turn(racer);
            if (!ns) {
                racer.stop(ns.error());
                continue;
            }
            racer.ns.push_back(*ns);
            racer.ratios.push_back(*ns / *bare_ns);
        }
    }

    RowResult result{.row = &row, .bare_ns = spread_of(reference.ns), .finishes = {}};
    for (size_t i = 0; i < racers.size(); i++) {
        Racer& racer = racers[i];
        Finish finish{.name = row.entrants[i].name};
        if (racer.runs()) {
            const auto passed = racer.contender->passed();
            const auto sent = racer.traffic->sent() - racer.sent_before;
            finish.ns = spread_of(racer.ns).median;
            finish.ratio = spread_of(racer.ratios);
            if (passed)
                // A namespace says a word of its own now and then, so more may pass than was sent.
                finish.dropped =
                    std::max(0.0, 1 - static_cast<double>(*passed - racer.passed_before) /
                                          static_cast<double>(sent));
            else
                racer.stop(passed.error());
        }
        finish.problem = racer.problem;
        // What so many sources left behind would still be live in the rows to come.
        if (row.setup.limit.rate != 0 && (row.packets.scatter || row.packets.sources > 10'000))
            racer.contender->renew();
        result.finishes.push_back(std::move(finish));
    }
    return result;
}

}  // namespace sluice::bench
