// Hosts that follow the fleet's policy, and one real Redis: what they are offered, what they keep,
// what they say of it. The keeper that puts it in force is in tests/fleet/policy_test.
#include "fleet/policy_sync.h"

#include <filesystem>

#include "base/clocks.h"
#include "fleet/canary_hosts.h"
#include "fleet/lease_message.h"
#include "fleet/policy_budgets.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::RedisServer;
using redis::Command;
using testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

std::string limited_to(const std::string& rate) {
    return "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.per_source]\nconnections "
           "= "
           "\"" +
           rate + "\"\n";
}

// A host: it puts in force what it can read, as the keeper does.
class Host {
  public:
    Host(char digit, const std::string& url) {
        own_.text = "interfaces = [\"eth0\"]\n[redis]\nurl = \"" + url +
                    "\"\nconnect_timeout = \"5s\"\ncommand_timeout = \"5s\"\n[fleet]\n"
                    "name = \"test\"\n";
        own_.source = "own.toml";
        RedisSettings redis;
        redis.url = url;
        redis.connect_timeout = redis.command_timeout = 5s;
        member_ = {redis, "test", std::string(32, digit), std::string("edge") + digit};
        restart();
    }
    void restart() {
        sync_.emplace(state_.path(), drill_);
        sync_->follow(member_);
    }
    bool soon(const std::function<bool()>& holds, std::chrono::milliseconds patience = 30s) {
        return eventually(
            [&] {
                step();
                return holds();
            },
            patience);
    }
    void pass(std::chrono::milliseconds time) {
        const auto end = steady_clock::now() + time;
        while (steady_clock::now() < end)
            step();
    }
    void step() {
        (void)sync_->step();
        if (const auto offer = sync_->take_offer()) {
            offers_++;
            offered_ = offer->overrides;
            auto config =
                refusal_ ? Result<ConfigFile>(*refusal_) : with_fleet_policy(own_, *offer);
            sync_->answered(config ? Status() : Status(config.error()));
            if (config)
                in_force_ = *std::move(config);
        }
        std::this_thread::sleep_for(5ms);
    }
    bool has(uint64_t version) {
        return soon([&] { return standing().applied == version && standing().refused == 0; });
    }
    [[nodiscard]] PolicyStanding standing() const { return sync_->standing(); }
    [[nodiscard]] std::optional<FleetVersion> kept() const {
        return PolicyFile(state_.path()).load("test");
    }

    ConfigFile in_force_;
    std::optional<Error> refusal_;  // of whatever is offered
    int offers_ = 0;
    std::vector<PolicyOverride> offered_;  // with the last one
    RedisDrill drill_;
    FleetMember member_;
    TempFolder state_;

  private:
    ConfigFile own_;
    std::optional<PolicySync> sync_;
};

class PolicyHost : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        host_ = std::make_unique<Host>('a', server_->url());
        redis_.emplace(Redis::open(patient(server_->url())).value());
    }
    redis::Reply run(const Command& command) { return redis_->run(command).value(); }
    PolicyPushed push(std::string text, std::string canaries = "") {
        return parse_policy_pushed(run(policy_push_command(keys_, {.text = std::move(text),
                                                                   .canaries = std::move(canaries),
                                                                   .actor = "alice"})))
            .value();
    }
    void point(uint64_t version) {
        const auto pointers = parse_policy_pointers(run(policy_pointers_command(keys_))).value();
        ASSERT_TRUE(parse_policy_pointed(run(
            policy_point_command(keys_, {.version = version, .rev = pointers.rev, .actor = "b"}))));
    }

    PolicyKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::unique_ptr<Host> host_;
    std::optional<Redis> redis_;
};

TEST_F(PolicyHost, HasAVersionWithinASecondAndKeepsItOnDisk) {
    host_->pass(300ms);
    EXPECT_EQ(host_->offers_, 0) << "nobody has pushed anything";
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->soon([&] { return host_->standing().applied == 1; }, 1s));
    EXPECT_EQ(host_->in_force_.policy.services.size(), 1U);
    EXPECT_EQ(host_->in_force_.source, "fleet test, version 1");
    EXPECT_THAT(host_->in_force_.policy.interfaces, testing::ElementsAre("eth0"));
    ASSERT_TRUE(host_->kept());
    EXPECT_EQ(host_->kept()->version, 1U);
    EXPECT_EQ(host_->kept()->text, limited_to("10/s"));
    host_->pass(600ms);
    EXPECT_EQ(host_->offers_, 1) << "and is not offered it again";
    EXPECT_FALSE(PolicyFile(host_->state_.path()).load("another")) << "another fleet's";
}

