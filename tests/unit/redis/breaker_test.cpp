#include "redis/breaker.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::redis {
namespace {

using namespace std::chrono_literals;
using Time = Breaker::Clock::time_point;

constexpr Time kStart = Time(1h);

TEST(Breaker, IsClosedUntilSomethingFails) {
    Breaker breaker(kStart, 1);
    EXPECT_EQ(breaker.state(), BreakerState::closed);
    EXPECT_TRUE(breaker.admit(kStart));
    EXPECT_TRUE(breaker.admit(kStart));
    breaker.failed(kStart + 1s, "no answer in time");
    EXPECT_EQ(breaker.state(), BreakerState::open);
    EXPECT_EQ(breaker.reason(), "no answer in time");
    EXPECT_EQ(breaker.since(), kStart + 1s);
    EXPECT_FALSE(breaker.admit(kStart + 1s));
}

TEST(Breaker, LetsOneProbeThroughAfterThePause) {
    Breaker breaker(kStart, 1);
    breaker.failed(kStart, "gone");
    const Time end = breaker.paused_until();
    EXPECT_FALSE(breaker.admit(end - 1ns));
    EXPECT_TRUE(breaker.admit(end));
    EXPECT_EQ(breaker.state(), BreakerState::half_open);
    EXPECT_EQ(breaker.reason(), "gone");
    EXPECT_FALSE(breaker.admit(end + 1h));

    breaker.failed(end + 1s, "still gone");
    EXPECT_EQ(breaker.state(), BreakerState::open);
    EXPECT_EQ(breaker.reason(), "still gone");
    EXPECT_FALSE(breaker.admit(end + 1s));

    ASSERT_TRUE(breaker.admit(breaker.paused_until()));
    breaker.succeeded(end + 1h);
    EXPECT_EQ(breaker.state(), BreakerState::closed);
    EXPECT_EQ(breaker.reason(), "");
    EXPECT_TRUE(breaker.admit(end + 1h));
}

TEST(Breaker, PausesDoubleUpToTheLongestAndStartAnewAfterASuccess) {
    Breaker breaker(kStart, 1);
    Time now = kStart;
    auto full = Breaker::kFirstPause;
    for (int i = 0; i < 100; i++) {
        breaker.failed(now, "gone");
        const auto pause = breaker.paused_until() - now;
        EXPECT_GE(pause, full / 2) << i;
        EXPECT_LE(pause, full) << i;
        now = breaker.paused_until();
        ASSERT_TRUE(breaker.admit(now));
        full = std::min(full * 2, Breaker::kLongestPause);
    }
    breaker.succeeded(now);
    breaker.failed(now, "gone");
    EXPECT_LE(breaker.paused_until() - now, Breaker::kFirstPause);
}

TEST(Breaker, NoTwoComeBackAtTheSameMoment) {
    std::set<Time> ends;
    for (uint64_t seed = 0; seed < 100; seed++) {
        Breaker breaker(kStart, seed);
        breaker.failed(kStart, "gone");
        ends.insert(breaker.paused_until());
    }
    EXPECT_GT(ends.size(), 95U);
}

TEST(Breaker, NeedNotWaitForWhatHasBeenReplaced) {
    Breaker breaker(kStart, 1);
    breaker.failed(kStart, "gone");
    breaker.end_pause(kStart + 1ms);
    EXPECT_TRUE(breaker.admit(kStart + 1ms));
    EXPECT_EQ(breaker.state(), BreakerState::half_open);
}

TEST(Breaker, SinceIsWhenTheStateBeganNotWhenItWasSeenLast) {
    Breaker breaker(kStart, 1);
    breaker.succeeded(kStart + 1s);
    EXPECT_EQ(breaker.since(), kStart);
    breaker.failed(kStart + 2s, "gone");
    breaker.failed(kStart + 3s, "gone");
    EXPECT_EQ(breaker.since(), kStart + 2s);
}

}  // namespace
}  // namespace sluice::redis
