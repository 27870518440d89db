#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/redis.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

Error refusal(const redis::Options& options) {
    const auto opened = Redis::open(options);
    return opened ? Error{} : opened.error();
}

TEST(RedisOptions, ThatContradictEachOtherAreRefused) {
    redis::Options options;
    EXPECT_EQ(refusal(options).code, ErrorCode::usage);

    options.url = "redis://192.0.2.1";
    EXPECT_TRUE(Redis::open(options));
    options.username = "sluice";
    EXPECT_THAT(refusal(options).hint, HasSubstr("password_file"));
    options.password_file = "/nonexistent";
    EXPECT_TRUE(Redis::open(options));  // it may be there when it is needed
    options.ca_file = "/nonexistent";
    EXPECT_THAT(refusal(options).hint, HasSubstr("rediss://"));
    options.url = "rediss://192.0.2.1";
    EXPECT_THAT(refusal(options).message, HasSubstr("ca_file /nonexistent"));
    options.ca_file.clear();
    options.key_file = "/nonexistent";
    EXPECT_THAT(refusal(options).hint, HasSubstr("name both"));
}

TEST(RedisOptions, TimeoutsAreWithinReason) {
    redis::Options options;
    options.url = "redis://192.0.2.1";
    for (const auto timeout : {0ms, -1ms, 60'001ms}) {
        options.connect_timeout = timeout;
        EXPECT_THAT(refusal(options).message, HasSubstr("connect_timeout"));
        options.connect_timeout = 60s;
        options.command_timeout = timeout;
        EXPECT_THAT(refusal(options).message, HasSubstr("command_timeout"));
        options.command_timeout = 1ms;
    }
    EXPECT_TRUE(Redis::open(options));
}

}  // namespace
}  // namespace sluice
