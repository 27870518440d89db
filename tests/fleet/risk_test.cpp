// The leader of a fleet's risk against a real server: what it reads, whom it bans, what outlives
// it, and what it makes of a set that somebody spoilt.
#include <sys/resource.h>

#include <thread>

#include "redis_test.h"
#include "risk/fleet_risk.h"
#include "risk/member_source.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::RedisServer;
using redis::Command;
using redis::Reply;
using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr const char* kSet = "rl:risk";

RedisSettings redis_of(const RedisServer& server) {
    RedisSettings settings;
    settings.url = server.url();
    settings.connect_timeout = settings.command_timeout = 5s;
    return settings;
}

// A host of the fleet; its gate has seen everybody, unless it is told otherwise.
class RiskHost {
  public:
    RiskHost(const RedisServer& server, std::string id, RiskSettings settings)
        : RiskHost(redis_of(server), std::move(id), std::move(settings)) {}
    RiskHost(RedisSettings redis, std::string id, RiskSettings settings)
        : id_(std::move(id)),
          risk_(std::make_unique<FleetRisk>(FleetRisk::Options{.redis = std::move(redis),
                                                               .fleet = "test",
                                                               .host = id_,
                                                               .risk = std::move(settings),
                                                               .state_dir = state_.path(),
                                                               .pass = 200ms,
                                                               .lead = 1500ms},
                                            drill_)) {}

    void step() {
        risk_->step({.is_seen = [this](const Prefix&) { return sees_all; },
                     .is_guarded = [this](const Prefix& source) { return source == guarded; },
                     .verified = verified});
    }
    bool soon(const std::function<bool()>& holds) {
        return eventually([&] {
            step();
            std::this_thread::sleep_for(5ms);
            return holds();
        });
    }
    void pass(std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            step();
            std::this_thread::sleep_for(5ms);
        }
    }
    // A whole pass that begins from now on.
    void read() {
        const uint64_t before = passes_;
        ASSERT_TRUE(soon([&] {
            const FleetRiskStanding now = risk_->standing();
            const bool ended = now.is_read && now.passes != last_;
            passes_ += ended && last_ != 0 ? 1 : 0;
            last_ = ended ? now.passes : last_;
            return passes_ >= before + 2;
        })) << risk_->standing().error;
    }
    FleetRisk& risk() { return *risk_; }
    [[nodiscard]] FleetRiskStanding standing() const { return risk_->standing(); }

    bool sees_all = true;
    Prefix guarded{};
    size_t verified = 1'000'000;
    RedisDrill drill_;

  private:
    TempFolder state_;
    std::string id_;
    uint64_t passes_ = 0, last_ = 0;
    std::unique_ptr<FleetRisk> risk_;
};

