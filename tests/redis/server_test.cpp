// One server: in order, in time, with log-in and role, through restarts.
#include <thread>

#include "redis_test.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using lab::text;
using redis::BreakerState;
using redis::Command;
using redis::Reply;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class SingleServer : public lab::RedisTest {};

const std::string kBinary("\0\r\n*3 \xff{}", 9);

TEST_F(SingleServer, AnswersAPipelineInItsOrder) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    const std::vector<Command> commands = {{"SET", "k", kBinary},     {"GET", "k"},
                                           {"GET", "none"},           {"INCR", "n"},
                                           {"LRANGE", "k", "0", "1"}, {"RPUSH", "l", "a", "b"},
                                           {"LRANGE", "l", "0", "-1"}};
    const std::vector<Reply> replies = redis.run(commands).value();
    ASSERT_EQ(replies.size(), commands.size());
    EXPECT_EQ(replies[0], Reply::status("OK"));
    EXPECT_EQ(replies[1], Reply::text(kBinary));
    EXPECT_TRUE(replies[2].is_nil());
    EXPECT_EQ(replies[3], Reply::integer(1));
    EXPECT_EQ(replies[4].error_word(), "WRONGTYPE");
    EXPECT_EQ(replies[5], Reply::integer(2));
    EXPECT_EQ(replies[6], Reply::array({Reply::text("a"), Reply::text("b")}));
    EXPECT_TRUE(redis.run(std::vector<Command>()).value().empty());
}