TEST_F(PolicyHost, WhatItCannotReadIsRefusedWithItsPlaceAndTheLastGoodOneStays) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    push("[[service]]\nname = \"web\"\nmatch = [\"tcp/0\"]\n");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 2; }));
    EXPECT_THAT(host_->standing().refusal, HasSubstr("fleet test, version 2:3:"));
    EXPECT_EQ(host_->standing().applied, 1U);
    EXPECT_EQ(host_->kept()->version, 1U);
    point(1);
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 0; }));
    EXPECT_EQ(host_->standing().applied, 1U);
}

TEST_F(PolicyHost, ARefusalIsTriedAgain) {
    Error busy = failed("somebody else writes");
    busy.busy = true;
    host_->refusal_ = busy;
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->soon([&] { return host_->offers_ > 2; }));
    EXPECT_EQ(host_->standing().refused, 0U) << "it only waits";
    host_->refusal_ = failed("the policy in force waits for its confirmation");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 1; }));
    host_->refusal_.reset();
    EXPECT_TRUE(host_->has(1));
}

TEST_F(PolicyHost, ATextThatSomebodyChangedIsNotTaken) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    const auto pushed = push(limited_to("20/s"), "nobody");
    ASSERT_TRUE(server_->ask({"SET", keys_.text(pushed.version), limited_to("1000/s")}).check());
    point(pushed.version);
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 2; }));
    EXPECT_THAT(host_->standing().refusal, HasSubstr("not the one that was pushed"));
    EXPECT_EQ(host_->standing().applied, 1U);
}

TEST_F(PolicyHost, AWipedRedisIsNoOrderToHaveNoPolicy) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    ASSERT_TRUE(server_->ask({"FLUSHALL"}).check());
    ASSERT_TRUE(host_->soon([&] { return host_->standing().is_lost; }));
    EXPECT_EQ(host_->standing().applied, 1U);
    EXPECT_EQ(push(limited_to("20/s")).version, 1U) << "the same number";
    ASSERT_TRUE(host_->soon([&] {
        return host_->in_force_.text.find("20/s") != std::string::npos;
    })) << "and another policy";
    EXPECT_FALSE(host_->standing().is_lost);
}

TEST_F(PolicyHost, ARollbackReachesItWithinASecond) {
    push(limited_to("10/s"));
    push(limited_to("20/s"));
    ASSERT_TRUE(host_->has(2));
    point(1);
    ASSERT_TRUE(host_->soon([&] { return host_->standing().applied == 1; }, 1s));
    EXPECT_THAT(host_->in_force_.text, HasSubstr("10/s"));
}

TEST_F(PolicyHost, ACanaryIsForThoseWhomItNames) {
    Host other('b', server_->url());
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1) && other.has(1));
    push(limited_to("20/s"), "edgeb");
    ASSERT_TRUE(other.has(2));
    EXPECT_TRUE(other.standing().is_canary);
    EXPECT_TRUE(parse_fleet_source(other.in_force_.source)->is_canary);
    host_->pass(600ms);
    EXPECT_EQ(host_->standing().applied, 1U);
    EXPECT_EQ(host_->standing().canary, 2U);
    point(0);
    ASSERT_TRUE(other.has(1));
    EXPECT_FALSE(other.standing().is_canary);
    const int before = host_->offers_;
    push(limited_to("30/s"), "edgeb");
    ASSERT_TRUE(other.has(3));
    point(3);
    ASSERT_TRUE(host_->has(3) && other.soon([&] { return !other.standing().is_canary; }));
    EXPECT_EQ(host_->offers_, before + 1);
}

