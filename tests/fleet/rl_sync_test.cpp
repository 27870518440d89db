// A host that follows another limiter's keys, with real tables and a real Redis whose user has the
// rights of docs/redis-acl.conf: what it makes of them, and what takes nothing away.
#include "fleet/rl_sync.h"

#include <filesystem>

#include "fleet/rl_rollback.h"
#include "gate/source_rules.h"
#include "redis_test.h"
#include "test_gate.h"

namespace sluice {
namespace {

using lab::eventually;
using lab::RedisServer;
using redis::Command;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Limit window(uint64_t limit) {
    return StrictWindow{limit, 60s};
}

class RlHost : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (const std::string why = RedisServer::missing(); !why.empty())
            GTEST_SKIP() << why;
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>(
            std::vector<std::string>{"include " SLUICE_SOURCE_DIR "/docs/redis-acl.conf"});
        make_tables(small_sizes());
        member_.redis =
            RedisSettings{.url = server_->url(),
                          .username = "sluice",
                          .password_file = server_->folder().write("password", "replace-this"),
                          .ca_file = {},
                          .cert_file = {},
                          .key_file = {},
                          .connect_timeout = 5s,
                          .command_timeout = 5s};
        member_.settings = RlSettings{};
        member_.settings->base_after = 2s;
        member_.services = {"login", "other"};
        restart();
    }
    void TearDown() override {
        sync_.reset();
        GateTest::TearDown();
    }
    void restart() {
        sync_.emplace(pin_dir_, state_.path(), drill_, [this](size_t before, size_t after) {
            audited_.emplace_back(before, after);
        });
        sync_->follow(member_);
    }
    void follow(const std::function<void(RlSettings&)>& change) {
        change(*member_.settings);
        sync_->follow(member_);
    }
    void ask(const Command& command) { EXPECT_FALSE(server_->ask(command).is_error()); }
    void set(const std::string& route, const char* limit, const char* window_ms = "60000") {
        ask({"HSET", "rl:policy:" + route, "window_ms", window_ms, "limit", limit});
    }
    redis::Options patient_options() {
        redis::Options options;
        options.url = server_->url();
        options.username = "sluice";
        options.password_file = member_.redis->password_file;
        options.connect_timeout = options.command_timeout = 20s;
        return options;
    }
    bool soon(const std::function<bool()>& holds) {
        return eventually([&] {
            (void)sync_->step();
            std::this_thread::sleep_for(5ms);
            return holds();
        });
    }
    void pass(std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end) {
            (void)sync_->step();
            std::this_thread::sleep_for(5ms);
        }
    }
    RlStanding standing() { return sync_->standing(); }
    RlService service(const std::string& name = "login") {
        for (const RlService& service : standing().services)
            if (service.service == name)
                return service;
        return {};
    }
    bool limited_to(uint64_t limit) {
        return soon([&] {
            const auto ceiling = service().ceiling;
            return ceiling && ceiling->connections == window(limit);
        });
    }
    std::string error() { return service().routes.empty() ? "" : service().routes[0].error; }
    std::vector<std::string> allowed() {
        std::vector<std::string> prefixes;
        for (const ListedRule& rule :
             SourceRules(*tables_).list(RuleKind::allow, kRlList).value().rules)
            prefixes.push_back(rule.prefix.to_string());
        return prefixes;
    }

    TempFolder state_;
    std::unique_ptr<RedisServer> server_;
    RlMember member_;
    RedisDrill drill_;
    std::vector<std::pair<size_t, size_t>> audited_;
    std::optional<RlSync> sync_;
};

TEST_F(RlHost, FollowsAPolicyWithinASecondWithTheRightsOfTheDocumentation) {
    EXPECT_TRUE(soon([&] { return standing().synced.has_value(); }));
    EXPECT_EQ(standing().error, "");
    EXPECT_THAT(standing().services, IsEmpty());
    const auto begun = std::chrono::steady_clock::now();
    set("login", "10");
    EXPECT_TRUE(limited_to(20));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, 2s);
    // What has its hour is not applied.
    ask({"HSET", "rl:policy:login:2026120118", "limit", "99"});
    set("login", "11");
    EXPECT_TRUE(limited_to(22));
    EXPECT_FALSE(
        Redis::open(patient_options()).value().run(Command{"SET", "rl:policy:x", "1"})->check());
}

TEST_F(RlHost, ATemporaryPolicyEndsAndTheBaseComesBack) {
    set("login", "10");
    ASSERT_TRUE(limited_to(20));
    pass(3s);
    set("login", "30");
    ask({"PEXPIRE", "rl:policy:login", "8000"});
    ASSERT_TRUE(limited_to(60));
    EXPECT_TRUE(soon([&] { return service().routes[0].ends_in.has_value(); }));
    EXPECT_TRUE(limited_to(20));
    EXPECT_EQ(server_->ask({"EXISTS", "rl:policy:login"}).as_integer().value(), 0);
    pass(2s);
    EXPECT_TRUE(limited_to(20));
    // Neither does a restart forget it, nor one without Redis.
    server_->kill();
    restart();
    EXPECT_TRUE(limited_to(20));
}

