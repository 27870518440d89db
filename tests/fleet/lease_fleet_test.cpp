// Many hosts, one real Redis, invented time: what holds for the fleet as a whole, whatever is lost,
// late, killed, wiped or cloned on the way.
#include "redis_test.h"
#include "simulated_fleet.h"

namespace sluice {
namespace {

using lab::RedisServer;
using namespace std::chrono_literals;

constexpr const char* kWeb = "web.data";
constexpr double kBudget = 100'000;
// Sums of many shares, in double precision.
constexpr double kRounding = 1e-9;

class LeaseFleet : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        redis::Options options = patient("unix://" + server().socket());
        redis_.emplace(Redis::open(options).value());
        (void)redis_->run(redis::Command{"FLUSHALL"});
    }
    static RedisServer& server() {
        static RedisServer server({"save \"\""});
        return server;
    }
    sim::SimulatedFleet& make(unsigned hosts, double budget = kBudget,
                              const sim::NetworkModel& network = {}) {
        sim::FleetModel model;
        model.hosts = hosts;
        model.budgets = {{{kWeb, budget, budget / 20, 1}, OnRedisLoss::safe}};
        model.lease.max_hosts = hosts;
        model.network = network;
        fleet_.emplace(sim::SimulatedFleet::make(*redis_, model).value());
        EXPECT_TRUE(fleet_->set_budgets(1));
        return *fleet_;
    }
    // Nothing new is given in the first lease's time, as hosts might be there that are not known.
    void settle() {
        run(19s);  // idle hosts hear of its end with their next call
        ASSERT_FALSE(fleet_->any_learning());
        fleet_->reset_totals();
    }
    void run(std::chrono::milliseconds time) {
        const Status done = fleet_->run(time);
        ASSERT_TRUE(done) << done.error().message;
    }
    void all_demand(unsigned hosts, double per_second) {
        for (unsigned host = 0; host < hosts; host++)
            fleet_->set_demand(host, per_second);
    }
    const sim::BudgetTotals& totals() const { return fleet_->totals(kWeb); }
    double utilisation() const { return totals().admitted / totals().wanted; }

    std::optional<Redis> redis_;
    std::optional<sim::SimulatedFleet> fleet_;
};

TEST_F(LeaseFleet, ABusyFleetUsesItsBudgetAndNoMore) {
    make(20);
    all_demand(20, 2 * kBudget / 20);
    settle();
    run(10s);
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    EXPECT_GE(utilisation(), 0.97);
    EXPECT_LE(totals().worst_second, 1.05 * kBudget) << "rate, and its burst of 50 ms";
}

TEST_F(LeaseFleet, NothingIsIssuedTwiceWithLostAndLateAnswersAndDeaths) {
    constexpr unsigned kHosts = 20;
    make(kHosts, kBudget,
         {.lost_requests = 0.05, .lost_replies = 0.10, .late_delay = 20ms, .late = 0.5});
    settle();
    std::minstd_rand random(7);
    for (int i = 0; i < 200; i++) {
        // Demand moves all the time, and every two seconds somebody dies and comes back.
        for (unsigned host = 0; host < kHosts; host++)
            if (random() % 4 == 0)
                fleet_->set_demand(host,
                                   kBudget / kHosts * static_cast<double>(random() % 400) / 100);
        const auto victim = static_cast<unsigned>(random() % kHosts);
        if (i % 10 == 0)
            fleet_->kill(victim);
        run(200ms);
        if (i % 10 == 0)
            fleet_->restart(victim);
    }
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    EXPECT_GE(totals().worst_issued, 0.97) << "or the test was too easy";
    EXPECT_LE(totals().worst_fallback, 0.25) << "hosts that were cut off, by the safe share";
}

TEST_F(LeaseFleet, CalmHostsKeepAllTheyAskForWhileAnotherIsFlooded) {
    constexpr unsigned kHosts = 20;
    make(kHosts);
    all_demand(kHosts, kBudget / 2 / kHosts);
    settle();
    fleet_->set_demand(0, 10 * kBudget);
    run(2s);
    fleet_->reset_totals();
    run(10s);
    for (unsigned host = 1; host < kHosts; host++)
        EXPECT_GE(fleet_->admitted(host, kWeb), 0.97 * 10 * kBudget / 2 / kHosts) << host;
    EXPECT_GE(utilisation(), 0.95) << "what the noise of the calm ones may need stays with them";
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
}

TEST_F(LeaseFleet, EqualDemandGetsEqualShares) {
    constexpr unsigned kHosts = 10;
    make(kHosts);
    all_demand(kHosts, kBudget);
    settle();
    for (unsigned host = 0; host < kHosts; host++)
        EXPECT_NEAR(fleet_->in_force(host, kWeb), kBudget / kHosts, 0.01 * kBudget / kHosts);
}

TEST_F(LeaseFleet, WhoSpikesHasMostOfWhatIsFreeAtOnce) {
    constexpr unsigned kHosts = 20;
    make(kHosts);
    all_demand(kHosts, 0.3 * kBudget / kHosts);
    settle();
    fleet_->set_demand(3, 2 * kBudget);
    run(200ms);
    const double free = 0.2 * (kBudget - 0.3 * kBudget * 19 / 20);
    EXPECT_GE(fleet_->admitted(3, kWeb), 0.45 * free);
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    run(2s);
    EXPECT_GE(fleet_->in_force(3, kWeb), 0.65 * kBudget);
}

