// Lua files that are built in: run by their hash, with their text where the server lacks them.
#include "redis/script.h"

#include "append_both.lua.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using lab::text;
using lua::kAppendBoth;
using redis::Command;

class Scripts : public lab::RedisTest {};

// How often the server has run a command.
int calls(const RedisServer& server, const std::string& command) {
    const std::string stats = text(server.ask({"INFO", "commandstats"}));
    const std::string name = "cmdstat_" + command + ":calls=";
    const size_t at = stats.find(name);
    return at == std::string::npos ? 0 : std::stoi(stats.substr(at + name.size()));
}

TEST_F(Scripts, AreKnownByTheHashThatRedisComputes) {
    const RedisServer server;
    EXPECT_EQ(text(server.ask({"SCRIPT", "LOAD", kAppendBoth.text})), kAppendBoth.sha1);
    EXPECT_EQ(kAppendBoth.name, "append_both");
}

TEST_F(Scripts, TravelOnlyToAServerThatLacksThem) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    const Command command = kAppendBoth.call({"a", "b"}).add("x");
    for (int length = 1; length <= 3; length++)
        EXPECT_EQ(number(redis.run(command)), length);
    EXPECT_EQ(calls(server, "eval"), 1);
    EXPECT_EQ(text(server.ask({"SCRIPT", "FLUSH"})), "OK");
    EXPECT_EQ(number(redis.run(command)), 4);
    EXPECT_EQ(number(redis.run(command)), 5);
    EXPECT_EQ(calls(server, "eval"), 2);
    EXPECT_EQ(text(server.ask({"GET", "b"})), "xxxxx");
}

TEST_F(Scripts, AreRepeatedWithTheCommandsThatBelongToThem) {
    const RedisServer server;
    const RedisServer replica({"replicaof 127.0.0.1 " + std::to_string(server.port())});
    Redis redis = Redis::open(patient(server.url())).value();
    // A WAIT that ran before the script was there would have waited for nothing.
    const std::vector<Command> commands = {
        kAppendBoth.call({"a", "b"}).add("x"), {"WAIT", "1", "4000"}, {"GET", "a"}};
    ASSERT_TRUE(lab::eventually([&] { return number(server.ask({"WAIT", "1", "100"})) == 1; }));
    const auto replies = redis.run(commands).value();
    EXPECT_EQ(number(replies[0]), 1);
    EXPECT_EQ(number(replies[1]), 1);
    EXPECT_EQ(calls(server, "eval"), 1);
    EXPECT_EQ(text(replica.ask({"GET", "b"})), "x");
}

TEST_F(Scripts, ThatFailSayWhy) {
    const RedisServer server;
    Redis redis = Redis::open(patient(server.url())).value();
    EXPECT_EQ(text(redis.run({"RPUSH", "list", "1"})).substr(0, 5), "error");
    const auto reply = redis.run(kAppendBoth.call({"list", "b"}).add("x")).value();
    EXPECT_THAT(std::string(reply.error_text()), testing::HasSubstr("WRONGTYPE"));
    EXPECT_EQ(redis.health().state, redis::BreakerState::closed);
}

}  // namespace
}  // namespace sluice
