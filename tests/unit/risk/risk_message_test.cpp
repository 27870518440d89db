// What hosts write down about risk, and what they make of what others wrote.
#include "risk/risk_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

TEST(RiskMessage, ACheckpointComesBackAsItWas) {
    SourceScore score{.score = 123.456,
                      .at_ms = 1'700'000'000'123,
                      .since_ms = 5,
                      .banned_until_ms = SourceScore::kForGood,
                      .times = 3,
                      .is_held = true};
    const auto entry = parse_checkpoint("2001:db8::/64", format_checkpoint(score));
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->source, prefix("2001:db8::/64"));
    EXPECT_EQ(entry->score.score, score.score);
    EXPECT_EQ(entry->score.at_ms, score.at_ms);
    EXPECT_EQ(entry->score.banned_until_ms, score.banned_until_ms);
    EXPECT_EQ(entry->score.times, 3U);
    EXPECT_TRUE(entry->score.is_held);
    EXPECT_FALSE(entry->score.is_queued);
    score.is_held = false;
    score.is_queued = true;
    EXPECT_TRUE(parse_checkpoint("192.0.2.7", format_checkpoint(score))->score.is_queued);
}

TEST(RiskMessage, WhatMakesNoSenseIsLeftOut) {
    for (const char* source : {"", "x", "192.0.2.0/24", "2001:db8::1"})
        EXPECT_FALSE(parse_checkpoint(source, "1 2 3 4 5 0")) << source;
    for (const char* text : {"", "1", "1 2 3 4 5", "x 2 3 4 5 0", "1 -2 3 4 5 0"})
        EXPECT_FALSE(parse_checkpoint("192.0.2.7", text)) << text;
    for (const char* order : {"", "clear", "clear x", "released", "FLUSHALL"})
        EXPECT_FALSE(parse_order(order)) << order;
    EXPECT_THAT(parse_sources("192.0.2.7\n\nx\n2001:db8::/64", 10),
                ElementsAre(prefix("192.0.2.7"), prefix("2001:db8::/64")));
    EXPECT_THAT(parse_sources("192.0.2.7\n192.0.2.8", 1), ElementsAre(prefix("192.0.2.7")));
}

TEST(RiskMessage, OrdersComeBackAsTheyWere) {
    const auto clear = parse_order(RiskOrder{RiskOrder::Kind::clear, prefix("192.0.2.7")}.format());
    ASSERT_TRUE(clear);
    EXPECT_EQ(clear->source, prefix("192.0.2.7"));
    EXPECT_EQ(parse_order(RiskOrder{RiskOrder::Kind::forget_due}.format())->kind,
              RiskOrder::Kind::forget_due);
    EXPECT_EQ(parse_order(RiskOrder{RiskOrder::Kind::release}.format())->kind,
              RiskOrder::Kind::release);
}

TEST(RiskMessage, CapsAndAStopOutliveTheLeader) {
    BanAllowance allowance{RiskSettings()};
    (void)allowance.take(1'000, 7'000);
    (void)allowance.take(1'000, 8'000);
    RiskState state = parse_state(format_state(allowance));
    EXPECT_THAT(state.recent, ElementsAre(7'000U, 8'000U));
    EXPECT_FALSE(state.stopped);
    allowance.restore({9'000}, BanAllowance::Stop{"2 bans within a minute", 10'000});
    state = parse_state(format_state(allowance));
    EXPECT_THAT(state.recent, ElementsAre(9'000U));
    EXPECT_EQ(state.stopped, (BanAllowance::Stop{"2 bans within a minute", 10'000}));
    state = parse_state("x\n5 \x1b[31mred");
    EXPECT_THAT(state.recent, IsEmpty());
    EXPECT_EQ(state.stopped->reason, "\\x1b[31mred") << "people read it";
}

TEST(RiskMessage, ASetIsDrainedWithinItsSlot) {
    EXPECT_EQ(drained_key("rl:risk"), "{rl:risk}:sluice-drained");
    EXPECT_EQ(drained_key("{a}:risk"), "{a}:risk:sluice-drained");
}

}  // namespace
}  // namespace sluice
