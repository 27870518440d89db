// A master behind sentinels: found, followed, and never mistaken.
#include <memory>

#include "redis_test.h"

namespace sluice {
namespace {

using lab::RedisServer;
using lab::text;
using redis::Reply;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A busy machine may take its time to run all of them.
constexpr auto kPrompt = 1s;

// One master, one replica, three sentinels of which two have to agree.
class SentinelTest : public lab::RedisTest {
  protected:
    void watch(const std::vector<std::string>& more_settings = {},
               const std::vector<std::string>& of_the_master = {}) {
        master_ = std::make_unique<RedisServer>(of_the_master);
        replica_ = std::make_unique<RedisServer>(
            std::vector<std::string>{"replicaof 127.0.0.1 " + std::to_string(master_->port())});
        for (int i = 0; i < 3; i++) {
            std::vector<std::string> settings = {
                "sentinel monitor shop 127.0.0.1 " + std::to_string(master_->port()) + " 2",
                "sentinel down-after-milliseconds shop 1000",
                "sentinel failover-timeout shop 10000"};
            settings.insert(settings.end(), more_settings.begin(), more_settings.end());
            sentinels_.push_back(std::make_unique<RedisServer>(settings, true));
        }
    }

    // Each of them knows the replica and the two others, or no failover can be agreed on.
    void wait_until_they_know_each_other() {
        for (const auto& sentinel : sentinels_)
            ASSERT_TRUE(lab::eventually([&] {
                const auto replicas = sentinel->ask({"SENTINEL", "REPLICAS", "shop"}).as_array();
                return text(sentinel->ask({"SENTINEL", "CKQUORUM", "shop"}))
                           .starts_with("OK 3 usable") &&
                       replicas && replicas->size() == 1;
            })) << sentinel->log();
    }

    // Whether it names what has been the replica.
    [[nodiscard]] bool knows_the_new_one(const RedisServer& sentinel) const {
        const Reply answer = sentinel.ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", "shop"});
        return answer == Reply::array({Reply::text("127.0.0.1"),
                                       Reply::text(std::to_string(replica_->port()))});
    }

    [[nodiscard]] std::string url() const {
        std::string hosts;
        for (const auto& sentinel : sentinels_)
            hosts += (hosts.empty() ? "" : ",") + sentinel->address();
        return "redis+sentinel://" + hosts + "/shop";
    }

