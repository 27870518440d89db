// Hosts that follow the feed, each with real tables of its own, and one real Redis: what they put
// in force, what they refuse, and what they hold on to.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "fleet/feed_message.h"
#include "fleet/feed_sync.h"
#include "gate/listing.h"
#include "gate/policy_store.h"
#include "gate/switches.h"
#include "policy/parse.h"
#include "redis_test.h"
#include "test_gate.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::RedisServer;
using redis::Command;
using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::HasSubstr;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}
IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

// A host: a gate of its own, a folder of its own, and what follows the feed.
class Host {
  public:
    Host(std::string pin_dir, const RedisServer& server, const TableSizes& sizes = small_sizes())
        : pin_dir_(std::move(pin_dir)) {
        tables_.emplace(Tables::create(pin_dir_, sizes).value());
        const std::string text =
            "mode = \"enforce\"\n[[service]]\nname = \"web\"\n"
            "match = [\"tcp/443\"]\n[service.per_source]\n"
            "connections = \"10/s\"\n[redis]\nurl = \"" +
            server.url() +
            "\"\nconnect_timeout = \"5s\"\n"
            "command_timeout = \"5s\"\n[fleet]\nname = \"test\"\n";
        const auto policy = parse_policy(text, "test");
        EXPECT_TRUE(policy) << policy.error().message;
        EXPECT_TRUE(install_policy(*tables_, *policy, text, "test"));
        restart();
    }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    ~Host() {
        sync_.reset();
        tables_.reset();
        std::error_code ignored;
        std::filesystem::remove_all(pin_dir_, ignored);
    }

    // The process that follows the feed is another one.
    void restart() {
        if (sync_)
            sync_->save();
        sync_.emplace(pin_dir_, state_.path(), drill_);
    }
    void forget() { std::filesystem::remove(state_.path() + "/fleet"); }
    // What happens within the next moments.
    bool soon(const std::function<bool()>& holds) {
        return eventually([&] {
            sync_->step();
            std::this_thread::sleep_for(5ms);
            return holds();
        });
    }
    // A while in which nothing is to happen.
    void pass(std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            sync_->step();
            std::this_thread::sleep_for(5ms);
        }
    }
    bool bans(std::string_view text) {
        return rules().lookup(address(text)).value().standing == SourceStanding::banned;
    }
    SourceRules rules() { return SourceRules(*tables_); }
    std::vector<ListedRule> listed(RuleKind kind = RuleKind::ban) {
        return rules().list(kind).value().rules;
    }
    Mode mode(const SwitchTarget& target = WholeGate{}) {
        return mode_of(*tables_, target).value();
    }

    Tables& tables() { return *tables_; }
    FeedSync& sync() { return *sync_; }
    RedisDrill& drill() { return drill_; }
    FeedStanding standing() { return sync_->standing(); }

  private:
    std::string pin_dir_;
    TempFolder state_;
    std::optional<Tables> tables_;
    RedisDrill drill_;
    std::optional<FeedSync> sync_;
};

class FeedHost : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (const std::string why = RedisServer::missing(); !why.empty())
            GTEST_SKIP() << why;
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        host_ = std::make_unique<Host>(pin_dir_ + "-a", *server_);
        connect();
    }
    void TearDown() override {
        other_.reset();
        host_.reset();
        GateTest::TearDown();
    }
    void connect() {
        redis::Options options;
        options.url = server_->url();
        options.connect_timeout = options.command_timeout = 20s;
        redis_.emplace(Redis::open(options).value());
    }
    int calls(std::string_view command) {
        const std::string stats = lab::text(run({"INFO", "commandstats"}));
        const std::string name = "cmdstat_" + std::string(command) + ":calls=";
        const size_t at = stats.find(name);
        return at == std::string::npos ? 0 : std::stoi(stats.substr(at + name.size()));
    }
    void add_host() { other_ = std::make_unique<Host>(pin_dir_ + "-b", *server_); }
    redis::Reply run(const Command& command) { return redis_->run(command).value(); }
    void ban(const FeedBan& ban) {
        ASSERT_TRUE(parse_feed_banned(run(feed_ban_command(keys_, ban))));
    }
    void ban(std::string_view what) { ban({.prefix = prefix(what), .ttl = 1h}); }
    void unban(std::string_view what, std::optional<nanoseconds> grace = {}) {
        ASSERT_TRUE(parse_feed_unbanned(
            run(feed_unban_command(keys_, {.prefix = prefix(what), .grace = grace}))));
    }
    void turn(std::string_view target, std::optional<Mode> mode,
              std::optional<nanoseconds> lasts = {}) {
        ASSERT_TRUE(parse_feed_switched(
            run(feed_switch_command(keys_, target, mode, lasts, "alice", "a test"))));
    }

    FeedKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
    std::unique_ptr<Host> host_, other_;
};

