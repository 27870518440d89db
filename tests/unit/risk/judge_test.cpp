// Whom the scores ban, and when they stop.
#include "risk/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "risk/seen_sources.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr uint64_t kMinute = 60'000;

Prefix source(uint32_t number) {
    return Prefix::host(IpAddress::from_ipv4(0x0a000000U + number));
}

class Judge : public testing::Test {
  protected:
    // So many sources with a score that is enough.
    void score(uint32_t count, uint32_t first = 0) {
        for (uint32_t i = 0; i < count; ++i)
            judge_.book.add(source(first + i), 100, now_);
    }
    // Bans those whose turn it is.
    void decide() {
        const auto bans =
            judge_.decide({.is_seen = [this](const Prefix&) { return seen_; },
                           .is_guarded = [this](const Prefix& who) { return who == guarded_; },
                           .verified = verified_},
                          now_);
        for (const RiskBan& ban : bans) {
            if (works_)
                bans_.push_back(ban);
            else
                judge_.take_back(ban);
        }
    }

    RiskSettings settings_;
    RiskJudge judge_{settings_};
    std::vector<RiskBan> bans_;
    Prefix guarded_ = source(99'999);
    bool seen_ = true, works_ = true;
    size_t verified_ = 1'000'000;
    uint64_t now_ = 1'000'000;
};

TEST_F(Judge, BansWhoIsDueWithTheScoreAsReason) {
    score(1);
    decide();
    ASSERT_EQ(bans_.size(), 1U);
    EXPECT_EQ(bans_[0].time, 5min);
    EXPECT_EQ(bans_[0].reason(), "score 100, ban 1");
    decide();
    EXPECT_EQ(bans_.size(), 1U);
}

TEST_F(Judge, NobodyIsBannedWhomNoGateHasSeen) {
    seen_ = false;
    score(3);
    decide();
    EXPECT_EQ(bans_.size(), 0U);
    EXPECT_EQ(judge_.counts().waiting, 3U);
    seen_ = true;
    judge_.book.add(source(0), 10, now_);
    decide();
    EXPECT_EQ(bans_.size(), 3U) << "as soon as they are seen";
    EXPECT_EQ(judge_.counts().waiting, 0U);
}

TEST_F(Judge, GuardedSourcesAreSparedAndCounted) {
    guarded_ = source(1);
    settings_.never = {Prefix::parse("10.0.0.0/31").value()};
    judge_.change(settings_);
    score(3);
    decide();
    ASSERT_EQ(bans_.size(), 1U);
    EXPECT_EQ(bans_[0].source, source(2));
    EXPECT_EQ(judge_.counts().spared, 2U);
    decide();
    EXPECT_EQ(judge_.counts().spared, 2U) << "once";
}

TEST_F(Judge, WhatCouldNotBeDoneIsTriedAgainAndCountsForNothing) {
    works_ = false;
    score(50);
    decide();
    decide();
    EXPECT_FALSE(judge_.allowance.stopped());
    works_ = true;
    decide();
    ASSERT_EQ(bans_.size(), 50U);
    EXPECT_EQ(bans_[0].times, 1U);
}

TEST_F(Judge, BeyondTheMinutesCapItStopsUntilItIsReleased) {
    score(100);
    decide();
    EXPECT_EQ(bans_.size(), 60U);
    ASSERT_TRUE(judge_.allowance.stopped());
    EXPECT_EQ(judge_.allowance.stopped()->reason, "60 bans within a minute");
    now_ += 10 * kMinute;
    score(100, 500);
    decide();
    EXPECT_EQ(bans_.size(), 60U) << "no time makes up for somebody who looks";
    judge_.allowance.release();
    decide();
    EXPECT_EQ(bans_.size(), 120U);
    EXPECT_TRUE(judge_.allowance.stopped());
}

TEST_F(Judge, BeyondTheHoursCapItStops) {
    for (uint32_t minute = 0; minute < 30; ++minute) {
        score(40, 1000 * minute);
        decide();
        now_ += kMinute;
    }
    EXPECT_EQ(bans_.size(), 1000U);
    EXPECT_EQ(judge_.allowance.stopped()->reason, "1000 bans within an hour");
}

TEST_F(Judge, AnHourLaterThereIsRoomAgain) {
    for (uint32_t hour = 0; hour < 3; ++hour) {
        score(50, 1000 * hour);
        decide();
        now_ += 60 * kMinute;
    }
    EXPECT_EQ(bans_.size(), 150U);
    EXPECT_FALSE(judge_.allowance.stopped());
}

TEST_F(Judge, BeyondItsShareOfTheVerifiedItStops) {
    verified_ = 2'500;
    score(60);
    decide();
    EXPECT_EQ(bans_.size(), 25U);
    EXPECT_THAT(judge_.allowance.stopped()->reason, HasSubstr("1 % of the 2500 sources"));
}

TEST_F(Judge, AFewBansAreNoShare) {
    verified_ = 0;
    score(60);
    decide();
    EXPECT_EQ(bans_.size(), BanAllowance::kAlwaysAllowed);
}

TEST_F(Judge, AnotherOneStaysStopped) {
    judge_.allowance.restore({now_ - 10, now_ - 5}, BanAllowance::Stop{"why", 5});
    score(1);
    decide();
    EXPECT_EQ(bans_.size(), 0U);
    settings_.max_bans_per_minute = 3;
    judge_.change(settings_);
    judge_.allowance.restore({now_ - 10, now_ - 5}, std::nullopt);
    score(5);
    decide();
    EXPECT_EQ(bans_.size(), 1U) << "two of three were there";
}

TEST(SeenSources, AreThereForAMinuteAndVerifiedForAnHour) {
    SeenSources seen;
    seen.see(source(1), 1'000);
    EXPECT_TRUE(seen.verify(source(2), 1'000));
    EXPECT_FALSE(seen.verify(source(2), 2'000)) << "no news";
    EXPECT_TRUE(seen.is_seen(source(1), 60'999));
    EXPECT_FALSE(seen.is_seen(source(1), 61'000));
    EXPECT_FALSE(seen.is_seen(source(3), 1'000));
    EXPECT_EQ(seen.verified(3'600'000), 1U);
    EXPECT_EQ(seen.verified(3'602'000), 0U);
}

TEST(SeenSources, MoreThanThereIsRoomForAreNotSeen) {
    SeenSources seen;
    for (uint32_t i = 0; i < SeenSources::kMost + 5; ++i)
        seen.see(source(i), 1'000);
    EXPECT_FALSE(seen.is_seen(source(SeenSources::kMost), 1'000));
    seen.see(source(SeenSources::kMost), 70'000);
    EXPECT_TRUE(seen.is_seen(source(SeenSources::kMost), 70'000)) << "the old ones go";
}

}  // namespace
}  // namespace sluice
