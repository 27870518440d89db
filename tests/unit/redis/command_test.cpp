#include "redis/command.h"

#include <gtest/gtest.h>

#include "redis/protocol.h"
#include "redis/script.h"

namespace sluice::redis {
namespace {

std::string key_of(const Command& command) {
    return std::string(command.key().value_or("(none)"));
}

TEST(RedisCommand, KnowsItsKey) {
    EXPECT_EQ(key_of({"GET", "k"}), "k");
    EXPECT_EQ(key_of({"hset", "k", "f", "v"}), "k");
    EXPECT_EQ(key_of({"XADD", "s", "*", "f", "v"}), "s");
    EXPECT_EQ(key_of({"XREAD", "COUNT", "10", "STREAMS", "s", "0"}), "s");
    EXPECT_EQ(key_of({"xread", "streams", "s", "0"}), "s");
    EXPECT_EQ(key_of({"EVALSHA", "sha", "2", "a", "b", "x"}), "a");
    EXPECT_EQ(key_of({"EVAL", "return 1", "0", "x"}), "(none)");
    for (const Command& command :
         {Command{"PING"}, Command{"ping", "x"}, Command{"WAIT", "1", "0"}, Command{"TIME"},
          Command{"SCRIPT", "FLUSH"}, Command{"GET"}, Command{}})
        EXPECT_EQ(key_of(command), "(none)");
}

TEST(RedisCommand, OfAScriptCarriesHashOrText) {
    const Script script{
        .name = "s", .text = "return 1", .sha1 = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
    const Command command = script.call({"a", "b"}).add("x").add(-7);
    EXPECT_EQ(command.script(), &script);
    EXPECT_EQ(
        std::vector(command.words().begin(), command.words().end()),
        (std::vector<std::string>{"EVALSHA", std::string(script.sha1), "2", "a", "b", "x", "-7"}));
    EXPECT_EQ(key_of(command), "a");
    EXPECT_EQ(command.with_text().words()[0], "EVAL");
    EXPECT_EQ(command.with_text().words()[1], script.text);
    EXPECT_EQ(command.with_text().words()[6], "-7");
}

TEST(RedisCommand, IsWrittenAsBytesWithTheRunIdInItsGap) {
    std::string bytes;
    ASSERT_TRUE(append_command(bytes, Command{"SET", std::string("\0\r", 2), ""}, ""));
    EXPECT_EQ(bytes, std::string("*3\r\n$3\r\nSET\r\n$2\r\n\0\r\r\n$0\r\n\r\n", 27));
    bytes.clear();
    ASSERT_TRUE(append_command(bytes, Command{"ECHO"}.add_run_id().add("z"), "abc"));
    EXPECT_EQ(bytes, "*3\r\n$4\r\nECHO\r\n$3\r\nabc\r\n$1\r\nz\r\n");
}

}  // namespace
}  // namespace sluice::redis