TEST_F(LeaseFleet, ALoweredBudgetIsExceededForOneLeaseAtMost) {
    constexpr unsigned kHosts = 20;
    make(kHosts, kBudget, {.lost_replies = 0.1});
    all_demand(kHosts, kBudget);
    settle();
    ASSERT_TRUE(fleet_->set_budgets(2, 0.25));
    run(500ms);
    EXPECT_LE(fleet_->issued(kWeb), 1 + kRounding);
    fleet_->reset_totals();
    run(3s);
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    EXPECT_GE(utilisation(), 0.97);
}

TEST_F(LeaseFleet, ABudgetChangesEverywhereAtItsTime) {
    make(10);
    all_demand(10, kBudget);
    settle();
    ASSERT_TRUE(fleet_->set_budgets(1, 2, 1s));
    run(990ms);
    EXPECT_NEAR(fleet_->issued(kWeb), 0.5, 0.01);
    run(500ms);
    EXPECT_GE(fleet_->issued(kWeb), 0.97);
}

TEST_F(LeaseFleet, AWipedRedisGivesNothingThatIsOutAlready) {
    constexpr unsigned kHosts = 10;
    make(kHosts);
    for (unsigned host = 0; host < kHosts; host++)
        fleet_->set_demand(host, kBudget * (host + 1) / 20);
    settle();
    for (int i = 0; i < 3; i++) {
        ASSERT_TRUE(fleet_->wipe());
        run(1s);
        EXPECT_TRUE(fleet_->any_learning());
        run(4s);
    }
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    EXPECT_LE(totals().worst_fallback, kRounding) << "nobody lost its share";
    EXPECT_GE(utilisation(), 0.95);
    run(14s);
    EXPECT_FALSE(fleet_->any_learning());
}

TEST_F(LeaseFleet, AClockThatJumpsGivesNothingThatIsOutAlready) {
    constexpr unsigned kHosts = 10;
    make(kHosts);
    all_demand(kHosts, kBudget);
    settle();
    for (const auto jump : {3000ms, -3000ms, 3'600'000ms, 400ms}) {
        // Some are gone for good at that moment, with shares in force.
        fleet_->kill(0);
        fleet_->jump(jump);
        run(2s);
        EXPECT_TRUE(fleet_->any_learning()) << jump.count();
        EXPECT_LE(totals().worst_issued, 1 + kRounding) << jump.count();
        run(14s);
        fleet_->restart(0);
        run(3s);
        EXPECT_FALSE(fleet_->any_learning()) << jump.count();
    }
}

TEST_F(LeaseFleet, AnotherMasterWithTheSameDataAndAnotherClockGivesNothingThatIsOutAlready) {
    RedisServer master({"save 3600 1"});
    redis_.emplace(Redis::open(patient(master.url())).value());
    constexpr unsigned kHosts = 10;
    make(kHosts);
    all_demand(kHosts, kBudget);
    settle();
    for (const auto ahead : {5000ms, -5000ms}) {
        // One is gone for good at that moment, with its share in force.
        fleet_->kill(0);
        master.stop();
        master.start();
        fleet_->jump(ahead);
        run(2s);
        EXPECT_TRUE(fleet_->any_learning()) << ahead.count();
        EXPECT_LE(totals().worst_issued, 1 + kRounding) << ahead.count();
        EXPECT_GE(totals().worst_issued, 0.97) << "or there was nothing to give twice";
        run(14s);
        fleet_->restart(0);
        run(3s);
        EXPECT_FALSE(fleet_->any_learning()) << ahead.count();
    }
}

TEST_F(LeaseFleet, TwoHostsWithOneIdentityPartWays) {
    constexpr unsigned kHosts = 5;
    make(kHosts);
    all_demand(kHosts, kBudget);
    settle();
    fleet_->impersonate(1, 2);
    run(1s);
    EXPECT_GE(fleet_->duplicates(), 1U);
    EXPECT_LE(fleet_->duplicates(), 3U);
    run(2s);
    fleet_->reset_totals();
    run(3s);
    EXPECT_LE(totals().worst_issued, 1 + kRounding);
    EXPECT_GE(utilisation(), 0.97);
}

TEST_F(LeaseFleet, CountedTokensKeepTheirBound) {
    constexpr unsigned kHosts = 20;
    constexpr double kLow = 40;
    make(kHosts, kLow, {.lost_replies = 0.1});
    all_demand(kHosts, 10);
    settle();
    run(30s);
    EXPECT_LE(totals().worst_second, kLow + kLow * 0.5 + 1) << "a second, and a lease's time";
    EXPECT_LE(totals().admitted, kLow * 30 + kLow * 0.5 + 1);
    EXPECT_GE(utilisation(), 0.9);
}

TEST_F(LeaseFleet, IdleHostsHardlyCall) {
    constexpr unsigned kHosts = 20;
    make(kHosts);
    all_demand(kHosts, 0);
    fleet_->set_demand(0, kBudget / 2);
    settle();
    const uint64_t before = fleet_->calls();
    run(20s);
    const double per_second = static_cast<double>(fleet_->calls() - before) / 20;
    EXPECT_LE(per_second, 19 * 0.25 + 8);
    EXPECT_GE(utilisation(), 0.97);
}

}  // namespace
}  // namespace sluice