TEST_F(SingleServer, KeepsItsConnection) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    const int64_t id = number(redis.run({"CLIENT", "ID"}));
    EXPECT_GT(id, 0);
    EXPECT_EQ(text(redis.run({"SET", "k", std::string(100'000, 'x')})), "OK");
    EXPECT_EQ(text(redis.run({"GET", "k"})).size(), 100'000U);
    EXPECT_EQ(number(redis.run({"CLIENT", "ID"})), id);
    EXPECT_EQ(text(redis.run({"CLIENT", "GETNAME"})), "sluice");
}

TEST_F(SingleServer, AnswersManyAndLargeCommands) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    const std::string large(8 << 20, 'x');
    std::vector<Command> commands = {{"SET", "large", large}, {"GET", "large"}};
    for (int i = 0; i < 10'000; i++)
        commands.push_back({"INCR", "n"});
    const auto replies = redis.run(commands).value();
    EXPECT_EQ(replies[1], Reply::text(large));
    EXPECT_EQ(replies.back(), Reply::integer(10'000));
}

TEST_F(SingleServer, KnowsWhoAnswered) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    EXPECT_EQ(redis.health().last_ok, Clock::time_point());
    Command ask{"EVAL", "return ARGV[1]", "0"};
    ask.add_run_id();
    const std::string run_id = text(redis.run(ask));
    EXPECT_EQ(run_id.size(), 40U);
    EXPECT_THAT(text(server.ask({"INFO", "server"})), HasSubstr("run_id:" + run_id));
    const redis::Health health = redis.health();
    EXPECT_EQ(health.run_id, run_id);
    EXPECT_EQ(health.server, server.address());
    EXPECT_LT(Clock::now() - health.last_ok, 10s);
    // It reads the same clock; a busy machine may take its time between.
    EXPECT_LT(std::chrono::abs(health.server_time_offset), 5s);
}

TEST_F(SingleServer, IsReachedByAUnixSocket) {
    const RedisServer server;
    Redis by_socket = Redis::open(patient("unix://" + server.socket())).value();
    EXPECT_EQ(text(by_socket.run({"PING"})), "PONG");
    EXPECT_EQ(by_socket.health().server, server.socket());
}

TEST_F(SingleServer, IsReachedByName) {
    if (!has_name())
        GTEST_SKIP() << kOwnName << " is not known here";
    const RedisServer server;
    Redis by_name =
        Redis::open(patient("redis://localhost:" + std::to_string(server.port()))).value();
    EXPECT_EQ(text(by_name.run({"PING"})), "PONG");
}

TEST_F(SingleServer, SelectsTheDatabaseOfTheUrl) {
    const RedisServer server;
    Redis second = Redis::open(patient(server.url() + "/2")).value();
    EXPECT_EQ(text(second.run({"SET", "k", "two"})), "OK");
    EXPECT_TRUE(server.ask({"GET", "k"}).is_nil());
    Redis beyond = Redis::open(patient(server.url() + "/999")).value();
    EXPECT_THAT(text(beyond.run({"PING"})), HasSubstr("DB index is out of range"));
}

TEST_F(SingleServer, WhatItRefusesIsAnAnswer) {
    const RedisServer server({"user sluice on >secret +@all -flushall ~sluice:*"});
    redis::Options options = patient(server.url());
    options.username = "sluice";
    options.password_file = server.folder().write("password", "secret\n");
    Redis redis = Redis::open(options).value();
    const Reply forbidden = redis.run({"FLUSHALL"}).value();
    EXPECT_EQ(forbidden.error_word(), "NOPERM");
    EXPECT_EQ(forbidden.check().error().code, ErrorCode::not_permitted);
    EXPECT_THAT(forbidden.check().error().hint, HasSubstr("ACL SETUSER"));
    EXPECT_EQ(redis.run({"GET", "other"}).value().error_word(), "NOPERM");
    EXPECT_EQ(redis.health().state, BreakerState::closed);
}

TEST_F(SingleServer, FewRightsAreEnough) {
    const RedisServer server({"user sluice on >secret -@all +role +info +time +get ~sluice:*"});
    redis::Options options = patient(server.url());
    options.username = "sluice";
    options.password_file = server.folder().write("password", "secret");
    Redis redis = Redis::open(options).value();
    EXPECT_TRUE(redis.run({"GET", "sluice:k"}).value().is_nil());
}

TEST_F(SingleServer, APasswordIsNotShownThoughRedisRepeatsIt) {
    const RedisServer without_auth({"rename-command AUTH \"\""});
    const RedisServer without_password;
    for (const RedisServer* server : {&without_auth, &without_password}) {
        redis::Options options = patient(server->url());
        options.password_file = server->folder().write("password", "secret");
        Redis redis = Redis::open(options).value();
        const auto refused = redis.run({"PING"});
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().message, server->address() + ": ERR to AUTH");
        EXPECT_THAT(refused.error().hint, Not(HasSubstr("secret")));
        EXPECT_THAT(redis.health().reason, Not(HasSubstr("secret")));
    }
    EXPECT_THAT(text(without_auth.ask({"AUTH", "secret"})), HasSubstr("secret"));
}

TEST_F(SingleServer, ARoleThatMayNotBeAskedForIsNamed) {
    const RedisServer server({"user sluice on >secret +@all -role ~*"});
    redis::Options options = patient(server.url());
    options.username = "sluice";
    options.password_file = server.folder().write("password", "secret");
    Redis redis = Redis::open(options).value();
    const auto refused = redis.run({"PING"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("'role'"));
    EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
}

TEST_F(SingleServer, LogsInAgainAfterARestart) {
    RedisServer server({"user sluice on >secret +@all ~*"});
    redis::Options options = patient(server.url());
    options.username = "sluice";
    options.password_file = server.folder().write("password", "secret\n");
    Redis redis = Redis::open(options).value();
    EXPECT_EQ(text(redis.run({"ACL", "WHOAMI"})), "sluice");
    const std::string run_id = redis.health().run_id;
    server.stop();
    server.start();
    // Nothing was asked while it was away: nothing fails.
    EXPECT_EQ(text(redis.run({"ACL", "WHOAMI"})), "sluice");
    EXPECT_NE(redis.health().run_id, run_id);
}

TEST_F(SingleServer, ReadsThePasswordAnewAtEachConnect) {
    const RedisServer server({"user sluice on >secret +@all ~*"});
    redis::Options options = patient(server.url());
    options.username = "sluice";
    options.password_file = server.folder().write("password", "secret");
    Redis redis = Redis::open(options).value();
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");

    server.folder().write("password", "mistaken");
    EXPECT_EQ(number(server.ask({"CLIENT", "KILL", "TYPE", "normal"})), 1);
    const auto refused = redis.run({"PING"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_permitted);
    EXPECT_THAT(refused.error().message, HasSubstr(server.address() + ": WRONGPASS"));
    for (const std::string& shown :
         {refused.error().message, refused.error().hint, redis.health().reason})
        EXPECT_THAT(shown, Not(HasSubstr("mistaken")));
    EXPECT_EQ(redis.health().state, BreakerState::open);

    server.folder().write("password", "secret");
    EXPECT_TRUE(lab::eventually([&] { return text(redis.run({"PING"})) == "PONG"; }));
    EXPECT_EQ(redis.health().state, BreakerState::closed);
}

TEST_F(SingleServer, AsksForAPasswordThatIsMissing) {
    const RedisServer server({"requirepass secret"});
    Redis redis = Redis::open(patient(server.url())).value();
    const auto refused = redis.run({"PING"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("NOAUTH"));
    EXPECT_THAT(refused.error().hint, HasSubstr("password_file"));

    redis::Options options = patient(server.url());
    options.password_file = server.folder().write("password", "secret");
    EXPECT_EQ(text(Redis::open(options).value().run({"PING"})), "PONG");
    options.password_file = server.folder().path() + "/none";
    EXPECT_THAT(text(Redis::open(options).value().run({"PING"})), HasSubstr("No such file"));
    options.password_file = server.folder().write("empty", "\n");
    EXPECT_THAT(text(Redis::open(options).value().run({"PING"})), HasSubstr("is empty"));
}

TEST_F(SingleServer, ReplicasAreRefused) {
    const RedisServer master;
    const RedisServer replica({"replicaof 127.0.0.1 " + std::to_string(master.port())});
    Redis redis = Redis::open(patient(replica.url())).value();
    const auto refused = redis.run({"GET", "k"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              replica.address() + ": READONLY the server is a slave, no master");
    EXPECT_EQ(redis.health().state, BreakerState::open);
}

TEST_F(SingleServer, AMasterThatBecomesAReplicaIsLeftAloneUntilItIsOneNoMore) {
    const RedisServer other;
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    EXPECT_EQ(text(redis.run({"SET", "k", "1"})), "OK");
    EXPECT_EQ(text(server.ask({"REPLICAOF", "127.0.0.1", std::to_string(other.port())})), "OK");
    EXPECT_EQ(redis.run({"SET", "k", "2"}).value().error_word(), "READONLY");
    EXPECT_EQ(redis.health().state, BreakerState::open);
    EXPECT_THAT(redis.health().reason, HasSubstr("READONLY"));
    EXPECT_FALSE(redis.run({"SET", "k", "3"}));
    EXPECT_EQ(text(server.ask({"REPLICAOF", "NO", "ONE"})), "OK");
    EXPECT_TRUE(lab::eventually([&] { return text(redis.run({"SET", "k", "4"})) == "OK"; }));
}

TEST_F(SingleServer, AServerThatLoadsIsLeftAlone) {
    // It takes seconds to load, and listens to clients after each 2 MB.
    RedisServer server({"save 3600 1", "rdbcompression no", "key-load-delay 5000"});
    for (int i = 0; i < 300; i++)
        ASSERT_FALSE(
            server.ask({"SET", "key" + std::to_string(i), std::string(50'000, 'v')}).is_error());
    Redis redis = Redis::open(patient(server.url())).value();
    EXPECT_EQ(number(redis.run({"DBSIZE"})), 300);
    server.stop();
    server.start();
    EXPECT_EQ(redis.run({"GET", "key1"}).value().error_word(), "LOADING");
    EXPECT_EQ(redis.health().state, BreakerState::open);
    EXPECT_THAT(redis.health().reason, HasSubstr("LOADING"));
    EXPECT_TRUE(lab::eventually([&] { return number(redis.run({"DBSIZE"})) == 300; }));
}

TEST_F(SingleServer, ThatIsAwayIsNamedAndNotAskedAgainAtOnce) {
    RedisServer server;
    server.stop();
    Redis redis = Redis::open(patient(server.url())).value();
    const auto refused = redis.run({"PING"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unreachable);
    EXPECT_EQ(refused.error().message, server.address() + ": connect: Connection refused");
    EXPECT_EQ(redis.health().state, BreakerState::open);
    EXPECT_EQ(redis.health().reason, refused.error().message);
    server.start();
    EXPECT_TRUE(lab::eventually([&] { return text(redis.run({"PING"})) == "PONG"; },
                                redis::Breaker::kLongestPause + lab::kPatience));
}

TEST_F(SingleServer, ThatSaysNothingIsGivenUpInTime) {
    RedisServer server;
    redis::Options options = patient(server.url());
    options.command_timeout = 100ms;
    Redis redis = Redis::open(options).value();
    EXPECT_EQ(text(redis.run({"PING"})), "PONG");
    server.pause();
    auto begun = Clock::now();
    const auto silent = redis.run({"PING"});
    EXPECT_LT(Clock::now() - begun, options.command_timeout + lab::kLate);
    EXPECT_GE(Clock::now() - begun, options.command_timeout);
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().message, server.address() + ": no answer in time");
    EXPECT_EQ(redis.health().state, BreakerState::open);

    // The kernel still takes connections for it; the log-in is what fails then.
    options.connect_timeout = 100ms;
    Redis another = Redis::open(options).value();
    begun = Clock::now();
    EXPECT_FALSE(another.run({"PING"}));
    EXPECT_LT(Clock::now() - begun, options.connect_timeout + lab::kLate);

    server.resume();
    EXPECT_TRUE(lab::eventually([&] { return text(redis.run({"PING"})) == "PONG"; }));
}

TEST_F(SingleServer, ALateReplyIsNeverThatOfALaterCommand) {
    RedisServer server;
    redis::Options options = patient(server.url());
    options.command_timeout = 300ms;
    Redis redis = Redis::open(options).value();
    for (int i = 0; i < 5; i++) {
        EXPECT_TRUE(lab::eventually([&] { return text(redis.run({"PING"})) == "PONG"; }));
        server.pause();
        EXPECT_FALSE(redis.run({"ECHO", "early"}));
        std::this_thread::sleep_for(redis::Breaker::kFirstPause);
        // The answer to the first comes while that to the second is waited for.
        std::thread waker([&] {
            std::this_thread::sleep_for(100ms);
            server.resume();
        });
        const auto reply = redis.run({"ECHO", "late"});
        EXPECT_TRUE(!reply || text(reply) == "late") << text(reply);
        waker.join();
    }
}

}  // namespace
}  // namespace sluice
