// A master behind sentinels: found, followed, and never mistaken.
#include <memory>

#include "redis_test.h"
#include "watched_master.h"

namespace sluice {
namespace {

using lab::RedisServer;
using lab::text;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A busy machine may take its time to run all of them.
constexpr auto kPrompt = 1s;

class SentinelTest : public lab::RedisTest {
  protected:
    void watch(const std::vector<std::string>& of_sentinels = {},
               const std::vector<std::string>& of_the_master = {}) {
        group_ = std::make_unique<lab::WatchedMaster>(of_sentinels, of_the_master);
    }
    void wait_until_they_know_each_other() { group_->wait_until_they_know_each_other(); }
    [[nodiscard]] std::string url() const { return group_->url(); }
    [[nodiscard]] RedisServer& master() { return group_->master(); }
    [[nodiscard]] RedisServer& replica() { return group_->replica(); }
    [[nodiscard]] RedisServer& sentinel(size_t index) { return group_->sentinel(index); }

    std::unique_ptr<lab::WatchedMaster> group_;
};

TEST_F(SentinelTest, TheMasterIsFoundByWhicheverSentinelIsThere) {
    watch();
    Redis all = Redis::open(patient(url())).value();
    EXPECT_EQ(text(all.run({"SET", "k", "1"})), "OK");
    EXPECT_EQ(all.health().server, master().address());

    sentinel(0).kill();
    sentinel(1).pause();
    redis::Options options = patient(url());
    options.connect_timeout = 2s;
    Redis last = Redis::open(options).value();
    EXPECT_EQ(text(last.run({"SET", "k", "2"})), "OK");
    sentinel(1).resume();

    Redis unknown =
        Redis::open(patient("redis+sentinel://" + sentinel(2).address() + "/other")).value();
    EXPECT_THAT(text(unknown.run({"PING"})), HasSubstr("No such master"));
    sentinel(2).kill();
    Redis none =
        Redis::open(patient("redis+sentinel://" + sentinel(2).address() + "/shop")).value();
    EXPECT_THAT(text(none.run({"PING"})),
                HasSubstr("sentinel " + sentinel(2).address() + ": connect"));
}

TEST_F(SentinelTest, AFailoverIsFollowedWhenTheMasterDies) {
    watch();
    wait_until_they_know_each_other();
    redis::Options options = patient(url());
    options.connect_timeout = 1s;
    Redis redis = Redis::open(options).value();
    EXPECT_EQ(text(redis.run({"SET", "k", "before"})), "OK");
    ASSERT_EQ(redis.health().server, master().address());
    master().kill();
    Clock::time_point switched{};
    ASSERT_TRUE(lab::eventually(
        [&] {
            if (switched == Clock::time_point() && group_->knows_the_new_one(sentinel(0)))
                switched = Clock::now();
            return text(redis.run({"SET", "k", "after"})) == "OK";
        },
        60s))
        << sentinel(0).log();
    EXPECT_EQ(redis.health().server, replica().address());
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
    ASSERT_EQ(redis.health().server, master().address());
    EXPECT_EQ(text(sentinel(0).ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    EXPECT_TRUE(lab::eventually([&] {
        EXPECT_EQ(text(redis.run({"SET", "k", "2"})), "OK");
        return redis.health().server == replica().address();
    })) << sentinel(0).log();
    EXPECT_EQ(text(master().ask({"SET", "k", "3"})), "OK");
}

TEST_F(SentinelTest, OneThatNamesAReplicaIsNotBelieved) {
    watch();
    // All sentinels but this one know who the master is.
    const RedisServer mistaken(
        {"sentinel monitor shop 127.0.0.1 " + std::to_string(replica().port()) + " 5"}, true);
    Redis misled = Redis::open(patient("redis+sentinel://" + mistaken.address() + "/shop")).value();
    EXPECT_THAT(text(misled.run({"SET", "k", "1"})), HasSubstr("READONLY"));
    Redis redis = Redis::open(patient("redis+sentinel://" + mistaken.address() + ',' +
                                      sentinel(0).address() + "/shop"))
                      .value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
}

TEST_F(SentinelTest, TheWordAfterTheLastFailoverCounts) {
    watch();
    wait_until_they_know_each_other();
    EXPECT_EQ(text(sentinel(0).ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    ASSERT_TRUE(lab::eventually([&] { return group_->knows_the_new_one(sentinel(2)); }))
        << sentinel(0).log();
    // As one that was away meanwhile, whose master lives on and takes itself for one.
    const RedisServer yesterday;
    const RedisServer cut_off(
        {"sentinel monitor shop 127.0.0.1 " + std::to_string(yesterday.port()) + " 5"}, true);
    Redis redis = Redis::open(patient("redis+sentinel://" + cut_off.address() + ',' +
                                      sentinel(2).address() + "/shop"))
                      .value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
    EXPECT_EQ(redis.health().server, replica().address());
}

TEST_F(SentinelTest, TheLossOfTheSentinelThatIsListenedToIsMadeGood) {
    watch();
    wait_until_they_know_each_other();
    Redis redis = Redis::open(patient(url())).value();
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");
    for (const size_t i : {0, 1, 2})
        (void)sentinel(i).ask({"CLIENT", "KILL", "TYPE", "pubsub"});
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");
    EXPECT_EQ(text(sentinel(0).ask({"SENTINEL", "FAILOVER", "shop"})), "OK");
    EXPECT_TRUE(lab::eventually([&] {
        (void)redis.run({"PING"});
        return redis.health().server == replica().address();
    })) << sentinel(0).log();
}

TEST_F(SentinelTest, OneThatAsksForAPasswordGetsIt) {
    watch({"requirepass secret"});
    redis::Options options = patient(url());
    EXPECT_THAT(text(Redis::open(options).value().run({"PING"})), HasSubstr("NOAUTH"));
    options.password_file = master().folder().write("password", "secret");
    EXPECT_EQ(text(master().ask({"CONFIG", "SET", "requirepass", "secret"})), "OK");
    EXPECT_EQ(text(Redis::open(options).value().run({"PING"})), "PONG");
}

}  // namespace
}  // namespace sluice
