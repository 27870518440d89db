// A host's part in the risk of its fleet. One host leads: it walks the set that gateways write to,
// keeps its scores, and bans in the whole fleet. The others say whom their gates have seen, and
// wait to take over. For one thread, which may wait for Redis.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fleet/feed_message.h"
#include "fleet/redis_drill.h"
#include "observe/audit.h"
#include "policy/policy.h"
#include "redis/redis.h"
#include "risk/judge.h"
#include "risk/risk_message.h"

namespace sluice {

struct FleetRiskStanding {
    bool leads = false;
    std::string leader;                // its host's id; empty: nobody leads
    bool is_read = false;              // a whole pass was made since this host leads
    uint64_t passes = 0;               // whole ones
    std::chrono::milliseconds pass{};  // what the last one took
    size_t members = 0;                // of the last pass
    size_t identities = 0;             // of them, users and devices, which are left out
    size_t unreadable = 0;             // of them, what makes no sense
    size_t no_room = 0;                // of them, those that there was no room for
    size_t scored = 0;
    uint64_t forgotten = 0;
    RiskCounts counts;
    std::optional<BanAllowance::Stop> stopped;  // as long as it leads
    uint64_t now_ms = 0;                        // of Redis's clock, as Stop::since_ms
    std::string error;                          // of the last round; empty where it was answered
};

class FleetRisk {
  public:
    struct Options {
        RedisSettings redis;
        std::string fleet;
        std::string host;  // its id
        RiskSettings risk;
        std::string state_dir;
        // One pass over the set. A set that is drained is looked at each second.
        std::chrono::milliseconds pass = std::chrono::seconds(15);
        // For so long nobody else leads where this host is gone.
        std::chrono::milliseconds lead = std::chrono::seconds(5);
    };
    FleetRisk(Options options, const RedisDrill& drill);
    ~FleetRisk();  // gives the lead back
    FleetRisk(const FleetRisk&) = delete;
    FleetRisk& operator=(const FleetRisk&) = delete;

    void change(const RiskSettings& settings);
    // Does what is due. To be called every 25 ms or so.
    void step(const RiskJudge::World& world);
    // Who was verified here is told to the fleet.
    void verified(const Prefix& source);
    // For whoever leads.
    void order(const RiskOrder& order);

    [[nodiscard]] FleetRiskStanding standing() const;
    // Of this host's scores, where it leads.
    [[nodiscard]] std::vector<ScoreBook::Entry> highest(size_t most) const;
    [[nodiscard]] uint64_t now_ms() const;  // Redis's clock

  private:
    using Clock = std::chrono::steady_clock;
    using Replies = std::vector<redis::Reply>;

    Result<Replies> ask(const std::vector<redis::Command>& commands);
    Status round(const RiskJudge::World& world);
    Status take_lead(const RiskLead& lead);
    void lose_lead();
    [[nodiscard]] bool leads() const;
    Status tell_seen(std::string_view wanted, const RiskJudge::World& world);
    Status lead(const RiskJudge::World& world);
    void obey(const RiskOrder& order);
    Status ban(const std::vector<RiskBan>& bans);
    Status write_wanted();
    Status write_state();
    Status walk();
    Status begin_pass();
    Status scan_once();
    void take(std::span<const redis::Reply> members);
    Status end_pass();
    Status write_checkpoint();
    Status read_checkpoint();

    Options options_;
    const RedisDrill& drill_;
    RiskKeys keys_;
    FeedKeys feed_;
    AuditLog audit_;
    std::optional<Redis> redis_;
    RiskJudge judge_;
    std::minstd_rand random_;

    // Redis's clock when it was last heard, and when that was.
    uint64_t heard_ms_ = 0;
    Clock::time_point heard_{};
    Clock::time_point round_due_{};
    Clock::time_point leads_until_{};
    uint64_t token_ = 0;
    std::string leader_;
    std::string written_wanted_, written_state_;
    std::deque<RiskOrder> orders_;
    std::vector<Prefix> verified_;

    // The pass.
    Clock::time_point pass_begun_{}, pass_due_{};
    bool in_pass_ = false;
    std::string cursor_;
    std::string run_id_;  // of the server whose set it is
    size_t calls_ = 0, all_calls_ = 0;
    std::string round_error_, walk_error_;  // of the last round, and step of a pass
    FleetRiskStanding seen_;                // of the pass under way
    FleetRiskStanding standing_;
};

}  // namespace sluice