TEST_F(FeedHost, ABanHoldsOnEveryHostAsItsSourceSays) {
    add_host();
    ban({.prefix = prefix("192.0.2.7"),
         .source = "crowdsec",
         .ttl = 1h,
         .actor = "alice",
         .reason = "scans"});
    for (Host* host : {host_.get(), other_.get()}) {
        ASSERT_TRUE(host->soon([&] { return host->bans("192.0.2.7"); }));
        const auto listed = host->listed();
        ASSERT_EQ(listed.size(), 1U);
        EXPECT_EQ(source_of(listed[0].list), "crowdsec");
        EXPECT_TRUE(is_fleet_list(listed[0].list));
        EXPECT_EQ(listed[0].actor, "alice");
        EXPECT_EQ(listed[0].reason, "scans");
        const auto left = nanoseconds(listed[0].until_ns - gate_now_ns(host->tables()));
        EXPECT_GT(left, 59min);
        EXPECT_LE(left, 1h);
    }
    unban("192.0.2.7");
    for (Host* host : {host_.get(), other_.get()})
        EXPECT_TRUE(host->soon([&] { return !host->bans("192.0.2.7"); }));
}

TEST_F(FeedHost, AHostsOwnBanAndTheFleetsDoNotEndEachOther) {
    ban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.7"); }));
    ASSERT_TRUE(host_->rules().ban(prefix("192.0.2.7"), {.ttl = 10min}));
    EXPECT_EQ(host_->listed().size(), 2U);
    const auto own = host_->rules().unban(prefix("192.0.2.7"));
    ASSERT_TRUE(own);
    EXPECT_EQ(own->removed, 1U) << "this host's own";
    EXPECT_EQ(own->still_under, prefix("192.0.2.7"));
    EXPECT_TRUE(host_->bans("192.0.2.7"));
    const auto none = host_->rules().unban(prefix("192.0.2.7"));
    ASSERT_FALSE(none);
    EXPECT_NE(none.error().hint.find("--fleet"), std::string::npos) << none.error().hint;
    ASSERT_TRUE(host_->rules().ban(prefix("192.0.2.7"), {.ttl = 10min}));
    unban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->listed().size() == 1; }));
    EXPECT_TRUE(host_->bans("192.0.2.7")) << "the host's own ban goes on";
}

TEST_F(FeedHost, AWiderUnbanTakesWhatIsInside) {
    for (const char* inside : {"10.1.2.3", "10.1.0.0/24", "10.1.255.255"})
        ban(inside);
    ban("10.2.0.1");
    ASSERT_TRUE(host_->soon([&] { return host_->listed().size() == 4; }));
    unban("10.1.0.0/16");
    ASSERT_TRUE(host_->soon([&] { return host_->listed().size() == 1; }));
    EXPECT_TRUE(host_->bans("10.2.0.1"));
}

TEST_F(FeedHost, AGraceKeepsBansAwayOnEveryHost) {
    ban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.7"); }));
    unban("192.0.2.7", 10min);
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.7"); }));
    ban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().refused == 1; }));
    EXPECT_FALSE(host_->bans("192.0.2.7"));
}

