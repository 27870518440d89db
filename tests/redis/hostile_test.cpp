// What listens there is no Redis, or one that lost its mind.
#include "fake_server.h"
#include "redis/protocol.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::FakeServer;
using lab::RedisServer;
using redis::Command;
using redis::ReplyReader;
using testing::HasSubstr;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Hostile : public lab::RedisTest {};

TEST(HostilePeer, GarbageIsAnErrorOfTheProtocol) {
    for (const std::string answer :
         {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03\x02\x02P", "*-5\r\n", "$-7\r\n",
          "*2147483647\r\n", "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n",
          "%1\r\n+a\r\n+b\r\n", ":12a\r\n"}) {
        const FakeServer fake(answer);
        redis::Options options;
        options.url = "redis://" + fake.address();
        options.connect_timeout = 2s;
        Redis redis = Redis::open(options).value();
        const auto refused = redis.run(Command{"PING"});
        ASSERT_FALSE(refused) << answer;
        EXPECT_EQ(refused.error().code, ErrorCode::unreachable) << refused.error().message;
        EXPECT_THAT(refused.error().message,
                    testing::AnyOf(HasSubstr("no answer of Redis"), HasSubstr("no answer in time")))
            << answer;
        EXPECT_EQ(redis.health().state, redis::BreakerState::open);
    }
}

TEST(HostilePeer, ByteByByteTheDeadlineIsTheSame) {
    const FakeServer fake("$1000000\r\n" + std::string(1'000, 'x'), 1, 20ms);
    redis::Options options;
    options.url = "redis://" + fake.address();
    options.connect_timeout = 200ms;
    Redis redis = Redis::open(options).value();
    const auto begun = Clock::now();
    EXPECT_FALSE(redis.run(Command{"PING"}));
    EXPECT_LT(Clock::now() - begun, options.connect_timeout + lab::kLate);
}

TEST(HostilePeer, AListWithoutEndIsRefusedBeforeItTakesMemory) {
    ReplyReader reader;
    ASSERT_TRUE(reader.feed("*" + std::to_string(ReplyReader::kMostElements + 1) + "\r\n"));
    EXPECT_FALSE(reader.next());
    ReplyReader another;
    ASSERT_TRUE(another.feed("*" + std::to_string(ReplyReader::kMostElements) + "\r\n"));
    EXPECT_TRUE(another.next());
}

TEST_F(Hostile, AnAnswerBeyondTheLimitIsRefused) {
    const RedisServer server;
    redis::Options options = patient(server.url());
    options.command_timeout = 60s;
    Redis redis = Redis::open(options).value();
    const std::string beyond = std::to_string(ReplyReader::kMostBytes);
    EXPECT_GT(lab::number(redis.run(Command{"SETRANGE", "k", beyond, "x"})), 0);
    const auto refused = redis.run(Command{"GET", "k"});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("more than 64 MiB"));
    EXPECT_TRUE(lab::eventually([&] { return lab::text(redis.run(Command{"PING"})) == "PONG"; }));
}

}  // namespace
}  // namespace sluice
