// Heartbeats and the view of the fleet, one call at a time.
#include "fleet/heartbeat.h"

#include "fleet/fleet_view.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using lab::text;
using redis::Command;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class Heartbeats : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(server_->url())).value());
    }
    static Heartbeat of(char digit) {
        return {.id = std::string(32, digit),
                .name = "edge1",
                .version = "1.2.3",
                .mode = "enforce",
                .policy_version = 7,
                .fleet_version = 3,
                .is_canary = true,
                .refused_version = 4,
                .refusal = "fleet shop, version 4:2:1: no",
                .cut = CutRate{.packets = 1234.5, .cut = 6.25, .sources = 40, .heaviest = 0.125},
                .lag = 240us};
    }
    std::string beat(const Heartbeat& heartbeat) {
        return text(redis_->run(heartbeat_command(keys_, heartbeat)));
    }
    FleetView view() { return read_fleet_view(*redis_, "test", {}).value(); }

    HostKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(Heartbeats, AreSeenByEverybody) {
    EXPECT_EQ(beat(of('a')), "ok");
    EXPECT_EQ(beat(of('b')), "ok");
    EXPECT_EQ(beat(of('b')), "ok");
    const FleetView seen = view();
    ASSERT_EQ(seen.hosts.size(), 2U);
    EXPECT_EQ(seen.hosts_in_all, 2U);
    const Heartbeat& last = seen.hosts[0].last;
    EXPECT_EQ(last.id, std::string(32, 'b')) << "heard of last";
    EXPECT_EQ(last.name, "edge1");
    EXPECT_EQ(last.version, "1.2.3");
    EXPECT_EQ(last.mode, "enforce");
    EXPECT_EQ(last.policy_version, 7U);
    EXPECT_EQ(last.fleet_version, 3U);
    EXPECT_TRUE(last.is_canary);
    EXPECT_EQ(last.refused_version, 4U);
    EXPECT_EQ(last.refusal, "fleet shop, version 4:2:1: no");
    ASSERT_TRUE(last.cut);
    EXPECT_EQ(last.cut->packets, 1234.5);
    EXPECT_EQ(last.cut->cut, 6.25);
    EXPECT_EQ(last.cut->sources, 40);
    EXPECT_EQ(last.cut->heaviest, 0.125);
    EXPECT_EQ(last.lag, 240us);
    EXPECT_LT(seen.hosts[0].age, 10s);
}

TEST_F(Heartbeats, TheSilentAreForgottenAfterAnHour) {
    EXPECT_EQ(beat(of('a')), "ok");
    ASSERT_TRUE(server_->ask({"ZADD", keys_.seen, "1000", std::string(32, 'c')}).check());
    ASSERT_TRUE(server_->ask({"HSET", keys_.words, std::string(32, 'c'), "name=old"}).check());
    EXPECT_TRUE(view().hosts[1].is_away());
    EXPECT_EQ(beat(of('a')), "ok");
    EXPECT_EQ(view().hosts.size(), 1U);
    EXPECT_EQ(number(server_->ask({"HLEN", keys_.words})), 1);
}

TEST_F(Heartbeats, AFullListTakesNobodyNewAndIsShownInPart) {
    EXPECT_EQ(beat(of('a')), "ok");
    const Command fill{"EVAL",
                       "for i = 1, 9999 do redis.call('ZADD', KEYS[1], 9e15, "
                       "string.format('%032d', i)) end return 'ok'",
                       "1", keys_.seen};
    ASSERT_EQ(text(server_->ask(fill)), "ok");
    EXPECT_EQ(beat(of('b')), "full");
    EXPECT_EQ(beat(of('a')), "ok") << "those that are there stay";
    const FleetView seen = view();
    EXPECT_EQ(seen.hosts.size(), kMostHostsShown);
    EXPECT_EQ(seen.hosts_in_all, 10'000U);
    const FleetView more = read_all_hosts(*redis_, "test").value();
    EXPECT_EQ(more.hosts.size(), 5'120U) << "whole pages, up to the largest fleet that is measured";
    EXPECT_EQ(more.hosts_in_all, 10'000U);
}

TEST_F(Heartbeats, OfAllHostsAreSeenByWhoDecidesForAll) {
    EXPECT_EQ(beat(of('a')), "ok");
    const Command fill{"EVAL",
                       "for i = 1, 700 do redis.call('ZADD', KEYS[1], 9e15, "
                       "string.format('%032d', i)) end return 'ok'",
                       "1", keys_.seen};
    ASSERT_EQ(text(server_->ask(fill)), "ok");
    EXPECT_EQ(view().hosts.size(), kMostHostsShown);
    const FleetView all = read_all_hosts(*redis_, "test").value();
    ASSERT_EQ(all.hosts.size(), 701U);
    EXPECT_EQ(all.hosts.back().last.id, std::string(32, 'a'));
}

TEST_F(Heartbeats, WhatIsNoneIsRefused) {
    Heartbeat heartbeat = of('a');
    heartbeat.id = "short";
    EXPECT_THAT(beat(heartbeat), HasSubstr("ERR heartbeat"));
    heartbeat = of('a');
    heartbeat.version = std::string(1100, 'x');
    EXPECT_THAT(beat(heartbeat), HasSubstr("ERR heartbeat"));
    heartbeat = of('a');
    heartbeat.name = "a\nmode=off" + std::string(600, 'x');
    EXPECT_EQ(beat(heartbeat), "ok");
    EXPECT_THAT(view().hosts[0].last.name, StartsWith("a\\nmode=off"));
    EXPECT_EQ(view().hosts[0].last.mode, "enforce");
}

TEST_F(Heartbeats, AKeyOfAnotherTypeIsAnErrorAndStays) {
    ASSERT_TRUE(server_->ask({"SET", keys_.seen, "mine"}).check());
    EXPECT_THAT(beat(of('a')), HasSubstr("WRONGTYPE"));
    EXPECT_THAT(read_fleet_view(*redis_, "test", {}).error().message, HasSubstr("WRONGTYPE"));
    EXPECT_EQ(text(server_->ask({"GET", keys_.seen})), "mine");
}

TEST_F(Heartbeats, AnEmptyFleetIsAView) {
    EXPECT_TRUE(view().hosts.empty());
    const auto shards = read_fleet_view(*redis_, "test", {0, 15});
    ASSERT_TRUE(shards) << shards.error().message;
    EXPECT_TRUE(shards->budgets.empty());
}

}  // namespace
}  // namespace sluice
