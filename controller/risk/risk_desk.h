// Everything about risk on one host: signals come in from any thread, bans go out from one, which
// may wait for Redis and for the lock of the tables. Settings come from the policy in the gate.
//
// What a host scores by itself is in its memory: a restart of the daemon begins anew, and bans
// stay.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fleet/redis_drill.h"
#include "gate/tables.h"
#include "net/tcp_flow.h"
#include "observe/audit.h"
#include "observe/event_line.h"
#include "risk/fleet_risk.h"
#include "risk/judge.h"
#include "risk/seen_sources.h"

namespace sluice {

struct RiskStanding {
    bool is_on = false;                         // the policy has [risk]
    std::optional<BanAllowance::Stop> stopped;  // of this host's own scores
    uint64_t now_ms = 0;                        // of the clock of Stop::since_ms
    size_t scored = 0;
    uint64_t forgotten = 0;
    uint64_t lost = 0;    // sampled events that came faster than they could be looked at
    size_t verified = 0;  // active sources
    RiskCounts counts;
    std::string error;                       // of the last ban; empty where it was done
    std::optional<FleetRiskStanding> fleet;  // where the policy names a Redis

    // Why no more bans are made, in words; empty where they are.
    [[nodiscard]] std::string stop_reason() const;
};

// A source that has a score, or was banned lately.
struct RiskEntry {
    Prefix source;
    SourceScore score;
    uint64_t now_ms = 0;  // of the clock of its times
    bool is_fleet = false;
};

class RiskDesk {
  public:
    // While `drill` is on, Redis is not asked.
    RiskDesk(std::string pin_dir, std::string state_dir, const RedisDrill& drill);

    // Does what is due. To be called every 25 ms or so, by one thread.
    void step();

    // --- for any thread --------------------------------------------------------------------------
    // A packet that the gate has told of.
    void take(const Event& event);
    // Errors where the policy has no [risk].
    Result<SourceScore> add(const IpAddress& source, double amount);
    // Forgets its score, here and in the fleet. Whether one is known.
    Result<bool> clear(const IpAddress& source);
    // Goes on after a stop, here and in the fleet; with `forget` whoever is due now begins anew.
    Status release(bool forget);
    [[nodiscard]] RiskStanding standing() const;
    // Highest first.
    [[nodiscard]] std::vector<RiskEntry> highest(size_t most) const;

  private:
    using Clock = std::chrono::steady_clock;

    // What is of use of an event.
    struct Signal {
        IpAddress source, destination;
        uint16_t source_port = 0, destination_port = 0;
        uint64_t packets = 0;         // that were over a limit
        bool is_established = false;  // by what it looks like: TCP, and no opening
    };

    bool look_at_gate();
    void look_at_policy();
    void take_signals();
    bool is_proven(const Signal& signal);
    void decide();
    RiskJudge::World world();
    [[nodiscard]] bool is_seen(const Prefix& source) const;
    [[nodiscard]] bool is_guarded(const Prefix& source) const;
    std::optional<Error> ban(const std::vector<RiskBan>& bans, size_t& done);
    void step_fleet();
    void publish();

    std::string pin_dir_, state_dir_;
    const RedisDrill& drill_;
    AuditLog audit_;
    std::optional<Tables> tables_;
    std::optional<uint64_t> pin_;
    uint64_t policy_version_ = 0;
    std::vector<uint32_t> limited_;  // ids of services with limits of sources
    SeenSources seen_;
    std::optional<TcpFlows> flows_;
    std::unique_ptr<FleetRisk> fleet_;
    std::optional<RedisSettings> redis_;
    std::string fleet_name_, host_;
    size_t verified_ = 0;
    Clock::time_point decide_due_{}, publish_due_{}, tidy_due_{};

    mutable std::mutex mutex_;  // of all that follows
    std::optional<RiskSettings> settings_;
    std::optional<RiskJudge> judge_;
    std::vector<Signal> signals_;
    std::vector<RiskOrder> orders_;
    std::vector<RiskEntry> fleet_highest_;
    RiskStanding standing_;
};

}  // namespace sluice