// The host has had it neither before nor after, so nothing that it puts in force clears that.
TEST_F(PolicyHost, ARefusalOfACanaryEndsWithTheCanary) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    const auto canary = push(limited_to("20/s"), "edgea");
    ASSERT_TRUE(server_->ask({"SET", keys_.text(canary.version), "something else"}).check());
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == canary.version; }));
    point(0);
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 0; }, 2s));
    EXPECT_EQ(host_->standing().refusal, "");
    EXPECT_EQ(host_->standing().applied, 1U);
}

TEST_F(PolicyHost, WhatItCannotKeepOnDiskIsSaidAsLongAsItIsSoAndTriedAgain) {
    const std::string in_the_way = host_->state_.path() + "/fleet-policy.new/x";
    std::filesystem::create_directories(in_the_way);
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    ASSERT_TRUE(host_->soon([&] { return !host_->standing().unsaved.empty(); }));
    host_->pass(1s);
    EXPECT_NE(host_->standing().unsaved, "") << "also once Redis has answered again";
    EXPECT_EQ(host_->standing().error, "");
    EXPECT_FALSE(host_->kept());
    std::filesystem::remove_all(host_->state_.path() + "/fleet-policy.new");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().unsaved.empty(); }));
    EXPECT_EQ(host_->kept()->version, 1U);
}

TEST_F(PolicyHost, ARedisOfAnOldBackupTakesNobodyBack) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    const auto backup = server_->ask({"DUMP", keys_.base});
    const auto restore = [&] {
        return server_->ask({"RESTORE", keys_.base, "0", *backup.as_text(), "REPLACE"}).check();
    };
    push(limited_to("20/s"));
    ASSERT_TRUE(host_->has(2));
    ASSERT_TRUE(restore());
    ASSERT_TRUE(host_->soon([&] { return host_->standing().is_older; }));
    EXPECT_EQ(host_->standing().current, 1U);
    host_->pass(600ms);
    EXPECT_EQ(host_->standing().applied, 2U);
    host_->restart();
    ASSERT_TRUE(host_->soon([&] { return host_->standing().is_older; })) << "nor after a restart";
    EXPECT_EQ(host_->standing().applied, 2U);

    // What a host that knows it pushes is above it.
    ASSERT_TRUE(
        parse_policy_pushed(run(policy_push_command(keys_, {.text = limited_to("30/s"),
                                                            .above = host_->kept()->version,
                                                            .after_ms = host_->kept()->since_ms,
                                                            .actor = "alice"}))));
    ASSERT_TRUE(host_->has(3));
    EXPECT_FALSE(host_->standing().is_older);
}

TEST_F(PolicyHost, ARollbackThatABackupKnowsNothingOfHolds) {
    push(limited_to("10/s"));
    push(limited_to("20/s"));
    ASSERT_TRUE(host_->has(2));
    const auto backup = server_->ask({"DUMP", keys_.base});
    point(1);
    ASSERT_TRUE(host_->has(1));
    ASSERT_TRUE(server_->ask({"RESTORE", keys_.base, "0", *backup.as_text(), "REPLACE"}).check());
    ASSERT_TRUE(host_->soon([&] { return host_->standing().is_older; }));
    host_->pass(600ms);
    EXPECT_EQ(host_->standing().applied, 1U);
}

TEST_F(PolicyHost, AnOverrideIsOfferedWithTheVersionItHas) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    const PolicyOverride entry{.change = {"web", {{"per_source.connections", "99/s"}}},
                               .until_ms = 0,
                               .actor = "alice",
                               .reason = "a test",
                               .by_fleet = true};
    const uint64_t begun_ms = boot_clock_ms();
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 1h))));
    ASSERT_TRUE(host_->soon([&] { return !host_->offered_.empty(); }, 1s));
    EXPECT_EQ(host_->offered_[0].change, entry.change);
    EXPECT_EQ(host_->offered_[0].actor, "alice");
    EXPECT_TRUE(host_->offered_[0].by_fleet);
    EXPECT_NEAR(static_cast<double>(host_->offered_[0].until_ms - begun_ms), 3.6e6, 5000)
        << "by a clock that nobody sets";
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 0ms))));
    EXPECT_TRUE(host_->soon([&] { return host_->offered_.empty(); }, 1s));
    EXPECT_EQ(host_->standing().applied, 1U);
}