TEST_F(RlHost, WhatMakesNoSenseTakesNothingAway) {
    set("login", "10");
    ASSERT_TRUE(limited_to(20));
    for (const char* limit : {"nan", "-5", "", "99999999999999", "many"}) {
        set("login", limit);
        EXPECT_TRUE(soon([&] { return error().find("limit = ") != std::string::npos; })) << limit;
        EXPECT_EQ(service().ceiling->connections, window(20));
        set("login", "10");
        EXPECT_TRUE(soon([&] { return error().empty(); }));
    }
    ask({"DEL", "rl:policy:login"});
    ask({"SET", "rl:policy:login", "no hash"});
    EXPECT_TRUE(soon([&] { return error().find("WRONGTYPE") != std::string::npos; })) << error();
    EXPECT_THAT(error(), HasSubstr("rl:policy:login: "));
    pass(1500ms);
    EXPECT_EQ(service().ceiling->connections, window(20));
    server_->kill();
    EXPECT_TRUE(soon([&] { return !standing().error.empty(); }));
    EXPECT_EQ(service().ceiling->connections, window(20));
    server_->start();
    set("login", "12");
    EXPECT_TRUE(limited_to(24));
    EXPECT_EQ(standing().error, "");
}

TEST_F(RlHost, RoutesAndAsesAreThoseThatAreNamed) {
    set("login", "10");
    set("search", "20");
    ask({"HSET", "rl:policy:login:asn:64496", "limit", "50"});
    follow([](RlSettings& rl) {
        rl.routes["login"] = {"login", "search"};
        rl.asns = {64'496};
    });
    EXPECT_TRUE(limited_to(2 * (50 + 20)));
    follow([](RlSettings& rl) { rl.asns.clear(); });
    EXPECT_TRUE(limited_to(2 * (10 + 20)));
    follow([](RlSettings& rl) { rl.users_per_source = 3; });
    EXPECT_TRUE(limited_to(6 * (10 + 20)));
}

TEST_F(RlHost, TheWhitelistIsAllowed) {
    const std::string bytes("\xc0\x00\x02\x08", 4);
    ask({"HSET", "rl:whitelist", "192.0.2.7", "1", bytes, "1", "ip:2001:db8::7", "1", "uid:17", "1",
         "nonsense", "1"});
    EXPECT_TRUE(soon([&] { return allowed().size() == 3; }));
    EXPECT_THAT(allowed(), ElementsAre("192.0.2.7", "192.0.2.8", "2001:db8::7"));
    EXPECT_EQ(standing().whitelist.skipped, 1U);
    EXPECT_EQ(standing().whitelist.refused, 1U);
    EXPECT_EQ(standing().whitelist.first_refused, "nonsense");
    EXPECT_THAT(audited_, ElementsAre(std::pair(size_t{0}, size_t{3})));
    // Nobody takes it back here.
    SourceRules rules(*tables_);
    const auto taken = rules.unallow(Prefix::parse("192.0.2.7").value());
    ASSERT_FALSE(taken);
    EXPECT_THAT(taken.error().hint, HasSubstr("whitelist in Redis"));
    ask({"HDEL", "rl:whitelist", "192.0.2.7"});
    EXPECT_TRUE(soon([&] { return allowed().size() == 2; }));
    // One that can't be read takes nothing away.
    server_->kill();
    pass(1500ms);
    EXPECT_EQ(allowed().size(), 2U);
    server_->start();
    ask({"SET", "rl:whitelist", "no hash"});
    EXPECT_TRUE(soon([&] { return !standing().whitelist_error.empty(); }));
    EXPECT_EQ(allowed().size(), 2U);
    // Without [rl] there is none.
    member_.settings.reset();
    sync_->follow(member_);
    EXPECT_TRUE(soon([&] { return allowed().empty(); }));
}

TEST_F(RlHost, AWhitelistThatIsTooLongIsNotRead) {
    Command many{"HSET", "rl:whitelist"};
    for (size_t i = 0; i <= kMostRlWhitelisted; ++i)
        many.add("uid:" + std::to_string(i)).add("1");
    ask(many);
    EXPECT_TRUE(soon(
        [&] { return standing().whitelist_error.find("10001 members") != std::string::npos; }));
}

TEST_F(RlHost, RollbackWritesAVersionBackForGood) {
    set("login", "30");
    ask({"HSET", "rl:policy:login", "odd", "stays not"});
    ask({"EXPIRE", "rl:policy:login", "1000"});
    const std::vector<std::string> words = {"limit", "10", "window_ms", "60000", "mine", "x"};
    Redis redis = Redis::open(patient_options()).value();
    const auto refused = redis.run(rl_rollback_command("rl:policy:login", words));
    ASSERT_TRUE(refused);
    EXPECT_TRUE(refused->is_error()) << "the rights to read are none to write";
    ask({"ACL", "SETUSER", "sluice", "~rl:policy:*"});
    const auto done = redis.run(rl_rollback_command("rl:policy:login", words));
    ASSERT_TRUE(done);
    EXPECT_TRUE(done->check()) << done->error_text();
    EXPECT_EQ(server_->ask({"HGET", "rl:policy:login", "limit"}).as_text().value(), "10");
    EXPECT_EQ(server_->ask({"HLEN", "rl:policy:login"}).as_integer().value(), 3);
    EXPECT_EQ(server_->ask({"PTTL", "rl:policy:login"}).as_integer().value(), -1);
    EXPECT_TRUE(limited_to(20));
}

}  // namespace
}  // namespace sluice