TEST_F(FeedHost, AHostKeepsItsOwnGuards) {
    ASSERT_TRUE(host_->rules().allow(prefix("192.0.2.0/28"), {}));
    ASSERT_TRUE(host_->rules().protect(prefix("198.51.100.1"), {}));
    ban("192.0.2.7");
    ban({.prefix = prefix("198.51.100.1"), .forced = true});
    ban({.prefix = prefix("16.0.0.0/4")});
    ban({.prefix = prefix("32.0.0.0/4"), .forced = true});
    ban("203.0.113.1");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("203.0.113.1"); }));
    EXPECT_FALSE(host_->bans("192.0.2.7"));
    EXPECT_FALSE(host_->bans("198.51.100.1")) << "nobody elsewhere insists for this host";
    EXPECT_FALSE(host_->bans("16.1.2.3")) << "too wide by mistake";
    EXPECT_TRUE(host_->bans("32.1.2.3")) << "its operator insisted";
    EXPECT_EQ(host_->standing().refused, 3U);
    EXPECT_FALSE(host_->standing().refusal.empty());
    // The allow was the host's own, and so is its end.
    ASSERT_TRUE(host_->rules().unallow(prefix("192.0.2.0/28")));
    EXPECT_TRUE(host_->bans("192.0.2.7"));
}

TEST_F(FeedHost, AnAllowBeatsABan) {
    ban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.7"); }));
    ban({.kind = RuleKind::allow, .prefix = prefix("192.0.2.0/24"), .exempt = true});
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.7"); }));
    const auto allows = host_->listed(RuleKind::allow);
    ASSERT_EQ(allows.size(), 1U);
    EXPECT_TRUE(allows[0].exempt);
}

TEST_F(FeedHost, WhoJoinsLaterLearnsAll) {
    for (int i = 0; i < 300; ++i)
        ban("10.9." + std::to_string(i / 100) + '.' + std::to_string(i % 100));
    unban("10.9.0.0");
    turn("web", Mode::observe);
    add_host();
    ASSERT_TRUE(other_->soon([&] { return other_->standing().records == 299; }));
    EXPECT_EQ(other_->listed().size(), 299U);
    EXPECT_TRUE(other_->soon([&] { return other_->mode(OneService{"web"}) == Mode::observe; }));
}

// As one bucket in 65,536 does by chance.
TEST_F(FeedHost, ABucketThatLooksEmptyIsReadAllTheSame) {
    const auto look_empty = [&](std::string_view banned) {
        Command set{"SETRANGE", keys_.digest};
        set.add(2 * feed_bucket(prefix(banned))).add(std::string_view("\0\0", 2));
        (void)run(set);
    };
    ban("192.0.2.1");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.1"); }));
    host_->restart();
    ban("192.0.2.2");
    look_empty("192.0.2.2");
    (void)run({"DEL", keys_.feed});
    add_host();
    EXPECT_TRUE(other_->soon([&] { return other_->bans("192.0.2.2"); })) << "who begins reads all";
    EXPECT_TRUE(host_->soon([&] {
        host_->sync().compare_soon();
        return host_->bans("192.0.2.2");
    })) << "there are two, and all digests agree";
}

TEST_F(FeedHost, AGapInTheStreamIsNoticed) {
    ban("192.0.2.1");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.1"); }));
    ban("192.0.2.2");
    unban("192.0.2.1");
    (void)run({"XTRIM", keys_.feed, "MAXLEN", "0"});
    ban("192.0.2.3");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.3"); }));
    EXPECT_TRUE(host_->bans("192.0.2.2"));
    EXPECT_FALSE(host_->bans("192.0.2.1"));
}

TEST_F(FeedHost, ARestartGoesOnFromTheDisk) {
    for (int i = 0; i < 50; ++i)
        ban("10.9.0." + std::to_string(i));
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 50; }));
    host_->restart();
    ban("192.0.2.1");
    unban("10.9.0.7");
    (void)run({"CONFIG", "RESETSTAT"});
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.1") && !host_->bans("10.9.0.7"); }));
    EXPECT_EQ(calls("hgetall"), 1) << "the switches: what has changed is in the stream";
}

