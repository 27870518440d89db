// Scores that rise, fade, and come to a ban.
#include "risk/score_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kMinute = 60'000;
constexpr uint64_t kStart = 1'000'000;

Prefix source(uint32_t number) {
    return Prefix::host(IpAddress::from_ipv4(0x0a000000U + number));
}
const Prefix kAttacker = source(7);

class Scores : public testing::Test {
  protected:
    // One pass in which the set has this.
    void pass(std::initializer_list<std::pair<std::string_view, double>> members) {
        book_.members().begin_pass();
        for (const auto& [member, score] : members)
            book_.see(member, kAttacker, score, now_);
        book_.members().end_pass();
    }
    double score(const Prefix& of = kAttacker) {
        const auto found = book_.find(of, now_);
        return found ? found->score : 0;
    }
    std::vector<Prefix> due() { return book_.take_due(1000, now_); }
    std::chrono::nanoseconds ban() {
        const auto time = book_.next_ban(kAttacker, now_);
        book_.banned(kAttacker, now_);
        return time.value_or(0ns);
    }

    RiskSettings settings_;
    ScoreBook book_{settings_};
    uint64_t now_ = kStart;
};

TEST_F(Scores, AtFirstSightAScoreSaysNothing) {
    pass({{"a", 5'000}});
    EXPECT_EQ(score(), 0);
    pass({{"a", 5'000}});
    EXPECT_EQ(score(), 0) << "unchanged";
    pass({{"a", 5'030}});
    EXPECT_EQ(score(), 30);
}

TEST_F(Scores, WhatFallsCountsForNothingAndIsTheNewStart) {
    pass({{"a", 50}});
    pass({{"a", 10}});
    EXPECT_EQ(score(), 0);
    pass({{"a", 25}});
    EXPECT_EQ(score(), 15);
}

TEST_F(Scores, WhoWasAbsentAndIsBackCountsWhole) {
    pass({{"a", 50}});
    pass({});
    pass({{"a", 20}});
    EXPECT_EQ(score(), 20);
}

TEST_F(Scores, WhoComesToASetThatIsKnownCountsWhole) {
    pass({{"a", 50}});
    pass({{"a", 50}, {"b", 40}});
    EXPECT_EQ(score(), 40);
    book_.members().forget();
    pass({{"a", 500}, {"c", 600}});
    EXPECT_EQ(score(), 40) << "another server's set is not known";
}

TEST_F(Scores, AMemberThatIsNamedTwiceInAScanCountsOnce) {
    pass({});
    pass({{"a", 30}, {"a", 30}, {"a", 35}});
    EXPECT_EQ(score(), 30);
    pass({{"a", 35}});
    EXPECT_EQ(score(), 35) << "what came in between is not lost";
}

TEST_F(Scores, WhatIsNoNumberIsLeftOut) {
    pass({});
    pass({{"a", std::numeric_limits<double>::quiet_NaN()},
          {"b", std::numeric_limits<double>::infinity()},
          {"c", -std::numeric_limits<double>::infinity()},
          {"d", -50}});
    EXPECT_EQ(score(), 0);
    book_.add(kAttacker, std::numeric_limits<double>::infinity(), now_);
    book_.add(kAttacker, std::nan(""), now_);
    book_.add(kAttacker, -5, now_);
    EXPECT_EQ(score(), 0);
}

TEST_F(Scores, OneStepIsCapped) {
    pass({});
    pass({{"a", 1e9}});
    EXPECT_EQ(score(), settings_.max_step);
}

TEST_F(Scores, AllMembersOfASourceAddUp) {
    pass({});
    pass({{"10.0.0.7", 30}, {"ip:10.0.0.7", 20}});
    EXPECT_EQ(score(), 50);
}

TEST_F(Scores, AScoreFadesByItsHalfLife) {
    book_.add(kAttacker, 80, now_);
    now_ += 10 * kMinute;
    EXPECT_NEAR(score(), 40, 1e-9);
    book_.add(kAttacker, 10, now_);
    EXPECT_NEAR(score(), 50, 1e-9);
    now_ += 20 * kMinute;
    EXPECT_NEAR(score(), 12.5, 1e-9);
    now_ -= 30 * kMinute;
    EXPECT_NEAR(score(), 12.5 * 4, 1e-9) << "a clock that goes back lets nothing grow";
}

TEST_F(Scores, TheWeightCounts) {
    settings_.weight = 0.5;
    book_.change(settings_);
    pass({});
    pass({{"a", 60}});
    EXPECT_EQ(score(), 30);
}

TEST_F(Scores, WhoEntersIsDueOnce) {
    book_.add(kAttacker, 99, now_);
    EXPECT_THAT(due(), IsEmpty());
    book_.add(kAttacker, 1, now_);
    book_.add(kAttacker, 1, now_);
    EXPECT_THAT(due(), ElementsAre(kAttacker));
    EXPECT_THAT(due(), IsEmpty());
    book_.wait(kAttacker);
    EXPECT_THAT(due(), ElementsAre(kAttacker)) << "whoever waits stays due";
    book_.wait(kAttacker);
    now_ += 5 * kMinute;
    EXPECT_THAT(due(), ElementsAre(kAttacker));
    book_.wait(kAttacker);
    now_ += 6 * kMinute;
    EXPECT_THAT(due(), IsEmpty()) << "it has faded below leave meanwhile";
}

TEST_F(Scores, WhileItIsBannedNothingTriggersAgain) {
    book_.add(kAttacker, 100, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    EXPECT_EQ(ban(), 5min);
    now_ += kMinute;
    book_.add(kAttacker, 500, now_);
    EXPECT_THAT(due(), IsEmpty());
    now_ += 4 * kMinute;
    EXPECT_LT(score(), settings_.leave) << "the ban has used it up";
    EXPECT_THAT(due(), IsEmpty()) << "an unchanged score never triggers again";
}

TEST_F(Scores, WhoGoesOnIsBannedForLonger) {
    for (const auto time : {5min, 10min, 20min, 30min, 30min}) {
        book_.add(kAttacker, 60, now_);
        book_.add(kAttacker, 60, now_);
        ASSERT_THAT(due(), ElementsAre(kAttacker));
        EXPECT_EQ(ban(), time);
        now_ += static_cast<uint64_t>(std::chrono::milliseconds(time).count());
    }
    now_ += 25 * 60 * kMinute;
    book_.add(kAttacker, 100, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    EXPECT_EQ(ban(), 5min) << "the memory ends";
}

TEST_F(Scores, WithoutALongestBanItEndsUpForGood) {
    settings_.max_ban.reset();
    settings_.ban = 8h;
    book_.change(settings_);
    for (const std::chrono::nanoseconds time : {8h, 16h}) {
        book_.add(kAttacker, 120, now_);
        ASSERT_THAT(due(), ElementsAre(kAttacker));
        EXPECT_EQ(ban(), time);
        now_ += static_cast<uint64_t>(time / 1ms);
    }
    book_.add(kAttacker, 120, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    EXPECT_FALSE(book_.next_ban(kAttacker, now_));
    (void)ban();
    now_ += 365 * 24 * 60 * kMinute;
    book_.add(kAttacker, 500, now_);
    EXPECT_THAT(due(), IsEmpty());
    book_.tidy(now_);
    EXPECT_EQ(book_.size(), 1U) << "it is remembered";
}

TEST_F(Scores, WhoIsSparedMustFallBelowLeave) {
    book_.add(kAttacker, 100, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    book_.spare(kAttacker);
    book_.add(kAttacker, 100, now_);
    EXPECT_THAT(due(), IsEmpty());
    now_ += 20 * kMinute + 1;
    book_.add(kAttacker, 10, now_);
    EXPECT_THAT(due(), IsEmpty());
    book_.add(kAttacker, 50, now_);
    EXPECT_THAT(due(), ElementsAre(kAttacker));
}

TEST_F(Scores, WhatDidNotComeAboutIsDueAgain) {
    book_.add(kAttacker, 100, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    const SourceScore before = *book_.find(kAttacker, now_);
    (void)ban();
    book_.undo_ban(kAttacker, before);
    EXPECT_THAT(due(), ElementsAre(kAttacker));
    EXPECT_EQ(ban(), 5min);
}

TEST_F(Scores, WhoIsClearedBeginsAnew) {
    book_.add(kAttacker, 100, now_);
    EXPECT_TRUE(book_.clear(kAttacker));
    EXPECT_FALSE(book_.clear(kAttacker));
    EXPECT_THAT(due(), IsEmpty());
    book_.add(kAttacker, 100, now_);
    book_.add(source(8), 100, now_);
    EXPECT_EQ(book_.clear_due(), 2U);
    EXPECT_THAT(due(), IsEmpty());
    EXPECT_EQ(score(), 0);
}

TEST_F(Scores, WhenItIsFullTheLowestAreForgottenAndCounted) {
    const size_t most = ScoreBook::kMostSources;
    book_.add(kAttacker, 90, now_);
    for (uint32_t i = 0; i < most; ++i)
        book_.add(source(1000 + i), 1 + i % 2, now_);
    EXPECT_LE(book_.size(), most);
    EXPECT_EQ(score(), 90);
    EXPECT_EQ(book_.forgotten(), most / 2);
    EXPECT_EQ(book_.size() + book_.forgotten(), most + 1);
}

TEST_F(Scores, AMillionEqualScoresForgetNobodyWhoIsBanned) {
    book_.add(kAttacker, 100, now_);
    ASSERT_THAT(due(), ElementsAre(kAttacker));
    (void)ban();
    for (uint32_t i = 0; i < 1'000'000; ++i)
        book_.add(source(1000 + i), 100, now_);
    EXPECT_LE(book_.size(), ScoreBook::kMostSources);
    EXPECT_LE(book_.due(), ScoreBook::kMostSources);
    EXPECT_EQ(book_.find(kAttacker, now_)->times, 1U);
}

TEST_F(Scores, WhoHasNoScoreAnyMoreIsForgottenInTime) {
    book_.add(source(1), 10, now_);
    book_.add(kAttacker, 100, now_);
    (void)due();
    (void)ban();
    now_ += 2 * 60 * kMinute;
    book_.tidy(now_);
    EXPECT_EQ(book_.size(), 1U) << "who was banned is known for the memory";
    now_ += 24 * 60 * kMinute;
    book_.tidy(now_);
    EXPECT_EQ(book_.size(), 0U);
}

TEST_F(Scores, AnotherLeaderGoesOnWhereTheFormerWas) {
    book_.add(kAttacker, 100, now_);
    (void)due();
    (void)ban();
    book_.add(source(8), 120, now_);
    book_.add(source(9), 30, now_);
    const auto left = book_.highest(10, now_);
    ASSERT_EQ(left.size(), 3U);
    EXPECT_EQ(left[0].source, source(8));
    ScoreBook next(settings_);
    next.add(source(9), 5, now_);
    for (const auto& entry : left)
        next.restore(entry, now_);
    EXPECT_THAT(next.take_due(10, now_), ElementsAre(source(8)));
    EXPECT_EQ(next.find(kAttacker, now_)->times, 1U);
    EXPECT_EQ(next.find(source(9), now_)->score, 5) << "never twice";
    ScoreBook wrong(settings_);
    wrong.restore({kAttacker, {.score = std::nan("")}}, now_);
    EXPECT_EQ(wrong.size(), 0U);
}

TEST(Members, AMillionFitIntoFewBytesAndComeAndGo) {
    MemberScores members;
    members.begin_pass();
    for (int i = 0; i < 1'000'000; ++i)
        ASSERT_EQ(members.take(std::to_string(i), i), 0);
    members.end_pass();
    EXPECT_EQ(members.size(), 1'000'000U);
    members.begin_pass();
    for (int i = 0; i < 1'000'000; i += 2)
        ASSERT_EQ(members.take(std::to_string(i), i + 1), 1);
    members.end_pass();
    EXPECT_EQ(members.size(), 500'000U);
    EXPECT_EQ(members.unknown(), 0U);
}

TEST(Members, ThoseWithoutRoomAreCountedAndNobodyElseIsTakenForNew) {
    MemberScores members;
    members.begin_pass();
    for (size_t i = 0; i < MemberScores::kMost + 10; ++i)
        (void)members.take(std::to_string(i), 1);
    members.end_pass();
    EXPECT_EQ(members.unknown(), 10U);
    members.begin_pass();
    for (size_t i = 0; i < 100; ++i)
        EXPECT_EQ(members.take(std::to_string(i), 3), 2);
    members.end_pass();
    EXPECT_EQ(members.size(), 100U);
    members.begin_pass();
    EXPECT_EQ(members.take("new", 50), 50) << "since then the whole set is known";
    members.end_pass();
}

}  // namespace
}  // namespace sluice
