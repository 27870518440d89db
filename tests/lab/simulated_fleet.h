// Many hosts that lease from one real Redis, in invented time.
//
// Hosts are the controller's own LeaseHolders and the scripts are its own too, except that they
// take the time from a key that the simulation sets: minutes of a fleet pass in seconds, and every
// run with the same seed is the same.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fleet/lease_holder.h"
#include "redis/redis.h"

namespace sluice::sim {

// A script of Sluice whose clock is the simulation's.
class ClockedScript {
  public:
    // An error where the script does not take its time from exactly one place.
    static Result<ClockedScript> load(Redis& redis, const redis::Script& script);
    [[nodiscard]] redis::Script script() const { return {"clocked", text_, sha1_}; }

  private:
    std::string text_, sha1_;
};

struct NetworkModel {
    double lost_requests = 0;                 // share that never reaches Redis
    double lost_replies = 0;                  // share that is executed, but not answered
    std::chrono::milliseconds delay{1};       // from sending to the answer
    std::chrono::milliseconds late_delay{1};  // the same for those that are late
    double late = 0;                          // share of answers
};

struct FleetModel {
    std::string name = "sim";
    unsigned hosts = 1;
    std::vector<SharedBudget> budgets;
    LeaseOptions lease;
    NetworkModel network;
    std::chrono::milliseconds tick{5};
    // How long a host waits for an answer before it counts as lost.
    std::chrono::milliseconds patience{100};
    bool poisson = true;  // arrivals; else exactly as demanded
    uint32_t seed = 1;
};

// What was seen of one budget since the last reset_totals().
struct BudgetTotals {
    double worst_issued = 0;    // most that leases in force added up to, as a share of the budget
    double worst_fallback = 0;  // the same for hosts without a lease
    double admitted = 0;        // units
    double wanted = 0;          // units that the budget had room for: min(demand, budget) over time
    double worst_second = 0;    // most units let through in any second
};

class SimulatedFleet {
  public:
    // Flushes nothing; uses keys of `model.name` alone.
    static Result<SimulatedFleet> make(Redis& redis, FleetModel model);

    // Puts the model's budgets into Redis, scaled.
    Status set_budgets(uint64_t version, double scale = 1, std::chrono::milliseconds in = {});
    // Units a second that arrive at a host, of all budgets or of one.
    void set_demand(unsigned host, double per_second);
    void set_demand(unsigned host, const std::string& budget, double per_second);
    void set_network(const NetworkModel& network) { model_.network = network; }

    Status run(std::chrono::milliseconds time);

    // The process is gone; what it put in force stays until it ends.
    void kill(unsigned host);
    // A new process with the same identity on the same machine.
    void restart(unsigned host);
    // This host goes on under the identity of another.
    void impersonate(unsigned host, unsigned other);
    // The server's clock, but nobody else's, moves by so much.
    void jump(std::chrono::milliseconds time) { redis_offset_ += time; }
    // Redis has lost everything, clock of the simulation included.
    Status wipe();

    void reset_totals();
    [[nodiscard]] const BudgetTotals& totals(const std::string& budget) const;
    // What is in force at a host at this moment, in units a second.
    [[nodiscard]] double in_force(unsigned host, const std::string& budget) const;
    // The same as a sum of all hosts that have leases, and as a share of what the budget is now.
    [[nodiscard]] double issued(const std::string& budget) const;
    // Units let through at a host since the last reset_totals().
    [[nodiscard]] double admitted(unsigned host, const std::string& budget) const;
    [[nodiscard]] uint64_t calls() const { return calls_; }
    [[nodiscard]] unsigned duplicates() const { return duplicates_; }
    [[nodiscard]] bool any_learning() const;
    [[nodiscard]] std::chrono::milliseconds now() const { return now_; }
    [[nodiscard]] std::string state_key(const std::string& budget) const;

  private:
    // What the packet path of a host has of one budget: it outlives the process.
    struct Bucket {
        Share share;
        bool leased = false;
        double tokens = 0;
        double fraction = 0;  // of a unit that has not arrived yet
        uint64_t demand = 0;
        double per_second = 0;
        double admitted = 0;
    };
    struct Pending {
        unsigned shard = 0;
        LeaseRequest request;
        std::optional<std::string> answer;
        std::chrono::milliseconds due{};
    };
    struct Host {
        std::string id;
        bool alive = true;
        std::map<unsigned, std::unique_ptr<LeaseHolder>> holders;  // by shard
        std::vector<Pending> pending;
        std::vector<Bucket> buckets;  // one a budget, in the order of the model
    };
    struct Second {  // of one budget
        std::deque<double> ticks;
        double sum = 0;
    };

    SimulatedFleet(Redis& redis, FleetModel model, ClockedScript lease, ClockedScript budget);
    void start_process(Host& host);
    void traffic();
    double arrive(Bucket& bucket, double unit);
    void deliver(Host& host);
    void take_answer(Host& host, const Pending& pending, LeaseHolder& holder,
                     const LeaseReply& reply);
    void put_in_force(Host& host, const Pending& pending, LeaseHolder& holder);
    void replace_identity(Host& host);
    Status call_redis();
    Status set_clock();
    void look();
    [[nodiscard]] uint64_t now_ns() const;
    [[nodiscard]] size_t index_of(const std::string& budget) const;
    double chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }

    Redis* redis_;
    FleetModel model_;
    ClockedScript lease_, budget_;
    std::minstd_rand random_;
    std::vector<Host> hosts_;
    std::vector<unsigned> shard_of_;  // per budget
    std::vector<unsigned> shards_;    // in use
    uint64_t round_cost_us_ = 0;      // Redis's time for a host's calls in a period
    std::vector<double> budget_now_;  // units a second, per budget
    std::vector<BudgetTotals> totals_;
    std::vector<Second> seconds_;
    std::chrono::milliseconds now_{0}, redis_offset_{0};
    uint64_t version_ = 0;  // of the budgets in Redis
    double scale_ = 1;
    bool budgets_missing_ = false;
    uint64_t calls_ = 0;
    unsigned duplicates_ = 0, identities_ = 0;
};

}  // namespace sluice::sim
