// Leases while the server that keeps them changes: by sentinels, with two masters, by a slot of a
// cluster that moves.
#include "live_fleet.h"
#include "proxy.h"
#include "redis/connection.h"
#include "redis/slot.h"
#include "server_cluster.h"
#include "watched_master.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::Proxy;
using lab::RedisServer;
using lab::text;
using namespace std::chrono_literals;

// Sums of shares, in double precision.
constexpr double kRounding = 1e-9;
constexpr auto kLease = 500ms;

class Failover : public LiveFleet {
  protected:
    [[nodiscard]] bool all_learn() const {
        return std::ranges::all_of(hosts_,
                                   [](const auto& host) { return host->standing().is_learning; });
    }
};

TEST_F(Failover, ByASentinelInTheMiddleOfARenewal) {
    lab::WatchedMaster group;
    group.wait_until_they_know_each_other();
    add_hosts(3, policy(group.url()));
    settle(group.master());
    // As many calls are under way as there can be.
    group.master().kill();
    ASSERT_TRUE(eventually([&] { return all_leased() && all_learn(); }, 60s))
        << hosts_[0]->standing().error;
    for (const auto& host : hosts_)
        EXPECT_EQ(host->standing().redis.server, group.replica().address());
    std::this_thread::sleep_for(4 * kLease);
    const Worst seen = worst();
    EXPECT_LE(seen.leased, 1 + kRounding);
    EXPECT_LE(seen.all, 1 + 2.0 / kMaxHosts + kRounding);
}

// Two servers that both take themselves for the master, with hosts at each.
class FailoverToTwoMasters : public Failover {
  protected:
    // The way between them can be cut, which the old master can't tell from a silence.
    void make(const std::vector<std::string>& of_the_old) {
        old_ = std::make_unique<RedisServer>(of_the_old);
        between_ = std::make_unique<Proxy>(old_->port());
        new_ = std::make_unique<RedisServer>(
            std::vector<std::string>{"replicaof 127.0.0.1 " + std::to_string(between_->port())});
        ASSERT_TRUE(eventually([&] {
            return text(old_->ask({"INFO", "replication"})).find("state=online") !=
                   std::string::npos;
        })) << new_->log();
        add_hosts(2, policy(old_->url()));
        settle(*old_);
        // One that never acknowledged anything is not waited for.
        ASSERT_TRUE(eventually([&] { return redis::replicas_in(old_->ask({"ROLE"})) == 1; }));
    }
    // The other becomes a master of its own, and has hosts of its own.
    void part() {
        ASSERT_EQ(text(new_->ask({"REPLICAOF", "NO", "ONE"})), "OK");
        add_hosts(2, policy(new_->url()));
        for (size_t i = 2; i < hosts_.size(); i++)
            hosts_[i]->set_demand(kBudget);
        ASSERT_TRUE(eventually([&] { return leased(2) && leased(3); }));
    }
    [[nodiscard]] bool leased(size_t host) const { return hosts_[host]->in_force().is_leased; }
    // Those of the old master have no leases any more, and others have no more than there is.
    void expect_only_the_new_one_gives() {
        EXPECT_TRUE(eventually([&] { return !leased(0) && !leased(1); }, kLease + lab::kLate));
        EXPECT_TRUE(eventually(
            [&] { return hosts_[0]->standing().error.find("NOREPLICAS") != std::string::npos; }));
        ASSERT_TRUE(eventually([&] { return leased_now() > 0.97; }));
        (void)worst();
        std::this_thread::sleep_for(4 * kLease);
        EXPECT_LE(worst().leased, 1 + kRounding);
    }

    std::unique_ptr<RedisServer> old_, new_;
    std::unique_ptr<Proxy> between_;
};

TEST_F(FailoverToTwoMasters, EachGivesTheBudgetAtMost) {
    make({});
    part();
    end_learning(*new_);
    EXPECT_TRUE(eventually([&] { return leased_now() > 1.9; })) << leased_now();
    std::this_thread::sleep_for(4 * kLease);
    EXPECT_LE(worst().leased, 2 + kRounding);
}

TEST_F(FailoverToTwoMasters, WhatTheOneThatIsCutOffGivesDoesNotCount) {
    make({});
    // It still has a replica, as far as it can see.
    between_->cut(true);
    part();
    end_learning(*new_);
    expect_only_the_new_one_gives();
}

TEST_F(FailoverToTwoMasters, TheOneThatLostItsReplicasRefusesWhereItIsToldTo) {
    make({"min-replicas-to-write 1", "min-replicas-max-lag 1"});
    part();
    end_learning(*new_);
    expect_only_the_new_one_gives();
}

TEST_F(Failover, ByASlotThatMovesUnderLoad) {
    lab::ServerCluster cluster;
    add_hosts(3, policy(cluster.url()));
    ASSERT_TRUE(eventually([&] { return all_leased(); })) << hosts_[0]->standing().error;
    const std::string key = state_key(), expiries = key + ":expiry";
    const std::string slot = std::to_string(redis::slot_of(key));
    RedisServer& from = cluster.master_of(key);
    RedisServer& to = cluster.other_master(from);
    settle(from);
    lab::ServerCluster::announce_move(slot, from, to);
    lab::ServerCluster::move_key(key, from, to);
    // Half of the state is here, half of it there.
    std::this_thread::sleep_for(kLease / 2);
    lab::ServerCluster::move_key(expiries, from, to);
    lab::ServerCluster::finish_move(slot, from, to);
    ASSERT_TRUE(eventually([&] { return all_leased() && all_learn(); }))
        << hosts_[0]->standing().error;
    EXPECT_EQ(lab::number(to.ask({"EXISTS", key})), 1);
    std::this_thread::sleep_for(4 * kLease);
    const Worst seen = worst();
    EXPECT_LE(seen.leased, 1 + kRounding);
    EXPECT_LE(seen.all, 1 + 2.0 / kMaxHosts + kRounding);
}

}  // namespace
}  // namespace sluice
