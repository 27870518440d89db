// What the tests against real servers have in common.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "redis/redis.h"
#include "redis_server.h"

namespace sluice::lab {

// For a machine that is busy with other things.
inline constexpr std::chrono::milliseconds kPatience = 20s;
// By how much such a machine may wake somebody late whose deadline is over. What is tested that
// way would take for ever, or many times as long, without a deadline.
inline constexpr std::chrono::milliseconds kLate = 2s;

class RedisTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string why = RedisServer::missing(); !why.empty())
            GTEST_SKIP() << why;
    }

    static constexpr std::string_view kOwnName = "localhost";
    // A root without /etc/hosts has none.
    static bool has_name() {
        addrinfo* found = nullptr;
        const bool has = getaddrinfo(kOwnName.data(), nullptr, nullptr, &found) == 0;
        if (has)
            freeaddrinfo(found);
        return has;
    }

    static redis::Options patient(std::string url) {
        redis::Options options;
        options.url = std::move(url);
        options.connect_timeout = kPatience;
        options.command_timeout = kPatience;
        return options;
    }
};

// The text of a reply, or of whatever came in its place.
inline std::string text(const Result<redis::Reply>& reply) {
    if (!reply)
        return "error: " + reply.error().message;
    const auto words = reply->as_text();
    return words ? std::string(*words) : "error: " + words.error().message;
}

inline int64_t number(const Result<redis::Reply>& reply) {
    return reply && reply->as_integer() ? *reply->as_integer() : -1;
}

}  // namespace sluice::lab