class FleetRiskTest : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(server_->url())).value());
    }
    Reply run(const Command& command) { return redis_->run(command).value(); }
    void add(std::string_view member, double score) {
        ASSERT_FALSE(run({"ZINCRBY", kSet, std::to_string(score), member}).is_error());
    }
    // So many sources from 10.x.y.z on, all with that score.
    void add_many(uint32_t count, double score, uint32_t first = 0) {
        std::vector<Command> commands;
        for (uint32_t i = 0; i < count;) {
            Command command{"ZADD", kSet};
            for (uint32_t end = std::min(count, i + 5'000); i < end; ++i)
                command.add(std::to_string(score))
                    .add(IpAddress::from_ipv4(0x0a000000U + first + i).to_string());
            commands.push_back(command);
        }
        ASSERT_TRUE(redis_->run(commands));
    }
    bool is_banned(std::string_view source) {
        const Prefix prefix = Prefix::parse(source).value();
        return !run({"HGET", feed_.bucket(feed_bucket(prefix)),
                     feed_member(RuleKind::ban, "risk", prefix)})
                    .is_nil();
    }
    int64_t bans() { return lab::number(run({"ZCARD", feed_.base + ":order"})); }

    RiskSettings settings_;
    FeedKeys feed_{"test"};
    RiskKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(FleetRiskTest, WhoRisesIsBannedInTheFleetAndNobodyWhoWasHighBefore) {
    add("192.0.2.1", 5'000);
    RiskHost host(*server_, "a", settings_);
    host.read();
    add("192.0.2.1", 10);
    add("192.0.2.7", 70);
    add("2001:db8::7", 120);
    add("uid:7", 500);
    add("nonsense", 500);
    ASSERT_TRUE(host.soon([&] { return is_banned("2001:db8::/64"); }));
    EXPECT_EQ(bans(), 1);
    add("192.0.2.7", 40);
    ASSERT_TRUE(host.soon([&] { return is_banned("192.0.2.7"); }));
    host.read();
    EXPECT_EQ(bans(), 2) << "unchanged scores trigger nothing";
    const FleetRiskStanding standing = host.standing();
    EXPECT_TRUE(standing.leads);
    EXPECT_EQ(standing.members, 5U);
    EXPECT_EQ(standing.identities, 1U);
    EXPECT_EQ(standing.unreadable, 1U);
    EXPECT_EQ(lab::number(run({"XLEN", feed_.audit})), 2) << "each is in the fleet's audit log";
}

TEST_F(FleetRiskTest, OneLeadsAndAnotherGoesOnWhenItIsGone) {
    auto first = std::make_unique<RiskHost>(*server_, "a", settings_);
    first->read();
    RiskHost second(*server_, "b", settings_);
    for (int i = 0; i < 50; ++i)
        second.step();
    EXPECT_FALSE(second.standing().leads);
    EXPECT_EQ(second.standing().leader, "a");
    add("192.0.2.7", 60);
    first->read();
    add("192.0.2.9", 150);
    // Though no pass has ended since.
    ASSERT_TRUE(first->soon([&] { return is_banned("192.0.2.9"); }));
    const auto scores = first->risk().highest(10);
    // It hangs: nothing gives the lead back, and it wakes up later.
    ASSERT_TRUE(second.soon([&] { return second.standing().leads; }));
    second.read();
    EXPECT_EQ(second.standing().counts.bans, 0U) << "the ban is known, and made only once";
    const auto there = second.risk().highest(10);
    ASSERT_EQ(there.size(), scores.size());
    EXPECT_NEAR(there[0].score.score, scores[0].score.score, 1)
        << "never twice, never from nothing";
    EXPECT_EQ(bans(), 1);
    add("192.0.2.7", 50);
    ASSERT_TRUE(second.soon([&] { return is_banned("192.0.2.7"); }))
        << "60 of the former leader's, 50 of its own";
    // The former one can't ban any more.
    EXPECT_FALSE(first->standing().leads);
    first->step();
    EXPECT_EQ(first->standing().leader, "b");
}

TEST_F(FleetRiskTest, ALeaderThatIsOverIsFencedOff) {
    const Command ban = feed_ban_command(
        feed_, {.prefix = Prefix::parse("192.0.2.7").value(), .source = "risk", .token = 100});
    ASSERT_TRUE(run(risk_fence_command(feed_.base, 101)).as_integer());
    EXPECT_TRUE(parse_feed_banned(run(ban)).value().fenced);
    EXPECT_EQ(bans(), 0);
    EXPECT_EQ(lab::number(run(risk_fence_command(feed_.base, 100))), 0) << "it never goes back";
    const Command next = feed_ban_command(
        feed_, {.prefix = Prefix::parse("192.0.2.7").value(), .source = "risk", .token = 101});
    EXPECT_TRUE(parse_feed_banned(run(next)).value().added);
}

TEST_F(FleetRiskTest, TokensRiseAlsoWhereTheyAreLost) {
    const auto lead = [&](const char* host, bool wants) {
        return parse_risk_lead(run(risk_lead_command(keys_, host, 60s, wants))).value();
    };
    const RiskLead first = lead("a", true);
    EXPECT_TRUE(first.is_mine);
    EXPECT_EQ(lead("a", true).token, first.token) << "it only goes on";
    EXPECT_FALSE(lead("b", true).is_mine);
    (void)lead("a", false);
    const RiskLead second = lead("b", true);
    EXPECT_TRUE(second.is_mine);
    EXPECT_GT(second.token, first.token);
    (void)run({"FLUSHALL"});
    std::this_thread::sleep_for(5ms);
    EXPECT_GT(lead("a", true).token, second.token);
    EXPECT_EQ(lab::number(run(risk_commit_command(keys_, "b", second.token))), 0);
}

TEST_F(FleetRiskTest, ANewServerIsNoReasonToCountTwice) {
    RiskHost host(*server_, "a", settings_);
    add("192.0.2.7", 50);
    host.read();
    add("192.0.2.7", 30);
    host.read();
    server_->kill();
    server_->start();
    add("192.0.2.7", 5'000);
    host.read();
    EXPECT_LT(host.risk().highest(1).empty() ? 0 : host.risk().highest(1)[0].score.score, 31);
    EXPECT_EQ(bans(), 0);
}

TEST_F(FleetRiskTest, ASetThatIsPoisonedBansNoMoreThanTheCapAndSaysSo) {
    RiskHost host(*server_, "a", settings_);
    host.read();
    // The lead is to be kept meanwhile.
    std::jthread poison([&] { add_many(1'000'000, 1e9); });
    ASSERT_TRUE(host.soon([&] { return host.standing().stopped.has_value(); }));
    poison.join();
    host.pass(2s);
    EXPECT_EQ(bans(), settings_.max_bans_per_minute);
    EXPECT_THAT(host.standing().stopped->reason, HasSubstr("60 bans within a minute"));
    EXPECT_LE(host.standing().scored, ScoreBook::kMostSources);
    // Whoever leads next has not forgotten why.
    RiskHost next(*server_, "b", settings_);
    ASSERT_TRUE(next.soon([&] { return next.standing().leads; }));
    ASSERT_TRUE(next.standing().stopped);
    EXPECT_EQ(next.standing().stopped->reason, "60 bans within a minute");
    // Its operator looks, and lets nobody of them be banned.
    next.risk().order({RiskOrder::Kind::forget_due});
    next.risk().order({RiskOrder::Kind::release});
    ASSERT_TRUE(next.soon([&] { return !next.standing().stopped; }));
    next.pass(2s);
    EXPECT_EQ(bans(), settings_.max_bans_per_minute);
}

TEST_F(FleetRiskTest, OrdersReachWhoeverLeads) {
    settings_.max_bans_per_minute = 1;
    RiskHost leader(*server_, "a", settings_);
    RiskHost other(*server_, "b", settings_);
    leader.read();
    add("192.0.2.1", 120);
    add("192.0.2.2", 120);
    add("192.0.2.3", 50);
    ASSERT_TRUE(leader.soon([&] { return leader.standing().stopped.has_value(); }));
    other.risk().order({RiskOrder::Kind::clear, Prefix::parse("192.0.2.3").value()});
    other.risk().order({RiskOrder::Kind::release});
    ASSERT_TRUE(leader.soon([&] {
        other.step();
        return bans() == 2;
    }));
    EXPECT_EQ(leader.risk().highest(10).size(), 2U);
}

TEST_F(FleetRiskTest, NobodyIsBannedBeforeAGateOfTheFleetHasSeenHim) {
    RiskHost leader(*server_, "a", settings_);
    RiskHost other(*server_, "b", settings_);
    leader.sees_all = other.sees_all = false;
    leader.read();
    add("192.0.2.7", 120);
    ASSERT_TRUE(leader.soon([&] { return !run({"GET", keys_.wanted}).is_nil(); }));
    EXPECT_EQ(lab::text(run({"GET", keys_.wanted})), "192.0.2.7");
    leader.read();
    EXPECT_EQ(bans(), 0);
    EXPECT_EQ(leader.standing().counts.waiting, 1U);
    other.sees_all = true;
    ASSERT_TRUE(leader.soon([&] {
        other.step();
        return is_banned("192.0.2.7");
    }));
    ASSERT_TRUE(leader.soon([&] { return run({"GET", keys_.wanted}).is_nil(); }));
}

TEST_F(FleetRiskTest, GuardedSourcesAreSpared) {
    RiskHost host(*server_, "a", settings_);
    host.guarded = Prefix::parse("192.0.2.7").value();
    host.read();
    add("192.0.2.7", 120);
    ASSERT_TRUE(host.soon([&] { return host.standing().counts.spared == 1; }));
    EXPECT_EQ(bans(), 0);
}

TEST_F(FleetRiskTest, TheShareCountsWhomAllHostsHaveVerified) {
    settings_.max_share = 0.1;
    RiskHost leader(*server_, "a", settings_);
    RiskHost other(*server_, "b", settings_);
    leader.verified = 0;
    leader.read();
    // The hour's number comes with the first answer.
    ASSERT_TRUE(other.soon([&] {
        leader.step();
        return other.risk().now_ms() != 0;
    }));
    for (uint32_t i = 0; i < 500; ++i)
        other.risk().verified(Prefix::host(IpAddress::from_ipv4(0x0b000000U + i)));
    ASSERT_TRUE(other.soon([&] {
        leader.step();
        return lab::number(run({"PFCOUNT", keys_.verified(other.risk().now_ms())})) > 400;
    }));
    add_many(60, 120);
    ASSERT_TRUE(leader.soon([&] { return leader.standing().stopped.has_value(); }));
    EXPECT_THAT(leader.standing().stopped->reason, HasSubstr("10 %"));
    EXPECT_NEAR(static_cast<double>(bans()), 50, 3) << "they are counted by a HyperLogLog";
}

TEST_F(FleetRiskTest, AKeyOfAnotherTypeIsToldAndForgivenOnceItIsASet) {
    RiskHost host(*server_, "a", settings_);
    (void)run({"SET", kSet, "x"});
    ASSERT_TRUE(host.soon([&] { return !host.standing().error.empty() && host.standing().leads; }));
    EXPECT_THAT(host.standing().error, HasSubstr("rl:risk"));
    EXPECT_THAT(host.standing().error, HasSubstr("WRONGTYPE"));
    (void)run({"DEL", kSet});
    add("192.0.2.7", 500);
    host.read();
    EXPECT_EQ(host.standing().error, "");
    EXPECT_EQ(bans(), 0) << "of a set that could not be read nothing is known";
    add("192.0.2.7", 100);
    ASSERT_TRUE(host.soon([&] { return is_banned("192.0.2.7"); }));
}

TEST_F(FleetRiskTest, HostileMembersAndScoresHarmNobody) {
    RiskHost host(*server_, "a", settings_);
    host.read();
    add("192.0.2.7\nclear", 500);
    add(std::string(1'000'000, 'a'), 500);
    add(std::string("\0\xff\xfe", 3), 500);
    add("|192.0.2.9|\t", 500);
    (void)run({"ZADD", kSet, "inf", "192.0.2.1"});
    (void)run({"ZADD", kSet, "-inf", "192.0.2.2"});
    (void)run({"ZADD", kSet, "1e308", "192.0.2.3"});
    (void)run({"ZADD", kSet, "-5", "192.0.2.4"});
    ASSERT_TRUE(host.soon([&] { return is_banned("192.0.2.3"); }));
    host.read();
    EXPECT_EQ(bans(), 1);
    EXPECT_EQ(host.standing().unreadable, 4U);
    // Whatever else stands where others write.
    (void)run({"RPUSH", keys_.orders, "clear", "clear everybody", "drop tables"});
    (void)run(
        {"HSET", keys_.score, "192.0.2.0/24", "1 2 3", "x", "nan 1 1 1 1 1", "192.0.2.5", ""});
    (void)run({"SET", keys_.state, "1 2 x\n\x1b[31m"});
    RiskHost next(*server_, "b", settings_);
    ASSERT_TRUE(next.soon([&] { return next.standing().leads; }));
    next.read();
    EXPECT_EQ(bans(), 1);
}

TEST_F(FleetRiskTest, ASetThatIsDrainedIsTakenAwayAndCountsOnce) {
    settings_.drain = true;
    (void)run({"ZADD", drained_key(kSet), "500", "192.0.2.1"});
    RiskHost host(*server_, "a", settings_);
    add("192.0.2.7", 60);
    ASSERT_TRUE(host.soon([&] { return lab::number(run({"EXISTS", kSet})) == 0; }));
    ASSERT_TRUE(host.soon([&] { return host.standing().is_read; }));
    EXPECT_EQ(bans(), 0) << "what a pass that was cut off left is lost, not counted twice";
    add("192.0.2.7", 60);
    ASSERT_TRUE(host.soon([&] { return is_banned("192.0.2.7"); })) << "60 and 60";
    EXPECT_EQ(lab::number(run({"EXISTS", drained_key(kSet)})), 0);
    EXPECT_EQ(drained_key("{a}:risk"), "{a}:risk:sluice-drained");
}

TEST_F(FleetRiskTest, TheRightsOfTheDocumentationSuffice) {
    server_ = std::make_unique<RedisServer>(
        std::vector<std::string>{"include " SLUICE_SOURCE_DIR "/docs/redis-acl.conf"});
    redis_.emplace(Redis::open(patient(server_->url())).value());
    RedisSettings redis = redis_of(*server_);
    redis.username = "sluice";
    redis.password_file = server_->folder().write("password", "replace-this");
    RiskHost host(redis, "a", settings_);
    RiskHost other(redis, "b", settings_);
    host.sees_all = false;
    host.read();
    host.risk().verified(Prefix::parse("192.0.2.1").value());
    other.risk().order({RiskOrder::Kind::clear, Prefix::parse("192.0.2.1").value()});
    add("192.0.2.7", 120);
    ASSERT_TRUE(host.soon([&] {
        other.step();
        return is_banned("192.0.2.7");
    }));
    host.read();
    EXPECT_EQ(host.standing().error, "");
    EXPECT_EQ(other.standing().error, "");
}

TEST_F(FleetRiskTest, ADrillAsksRedisNothingAndTheLeadEnds) {
    RiskHost host(*server_, "a", settings_);
    host.read();
    host.drill_.begin(1min);
    ASSERT_TRUE(host.soon([&] { return !host.standing().leads; }));
    RiskHost other(*server_, "b", settings_);
    ASSERT_TRUE(other.soon([&] { return other.standing().leads; }));
}

// CPU time of this thread.
double cpu_seconds() {
    rusage used{};
    (void)::getrusage(RUSAGE_THREAD, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// By how much a machine that is busy with other tests makes the same work cost more CPU.
constexpr double kBusy = 2;

// The promise: one pass over a million members takes Redis at most 1.5 s, and this side, spread
// over the 15 s of a pass, at most 5 % of a core.
TEST_F(FleetRiskTest, APassOverAMillionCostsLittle) {
    add_many(1'000'000, 10);
    const auto redis_cpu = [&] {
        const Reply reply = run({"INFO", "cpu"});
        const std::string info(reply.as_text().value());
        double sum = 0;
        for (const char* field : {"used_cpu_user_main_thread:", "used_cpu_sys_main_thread:"})
            sum += std::stod(info.substr(info.find(field) + std::string_view(field).size()));
        return sum;
    };
    TempFolder state;
    RedisDrill drill;
    FleetRisk risk({.redis = redis_of(*server_),
                    .fleet = "test",
                    .host = "a",
                    .risk = settings_,
                    .state_dir = state.path(),
                    .pass = 15s},
                   drill);
    const RiskJudge::World world{.is_seen = [](const Prefix&) { return true; },
                                 .is_guarded = [](const Prefix&) { return false; },
                                 .verified = 0};
    for (const char* pass : {"first", "second"}) {
        const double redis_before = redis_cpu(), own_before = cpu_seconds();
        const auto begun = std::chrono::steady_clock::now();
        const uint64_t passes = risk.standing().passes;
        while (risk.standing().passes == passes &&
               std::chrono::steady_clock::now() - begun < 150s) {
            risk.step(world);
            std::this_thread::sleep_for(25ms);
        }
        const double redis = redis_cpu() - redis_before, own = cpu_seconds() - own_before;
        std::printf("%s pass: %zu members in %.1f s; Redis %.2f s, this side %.2f s of CPU\n", pass,
                    risk.standing().members,
                    std::chrono::duration<double>(risk.standing().pass).count(), redis, own);
        EXPECT_EQ(risk.standing().members, 1'000'000U);
        EXPECT_LE(redis, kBusy * 1.5);
        EXPECT_LE(own, kBusy * 0.05 * 15);
    }
}

}  // namespace
}  // namespace sluice