TEST_F(PolicyHost, WithoutRedisItGoesOnAndComesBack) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    server_->stop();
    ASSERT_TRUE(host_->soon([&] { return !host_->standing().error.empty(); }));
    host_->restart();
    EXPECT_EQ(host_->kept()->version, 1U);
    host_->pass(300ms);
    EXPECT_EQ(host_->standing().applied, 1U) << "what it began with";
    server_->start();
    push(limited_to("20/s"));
    EXPECT_TRUE(host_->soon([&] {
        return host_->in_force_.text.find("20/s") != std::string::npos;
    })) << "a server that kept nothing begins anew";
}

TEST_F(PolicyHost, ADrillKeepsItFromAsking) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    host_->drill_.begin(2s);
    push(limited_to("20/s"));
    host_->pass(1s);
    EXPECT_EQ(host_->standing().applied, 1U);
    EXPECT_THAT(host_->standing().error, HasSubstr("a drill is on"));
    EXPECT_TRUE(host_->has(2));
}

TEST_F(PolicyHost, ATornFileIsNoPolicy) {
    push(limited_to("10/s"));
    ASSERT_TRUE(host_->has(1));
    const std::string path = host_->state_.path() + "/fleet-policy";
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
    EXPECT_FALSE(host_->kept());
    (void)host_->state_.write("fleet-policy", "something else\n");
    EXPECT_FALSE(host_->kept());
}

class OwedBudgets : public PolicyHost {
  protected:
    void push_budget(const std::string& rate) {
        push("[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.budget]\ndata = \"" +
             rate + "\"\non_redis_loss = \"open\"\n");
    }
    bool are_written() {
        return host_->soon([&] {
            return parse_policy_pointers(run(policy_pointers_command(keys_)))
                       .value()
                       .unwritten_ms == 0;
        });
    }
    double in_redis() {
        LeaseRequest request{.host = std::string(32, 'a'),
                             .seq = ++seq_,
                             .demands = {{.budget = "web.data", .per_second = 1}}};
        const auto reply =
            run(lease_command(lease_script(), LeaseKeys("test", lease_shard("web")), request));
        return parse_lease_reply(*reply.as_text(), request).value().grants[0].budget;
    }

    uint64_t seq_ = 0;
};

TEST_F(OwedBudgets, ThatWhoPushedCouldNotWriteAreWrittenByAHost) {
    push_budget("70/s");
    ASSERT_TRUE(are_written());
    EXPECT_EQ(in_redis(), 70);
}

TEST_F(OwedBudgets, OfAnOverrideWhoseOperatorWasKilledAreWrittenByAHost) {
    push_budget("70/s");
    ASSERT_TRUE(are_written());
    const PolicyOverride entry{.change = {"web", {{"budget.data", "40/s"}}},
                               .until_ms = 0,
                               .actor = "alice",
                               .reason = "",
                               .by_fleet = true};
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 1h))));
    ASSERT_TRUE(are_written());
    EXPECT_EQ(in_redis(), 40);
}

// As after half of the day for which changes wait there.
TEST_F(OwedBudgets, OfASchedulesNextDaysAreWrittenByAHostInTime) {
    push(
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.budget]\ndata = \"70/s\"\n"
        "on_redis_loss = \"open\"\n[[service.schedule]]\nname = \"sale\"\n"
        "days = [\"2099-01-01\"]\nfrom = \"00:00\"\nto = \"01:00\"\n"
        "budget = { data = \"90/s\" }\n");
    ASSERT_TRUE(are_written());
    const auto pointers = [&] {
        return parse_policy_pointers(run(policy_pointers_command(keys_))).value();
    };
    const PolicyPointers before = pointers();
    ASSERT_GT(before.again_ms, wall_clock_ms());
    ASSERT_TRUE(run({"HSET", keys_.base, "again", "1"}).check());
    EXPECT_TRUE(host_->soon([&] { return pointers().again_ms > wall_clock_ms(); }));
    EXPECT_GT(pointers().stamp_ms, before.stamp_ms);
    EXPECT_EQ(pointers().rev, before.rev) << "hosts need not look at their policy again";
    EXPECT_EQ(in_redis(), 70);
}

}  // namespace
}  // namespace sluice