    std::unique_ptr<RedisServer> master_, replica_;
    std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

TEST_F(SentinelTest, TheMasterIsFoundByWhicheverSentinelIsThere) {
    watch();
    Redis all = Redis::open(patient(url())).value();
    EXPECT_EQ(text(all.run({"SET", "k", "1"})), "OK");
    EXPECT_EQ(all.health().server, master_->address());

    sentinels_[0]->kill();
    sentinels_[1]->pause();
    redis::Options options = patient(url());
    options.connect_timeout = 2s;
    Redis last = Redis::open(options).value();
    EXPECT_EQ(text(last.run({"SET", "k", "2"})), "OK");
    sentinels_[1]->resume();

    Redis unknown =
        Redis::open(patient("redis+sentinel://" + sentinels_[2]->address() + "/other")).value();
    EXPECT_THAT(text(unknown.run({"PING"})), HasSubstr("No such master"));
    sentinels_[2]->kill();
    Redis none =
        Redis::open(patient("redis+sentinel://" + sentinels_[2]->address() + "/shop")).value();
    EXPECT_THAT(text(none.run({"PING"})),
                HasSubstr("sentinel " + sentinels_[2]->address() + ": connect"));
}

TEST_F(SentinelTest, AFailoverIsFollowedWhenTheMasterDies) {
    watch();
    wait_until_they_know_each_other();
    redis::Options options = patient(url());
    options.connect_timeout = 1s;
    Redis redis = Redis::open(options).value();
    EXPECT_EQ(text(redis.run({"SET", "k", "before"})), "OK");
    ASSERT_EQ(redis.health().server, master_->address());
    master_->kill();
    Clock::time_point switched{};
    ASSERT_TRUE(lab::eventually(
        [&] {
            if (switched == Clock::time_point() && knows_the_new_one(*sentinels_[0]))
                switched = Clock::now();
            return text(redis.run({"SET", "k", "after"})) == "OK";
        },
        60s))
        << sentinels_[0]->log();
    EXPECT_EQ(redis.health().server, replica_->address());
    // Not after the breaker's pause, which has grown by then, but with the sentinel's word.
    EXPECT_TRUE(switched == Clock::time_point() || Clock::now() - switched < kPrompt);
}

TEST_F(SentinelTest, ASwitchIsFollowedThoughTheOldMasterGoesOn) {
    // It can't be told that it is a replica now, so it keeps its clients, and takes their writes:
    // only the word of a sentinel moves them.
    watch({}, {"rename-command SLAVEOF \"\"", "rename-command REPLICAOF \"\""});
    wait_until_they_know_each_other();
    Redis redis = Redis::open(patient(url())).value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
    ASSERT_EQ(redis.health().server, master_->address());
    EXPECT_EQ(text(sentinels_[0]->ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    EXPECT_TRUE(lab::eventually([&] {
        EXPECT_EQ(text(redis.run({"SET", "k", "2"})), "OK");
        return redis.health().server == replica_->address();
    })) << sentinels_[0]->log();
    EXPECT_EQ(text(master_->ask({"SET", "k", "3"})), "OK");
}

TEST_F(SentinelTest, OneThatNamesAReplicaIsNotBelieved) {
    watch();
    // All sentinels but this one know who the master is.
    const RedisServer mistaken(
        {"sentinel monitor shop 127.0.0.1 " + std::to_string(replica_->port()) + " 5"}, true);
    Redis misled = Redis::open(patient("redis+sentinel://" + mistaken.address() + "/shop")).value();
    EXPECT_THAT(text(misled.run({"SET", "k", "1"})), HasSubstr("READONLY"));
    Redis redis = Redis::open(patient("redis+sentinel://" + mistaken.address() + ',' +
                                      sentinels_[0]->address() + "/shop"))
                      .value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
}

TEST_F(SentinelTest, TheWordAfterTheLastFailoverCounts) {
    watch();
    wait_until_they_know_each_other();
    EXPECT_EQ(text(sentinels_[0]->ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    ASSERT_TRUE(lab::eventually([&] { return knows_the_new_one(*sentinels_[2]); }))
        << sentinels_[0]->log();
    // As one that was away meanwhile, whose master lives on and takes itself for one.
    const RedisServer yesterday;
    const RedisServer cut_off(
        {"sentinel monitor shop 127.0.0.1 " + std::to_string(yesterday.port()) + " 5"}, true);
    Redis redis = Redis::open(patient("redis+sentinel://" + cut_off.address() + ',' +
                                      sentinels_[2]->address() + "/shop"))
                      .value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
    EXPECT_EQ(redis.health().server, replica_->address());
}

TEST_F(SentinelTest, TheLossOfTheSentinelThatIsListenedToIsMadeGood) {
    watch();
    wait_until_they_know_each_other();
    Redis redis = Redis::open(patient(url())).value();
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");
    for (const auto& sentinel : sentinels_)
        (void)sentinel->ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");
    EXPECT_EQ(text(sentinels_[0]->ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    EXPECT_TRUE(lab::eventually([&] {
        (void)redis.run({"PING"});
        return redis.health().server == replica_->address();
    })) << sentinels_[0]->log();
}

TEST_F(SentinelTest, OneThatAsksForAPasswordGetsIt) {
    watch({"requirepass secret"});
    redis::Options options = patient(url());
    EXPECT_THAT(text(Redis::open(options).value().run({"PING"})), HasSubstr("NOAUTH"));
    options.password_file = master_->folder().write("password", "secret");
    EXPECT_EQ(text(master_->ask({"CONFIG", "SET", "requirepass", "secret"})), "OK");
    EXPECT_EQ(text(Redis::open(options).value().run({"PING"})), "PONG");
}

}  // namespace
}  // namespace sluice