TEST_F(FeedHost, WithoutItsFileAHostKnowsItsGateAgain) {
    ban("192.0.2.1");
    ban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 2; }));
    host_->restart();
    host_->forget();
    host_->restart();
    unban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.2"); }));
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    EXPECT_EQ(host_->standing().lost, 0U);
}

TEST_F(FeedHost, AnUnbanThatWasMissedIsTold) {
    ban("192.0.2.1");
    ban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 2; }));
    unban("192.0.2.1");
    (void)run({"DEL", keys_.feed});
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.1"); }));
    EXPECT_TRUE(host_->bans("192.0.2.2"));
}

TEST_F(FeedHost, AWipedServerIsNoOrderToDropBans) {
    ban("192.0.2.1");
    turn("web", Mode::observe);
    ASSERT_TRUE(host_->soon([&] {
        return host_->bans("192.0.2.1") && host_->mode(OneService{"web"}) == Mode::observe;
    }));
    (void)run({"FLUSHALL"});
    ASSERT_TRUE(host_->soon([&] { return host_->standing().lost == 2; }));
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    // It goes on with what comes.
    ban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.2"); }));
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    EXPECT_EQ(host_->mode(OneService{"web"}), Mode::observe);
    // Nor does a restart change that.
    host_->restart();
    host_->pass(1s);
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    EXPECT_EQ(host_->standing().lost, 2U);
    ASSERT_TRUE(run(feed_accept_command(keys_, {})).check());
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.1"); }));
    EXPECT_TRUE(host_->bans("192.0.2.2"));
    EXPECT_TRUE(host_->soon([&] { return host_->mode(OneService{"web"}) == Mode::enforce; }));
    EXPECT_EQ(host_->standing().lost, 0U);
}

TEST_F(FeedHost, WhatWasLostIsTakenBackByAnUnban) {
    ban("192.0.2.1");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.1"); }));
    (void)run({"FLUSHALL"});
    ASSERT_TRUE(host_->soon([&] { return host_->standing().lost == 1; }));
    unban("192.0.2.1");
    EXPECT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.1"); }));
    EXPECT_EQ(host_->standing().lost, 0U);
}

TEST_F(FeedHost, AnEvictedBucketIsNoOrderEither) {
    ban("192.0.2.1");
    ban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 2; }));
    (void)run({"DEL", keys_.bucket(feed_bucket(prefix("192.0.2.1")))});
    add_host();
    ASSERT_TRUE(other_->soon([&] { return other_->standing().records == 1; }));
    EXPECT_EQ(other_->standing().damaged.size(), 1U);
    host_->restart();
    host_->forget();
    host_->restart();
    ASSERT_TRUE(host_->soon([&] { return host_->standing().lost == 1; }));
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    const auto damaged = host_->standing().damaged;
    ASSERT_TRUE(run(feed_accept_command(keys_, damaged)).check());
    ASSERT_TRUE(host_->soon([&] { return !host_->bans("192.0.2.1"); }));
    EXPECT_TRUE(host_->soon([&] { return host_->standing().damaged.empty(); }));
}

TEST_F(FeedHost, WithoutRedisEverythingStays) {
    ban("192.0.2.1");
    turn("gate", Mode::observe);
    ASSERT_TRUE(
        host_->soon([&] { return host_->bans("192.0.2.1") && host_->mode() == Mode::observe; }));
    server_->kill();
    host_->restart();
    host_->pass(1s);
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    EXPECT_EQ(host_->mode(), Mode::observe);
    EXPECT_FALSE(host_->standing().error.empty());
    server_->start();  // it comes back empty
    ASSERT_TRUE(host_->soon([&] { return host_->standing().lost == 2; }));
    EXPECT_TRUE(host_->bans("192.0.2.1"));
}

TEST_F(FeedHost, ADrillIsALossOfRedis) {
    ban("192.0.2.7");
    ASSERT_TRUE(host_->soon([&] { return host_->bans("192.0.2.7"); }));
    host_->drill().begin(2s);
    ban("192.0.2.8");
    host_->pass(1s);
    EXPECT_TRUE(host_->bans("192.0.2.7"));
    EXPECT_FALSE(host_->bans("192.0.2.8"));
    EXPECT_THAT(host_->standing().error, HasSubstr("a drill is on"));
    EXPECT_TRUE(host_->soon([&] { return host_->bans("192.0.2.8"); }));
    EXPECT_EQ(host_->standing().error, "");
}

