// A fleet in real time: each host has tables of a gate and a BudgetSync in a thread of its own, and
// leases from real servers. Traffic is what the test writes into the counters of demand.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../gate/test_gate.h"
#include "fleet/budget_sync.h"
#include "redis_test.h"

namespace sluice {

class LiveHost {
  public:
    // The tables are made, and hold the policy.
    LiveHost(std::string pin_dir, const std::string& policy, const std::string& source = "test");
    LiveHost(const LiveHost&) = delete;
    LiveHost& operator=(const LiveHost&) = delete;
    ~LiveHost();

    // From this source, as the gate keeps it.
    void apply(const std::string& policy, const std::string& source = "test");
    // Units a second asked of `web.data`.
    void set_demand(double per_second) { demand_ = per_second; }
    // Its process begins, or ends as if it were killed: what it put in force stays.
    void start();
    void kill();

    struct InForce {
        double per_second = 0;
        bool is_leased = false;
        friend bool operator==(const InForce&, const InForce&) = default;
    };
    [[nodiscard]] InForce in_force() const;
    [[nodiscard]] FleetStanding standing() const { return sync_->standing(); }
    [[nodiscard]] BudgetSync& sync() { return *sync_; }
    [[nodiscard]] Tables& tables() { return tables_; }
    [[nodiscard]] RedisDrill& drill() { return drill_; }
    // The longest that one step took.
    [[nodiscard]] std::chrono::milliseconds longest_step() const { return longest_step_; }

  private:
    void run(const std::stop_token& stop);

    std::string pin_dir_;
    Tables tables_;
    uint32_t service_id_ = 0;
    std::atomic<double> demand_{0};
    std::atomic<std::chrono::milliseconds> longest_step_{std::chrono::milliseconds(0)};
    RedisDrill drill_;
    std::unique_ptr<BudgetSync> sync_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

// What all hosts together had in force, as a share of the budget.
struct Worst {
    double leased = 0;  // by leases that had not ended
    double all = 0;     // what holds without a lease included
};

class LiveFleet : public lab::RedisTest {
  protected:
    static constexpr double kBudget = 12'000;
    static constexpr unsigned kMaxHosts = 8;

    void SetUp() override;
    void TearDown() override;

    // `settings`: more lines of [redis], such as a password_file.
    static std::string policy(const std::string& url, double budget = kBudget,
                              const std::string& settings = {});
    void add_hosts(unsigned hosts, const std::string& policy);
    void add(std::unique_ptr<LiveHost> host);
    // The time in which a new state only confirms is over; `server` has the state.
    static void end_learning(const lab::RedisServer& server);
    // All lease, nothing is unknown any more, and the budget is used up.
    void settle(const lab::RedisServer& server);
    // The first host asks for 80 % of the budget, the others for 30 % each, so somebody has to be
    // short.
    void ask_for_more_than_there_is();

    [[nodiscard]] bool all_leased() const;
    [[nodiscard]] bool none_leased() const;
    [[nodiscard]] bool all_say(const std::string& words) const;
    // Of the moments since it was called last.
    Worst worst();
    [[nodiscard]] double leased_now() const;

    static std::string state_key();
    // What a host has without Redis.
    static constexpr double kSafe = kBudget / kMaxHosts;

    std::vector<std::unique_ptr<LiveHost>> hosts_;

  private:
    void watch(const std::stop_token& stop);

    std::mutex mutex_;
    Worst worst_;
    std::jthread watcher_;
};

}  // namespace sluice
