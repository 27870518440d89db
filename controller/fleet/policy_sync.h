// This host's side of the fleet's policy: learns within a quarter of a second which version it is
// to have, fetches it, and offers it to whoever puts policies in force. What was put in force is
// kept on disk for a start without Redis.
//
// step() and save() are for one thread, which may wait for Redis; all else is for others as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "base/result.h"
#include "fleet/fleet_policy.h"
#include "fleet/policy_file.h"
#include "fleet/policy_message.h"
#include "fleet/redis_drill.h"
#include "policy/policy.h"
#include "redis/redis.h"

namespace sluice {

// Who this host is, and where its fleet is.
struct FleetMember {
    std::optional<RedisSettings> redis;  // nothing: in no fleet
    std::string fleet;
    std::string id;    // 32 hex digits; empty: not known yet
    std::string name;  // of the machine

    friend bool operator==(const FleetMember&, const FleetMember&) = default;
};

struct PolicyStanding {
    bool is_followed = false;
    std::string fleet;
    uint64_t current = 0;  // as Redis has it; 0: none, or not heard yet
    uint64_t canary = 0;
    std::string canary_hosts;
    uint64_t wanted = 0;   // which of them is this host's
    uint64_t applied = 0;  // the last version of the fleet that was put in force here
    bool is_canary = false;
    uint64_t refused = 0;  // the version that this host is to have and can't; 0: none
    std::string refusal;   // why
    bool is_lost = false;  // Redis has no policy any more; what is in force stays
    // Redis has a state of before the change that this host has, as of a backup; what is in force
    // stays.
    bool is_older = false;
    std::string unsaved;  // why what is in force would not outlive a reboot; empty where it would
    std::string error;    // of the last poll; empty where it was answered
};

class PolicySync {
  public:
    // The drill outlives it.
    PolicySync(const std::string& state_dir, const RedisDrill& drill);

    void follow(FleetMember member);
    // Does what is due; whether there is a new offer. To be called every 25 ms or so.
    bool step();
    // A version that this host is to have, once; whoever takes it says with answered() what came of
    // it. A refusal is tried again every few seconds: it may be for want of room, or the policy in
    // force waits for a confirmation.
    std::optional<FleetVersion> take_offer();
    void answered(const Status& status);
    // Asks now, whatever is due: for a host without a daemon.
    Status round();
    [[nodiscard]] PolicyStanding standing() const;

  private:
    using Clock = std::chrono::steady_clock;

    // Which version, and by which change.
    struct Wanted {
        uint64_t version = 0;
        uint64_t since_ms = 0;
        bool is_canary = false;
        std::vector<PolicyOverride> overrides{};  // by Redis's clock

        friend bool operator==(const Wanted&, const Wanted&) = default;
    };

    void begin(FleetMember member);
    void take_answer();
    void save_in_time();
    Status poll();
    Status read_overrides();
    void forget_refusal();
    [[nodiscard]] Wanted pick(const PolicyPointers& pointers) const;
    Status fetch(const Wanted& wanted);
    Status write_forgotten_budgets(const PolicyPointers& pointers);
    void offer();
    std::chrono::milliseconds jittered(std::chrono::milliseconds time);
    void note(const Status& status);

    PolicyFile file_;
    const RedisDrill& drill_;
    FleetMember member_;
    std::optional<PolicyKeys> keys_;
    std::optional<Redis> redis_;
    std::optional<FleetVersion> version_;  // that was fetched last
    Wanted fetched_, applied_;             // 0: none
    uint64_t newest_ms_ = 0;               // the stamp by which this host has what it has
    std::optional<FleetVersion> unsaved_;  // in force, and not on disk
    std::vector<PolicyOverride> overrides_;
    uint64_t seen_rev_ = 0;    // of these
    int64_t ahead_ms_ = 0;     // Redis's clock, of this host's boot clock
    bool is_offered_ = false;  // and not answered yet
    // Budgets that nobody has written yet, by a stamp or the time they were due; and since when
    uint64_t forgotten_ms_ = 0;
    Clock::time_point forgotten_since_{};
    Clock::time_point due_{}, offer_due_{}, save_due_{};
    std::minstd_rand random_;

    mutable std::mutex mutex_;
    std::optional<FleetMember> next_member_;
    std::optional<FleetVersion> offer_;
    std::optional<Status> answer_;
    PolicyStanding standing_;
};

}  // namespace sluice