TEST_F(FeedHost, ASwitchOfTheFleetLiesBetweenThePolicyAndTheOperator) {
    const OneService web{"web"};
    turn("web", Mode::observe);
    ASSERT_TRUE(host_->soon([&] { return host_->mode(web) == Mode::observe; }));
    ASSERT_EQ(list_switches(host_->tables()).size(), 1U);
    EXPECT_TRUE(list_switches(host_->tables())[0].by_fleet);
    // An operator's word is stronger, and the fleet's comes back behind it.
    ASSERT_TRUE(set_mode(host_->tables(), web, Mode::off, {.lasts = 1s, .confirm = {}}));
    host_->pass(500ms);
    EXPECT_EQ(host_->mode(web), Mode::off);
    EXPECT_TRUE(host_->soon([&] { return host_->mode(web) == Mode::observe; }));
    ASSERT_TRUE(set_mode(host_->tables(), web, Mode::off));
    turn("web", {});
    host_->pass(500ms);
    EXPECT_EQ(host_->mode(web), Mode::off);
    ASSERT_TRUE(clear_mode(host_->tables(), web));
    EXPECT_EQ(host_->mode(web), Mode::enforce);
}

TEST_F(FeedHost, TheFleetsOffBeatsAnOperatorsWordWhichComesBack) {
    ASSERT_TRUE(set_mode(host_->tables(), WholeGate{}, Mode::observe));
    turn("gate", Mode::off);
    ASSERT_TRUE(host_->soon([&] { return host_->mode() == Mode::off; }));
    const auto refused = set_mode(host_->tables(), WholeGate{}, Mode::enforce);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().hint.find("--fleet"), std::string::npos);
    host_->restart();
    host_->pass(500ms);
    EXPECT_EQ(host_->mode(), Mode::off);
    turn("gate", {});
    EXPECT_TRUE(host_->soon([&] { return host_->mode() == Mode::observe; }));
    EXPECT_FALSE(list_switches(host_->tables()).at(0).by_fleet);
}

TEST_F(FeedHost, ATimedSwitchEndsByItself) {
    turn("gate", Mode::off, 1s);
    ASSERT_TRUE(host_->soon([&] { return host_->mode() == Mode::off; }));
    // The packet path alone takes it back.
    std::this_thread::sleep_for(1200ms);
    EXPECT_EQ(host_->mode(), Mode::enforce);
    host_->pass(500ms);
    EXPECT_EQ(host_->mode(), Mode::enforce);
}

TEST_F(FeedHost, OneRoundIsEnoughWithoutADaemon) {
    ban("192.0.2.1");
    turn("web", Mode::observe);
    const Status done = host_->sync().round();
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_TRUE(host_->bans("192.0.2.1"));
    EXPECT_EQ(host_->mode(OneService{"web"}), Mode::observe);
    server_->kill();
    EXPECT_FALSE(host_->sync().round());
    EXPECT_TRUE(host_->bans("192.0.2.1"));
}

TEST_F(FeedHost, ABanThatEndsIsNoDifference) {
    ban({.prefix = prefix("192.0.2.1"), .ttl = 1s});
    ban("192.0.2.2");
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 2; }));
    std::this_thread::sleep_for(1200ms);
    EXPECT_FALSE(host_->bans("192.0.2.1"));
    ban("192.0.2.3");  // clears it away
    host_->sync().compare_soon();
    ASSERT_TRUE(host_->soon([&] { return host_->standing().records == 2; }));
    EXPECT_EQ(host_->standing().lost, 0U);
    EXPECT_TRUE(host_->bans("192.0.2.2"));
}

// --- many of both --------------------------------------------------------------------------------

