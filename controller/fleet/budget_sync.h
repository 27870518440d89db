// The shared budgets of this host: leased from Redis, and their shares put in force in the gate;
// its part of what heavy sources may have; and the fleet as Redis has it, this host's heartbeat
// included.
//
// What is shared, and where Redis is, comes from the policy in the gate, so this needs nothing but
// its pins. For one thread, which may wait for Redis; standing() and view() are for others as well.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fleet/fleet_policy.h"
#include "fleet/fleet_view.h"
#include "fleet/lease_holder.h"
#include "fleet/redis_drill.h"
#include "fleet/source_sync.h"
#include "gate/budgets.h"
#include "gate/tables.h"
#include "redis/redis.h"

namespace sluice {

// How one shared budget stands on this host.
struct BudgetStanding {
    std::string service;
    Dimension dimension{};
    double limit = 0;              // a second, of the whole fleet, as Redis has it
    std::optional<double> demand;  // a second, on this host
    double share = 0;              // a second, now; of counted tokens: what was granted last
    bool unlimited = false;
    bool is_leased = false;           // false: what the policy says for a host without Redis
    std::chrono::nanoseconds left{};  // of the lease
};

struct FleetStanding {
    bool is_shared = false;  // there is something to share
    std::string fleet;
    std::string host;             // this one's identity, 32 hex digits
    uint64_t policy_version = 0;  // of the fleet's policy, in force here; 0: its own file is
    uint32_t hosts = 0;           // that lease from the busiest shard, this one included
    bool is_learning = false;
    uint64_t duplicates = 0;  // times that another host had this one's identity
    uint64_t lost = 0;        // calls without an answer
    std::string error;        // of the last call; empty where it was answered
    std::string unlisted;     // why the others don't see this host; empty where they do
    std::chrono::nanoseconds drill_left{};  // zero: no drill
    redis::Health redis;
    std::vector<BudgetStanding> budgets;
    SourcesStanding sources;

    // Whether Redis answered the last call, and may be called.
    [[nodiscard]] bool is_up() const {
        return error.empty() && drill_left.count() == 0 &&
               redis.last_ok != std::chrono::steady_clock::time_point{};
    }
};

// As the connection wants them.
redis::Options redis_options(const RedisSettings& settings);

class BudgetSync {
  public:
    // The drill outlives it.
    BudgetSync(std::string pin_dir, const RedisDrill& drill)
        : pin_dir_(std::move(pin_dir)), drill_(drill) {}

    // Does what is due: an exchange with Redis for leases, and now and then one for the heartbeat
    // and one for the view. To be called every 20 ms or so.
    void step();
    [[nodiscard]] FleetStanding standing() const;
    // The fleet as it was within the last second, or why it can't be seen. Nothing where that has
    // to be asked first: one of the next steps does, so ask again.
    [[nodiscard]] std::optional<Result<FleetView>> view();
    // What the next heartbeats say: the fleet's policy that can't be put in force here; 0: none.
    void report_refusal(uint64_t version, std::string why);
    void report_cut(const std::optional<CutRate>& cut);
    // A packet of it was sampled at this service: it may be heavy on other hosts as well.
    void saw(const IpAddress& source, uint32_t service_id) { sources_.saw(source, service_id); }

  private:
    struct Budget {
        std::string service;
        uint32_t service_id = 0;
        Dimension dimension{};
        std::optional<Share> put;  // as it was put in force last
    };
    // The budgets of one shard, by their names in Redis.
    struct Shard {
        unsigned number = 0;
        std::unique_ptr<LeaseHolder> holder;
        std::map<std::string, Budget> budgets;
        std::vector<FleetBudget> to_set;  // in Redis, because it is new there or here
        bool sets_unknown = false;  // only what is missing there, whatever else has a later version
        std::chrono::milliseconds later{};  // that version
    };

    bool look_at_gate();
    void look_at_policy();
    void connect(const Policy& policy);
    void share_budgets(const Policy& policy, LeasePool pool, uint64_t now_ns);
    void look_at_sleep();
    void observe(uint64_t now_ns);
    void ask(uint64_t now_ns);
    void note_set(Shard& shard, const redis::Reply& reply);
    void take(Shard& shard, const redis::Reply& reply, const LeaseRequest& request,
              uint64_t now_ns);
    [[nodiscard]] bool may_set(uint64_t now_ns) const;
    void owe(uint64_t now_ns);
    void put_in_force();
    void beat(uint64_t now_ns);
    void look_at_fleet();
    void publish(uint64_t now_ns);

    std::string pin_dir_;
    const RedisDrill& drill_;
    std::optional<Tables> tables_;
    std::optional<uint64_t> pin_;  // of these tables
    uint64_t policy_version_ = 0;
    LeasePool pool_ = LeasePool::enforce;
    std::optional<RedisSettings> settings_;
    FleetSettings fleet_;
    std::optional<FleetSource> from_fleet_;   // where the policy is a version of the fleet's
    bool is_scheduled_ = false;               // with numbers that a schedule gives it now
    std::chrono::milliseconds policy_age_{};  // when it was put in force, ms since 1970
    std::optional<Redis> redis_;
    std::vector<Shard> shards_;
    SourceSync sources_;
    int64_t asleep_ns_ = 0;  // so far, since boot
    // Redis lacks budgets, or has some of this host alone: whoever is responsible is to write them.
    bool is_owed_ = false;
    uint64_t owe_due_ns_ = 0;
    uint64_t policy_lost_until_ns_ = 0;  // it answered to that that it has no policy
    uint64_t beat_due_ns_ = 0;
    std::atomic<bool> is_view_wanted_ = false;

    mutable std::mutex mutex_;
    FleetStanding standing_;
    std::pair<uint64_t, std::string> refused_;
    std::optional<CutRate> cut_;
    std::optional<Result<FleetView>> view_;
    std::chrono::steady_clock::time_point viewed_at_{};
};

}  // namespace sluice