// All of a fleet, whose connections break at the same moment.
class ManyFeedHosts : public FeedHost {
  protected:
    // A million bans and twenty hosts take minutes.
    const bool is_long_ = std::getenv("SLUICE_FLEET_LAB") != nullptr;
    const size_t bans_ = is_long_ ? 1'000'000 : 20'000;
    const size_t count_ = is_long_ ? 20 : 6;

    void SetUp() override {
        FeedHost::SetUp();
        if (IsSkipped())
            return;
        for (size_t done = 0; done < bans_;) {
            std::vector<Command> commands;
            for (; commands.size() < 1'000; ++done)
                commands.push_back(feed_ban_command(
                    keys_, {.prefix = prefix("10." + std::to_string(done >> 16) + '.' +
                                             std::to_string(done >> 8 & 255) + '.' +
                                             std::to_string(done & 255)),
                            .ttl = 10h}));
            const auto replies = redis_->run(commands);
            ASSERT_TRUE(replies) << replies.error().message;
            for (const redis::Reply& reply : *replies) {
                const auto banned = parse_feed_banned(reply);
                ASSERT_TRUE(banned) << banned.error().message;
            }
        }
        TableSizes sizes = small_sizes();
        sizes.ban4_lines = is_long_ ? 1U << 18 : 1U << 13;
        sizes.listing = is_long_ ? 1U << 21 : 1U << 16;
        for (size_t i = 0; i < count_; ++i)
            hosts_.push_back(
                std::make_unique<Host>(pin_dir_ + "-m" + std::to_string(i), *server_, sizes));
    }
    void TearDown() override {
        hosts_.clear();
        FeedHost::TearDown();
    }

    double redis_cpu() {
        const std::string cpu = lab::text(run({"INFO", "cpu"}));
        double seconds = 0;
        for (const char* name : {"used_cpu_sys:", "used_cpu_user:"})
            seconds += std::stod(cpu.substr(cpu.find(name) + std::strlen(name)));
        return seconds;
    }
    // Each in a thread of its own, until all are done. Returns what Redis spent, of one core.
    double run_all(const std::function<bool(Host&)>& is_done) {
        const double cpu = redis_cpu();
        const auto begun = std::chrono::steady_clock::now();
        std::vector<std::thread> threads;
        for (const auto& host : hosts_)
            threads.emplace_back([&] {
                while (!is_done(*host) &&
                       std::chrono::steady_clock::now() - begun < (is_long_ ? 10min : 1min)) {
                    host->sync().step();
                    std::this_thread::sleep_for(20ms);
                }
            });
        for (std::thread& thread : threads)
            thread.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
        const double spent = redis_cpu() - cpu;
        std::printf("%zu hosts, %zu bans: Redis spent %.2f s in %.1f s\n", hosts_.size(), bans_,
                    spent, took.count());
        return spent / took.count();
    }

    std::vector<std::unique_ptr<Host>> hosts_;
};

TEST_F(ManyFeedHosts, DoNotKeepRedisBusy) {
    const auto has = [&](size_t records) {
        return [records](Host& host) {
            return host.standing().records == records && host.standing().error.empty();
        };
    };
    // That know nothing yet: 40 % of a core for those who read, and the polls of all.
    EXPECT_LT(run_all(has(bans_)), 0.55);
    for (const auto& host : hosts_)
        ASSERT_EQ(host->standing().records, bans_);

    // That know nearly all of it: what has changed lies in as many buckets as there are.
    constexpr size_t kChanged = 4'000;
    for (size_t i = 0; i < kChanged; ++i)
        ban({.prefix = prefix("11.0." + std::to_string(i >> 8) + '.' + std::to_string(i & 255)),
             .ttl = 10h});
    (void)run({"CONFIG", "RESETSTAT"});
    (void)run({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
    (void)run_all(has(bans_ + kChanged));
    for (const auto& host : hosts_)
        ASSERT_EQ(host->standing().records, bans_ + kChanged);
    EXPECT_LE(calls("hgetall"), static_cast<int>(2 * count_)) << "the switches, no bans";
}

}  // namespace
}  // namespace sluice
