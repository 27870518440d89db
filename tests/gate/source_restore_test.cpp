// What was listed before is listed again, whatever holds by now.
#include <chrono>
#include <vector>

#include "gate/source_rules.h"
#include "test_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

KeptRule kept_ban(std::string_view text, Ttl ttl, bool forced = false) {
    return {.entry = {.prefix = prefix(text), .ttl = ttl, .forced = forced, .since_s = 1'000}};
}

KeptRules kept_bans(std::vector<KeptRule> rules) {
    return {.origins = {{.list = "operator", .actor = "alice", .reason = "noise"}},
            .rules = std::move(rules)};
}

class SourceRestoreTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (IsSkipped())
            return;
        make_tables(small_sizes());
        rules_.emplace(*tables_);
    }
    void TearDown() override {
        rules_.reset();
        GateTest::TearDown();
    }
    SourceStanding standing(std::string_view text) {
        return rules_->lookup(IpAddress::parse(text).value()).value().standing;
    }
    std::vector<ListedRule> bans() { return rules_->list(RuleKind::ban).value().rules; }

    std::optional<SourceRules> rules_;
};

TEST_F(SourceRestoreTest, WhoSaidItAndSinceWhen) {
    auto kept = kept_bans({kept_ban("192.0.2.1", {})});
    kept.origins.push_back({.list = "office"});
    kept.rules.push_back(
        {.entry = {.prefix = prefix("203.0.113.0/24"), .kind = RuleKind::allow, .exempt = true},
         .origin = 1});
    EXPECT_EQ(rules_->restore(kept).value(), 2U);
    EXPECT_EQ(standing("192.0.2.1"), SourceStanding::banned);
    EXPECT_EQ(standing("203.0.113.9"), SourceStanding::exempt);
    ASSERT_EQ(bans().size(), 1U);
    EXPECT_EQ(bans()[0].actor, "alice");
    EXPECT_EQ(bans()[0].reason, "noise");
    EXPECT_EQ(bans()[0].since_s, 1'000U);
    EXPECT_EQ(bans()[0].until_ns, SLUICE_NEVER);
}

TEST_F(SourceRestoreTest, WhatAnAllowOrAProtectionBeatsIsOverruledAgain) {
    ASSERT_TRUE(rules_->allow(prefix("198.51.100.0/24"), {.list = std::string(kPolicyList)}));
    ASSERT_TRUE(rules_->protect(prefix("192.0.2.1"), {}));
    ASSERT_TRUE(rules_->protect(prefix("192.0.2.2"), {}));
    const auto kept = kept_bans(
        {kept_ban("198.51.100.7", 1h), kept_ban("192.0.2.1", 1h), kept_ban("192.0.2.2", 1h, true)});
    EXPECT_EQ(rules_->restore(kept).value(), 3U);
    EXPECT_EQ(standing("198.51.100.7"), SourceStanding::allowed);
    EXPECT_EQ(standing("192.0.2.1"), SourceStanding::guarded);
    EXPECT_EQ(standing("192.0.2.2"), SourceStanding::banned) << "by force";
    EXPECT_EQ(rules_->counts().value().bans_overruled, 2U);
    ASSERT_TRUE(rules_->unallow(prefix("198.51.100.0/24"), kPolicyList));
    EXPECT_EQ(standing("198.51.100.7"), SourceStanding::banned);
}

TEST_F(SourceRestoreTest, WhatStandsStaysAndTheLongestBanHolds) {
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.reason = "new"}));
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.2"), {.ttl = 1min, .reason = "new"}));
    const auto kept = kept_bans(
        {kept_ban("192.0.2.1", 1h), kept_ban("192.0.2.2", {}), kept_ban("192.0.2.3", 0s)});
    EXPECT_EQ(rules_->restore(kept).value(), 2U);
    const auto now = bans();
    ASSERT_EQ(now.size(), 2U);
    EXPECT_EQ(now[0].until_ns, SLUICE_NEVER);
    EXPECT_EQ(now[0].reason, "new");
    EXPECT_EQ(now[1].until_ns, SLUICE_NEVER);
    EXPECT_EQ(now[1].reason, "noise");
    EXPECT_EQ(rules_->restore(kept).value(), 2U) << "a second time changes nothing";
    EXPECT_EQ(bans().size(), 2U);
}

TEST_F(SourceRestoreTest, WhatDoesNotFitLeavesAllAsItWas) {
    auto sizes = small_sizes();
    sizes.listing = 64;
    rules_.reset();
    make_tables(sizes);
    rules_.emplace(*tables_);
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.ttl = 1min, .reason = "new"}));
    auto kept = kept_bans({kept_ban("192.0.2.1", {})});
    for (int i = 0; i < 100; ++i)
        kept.rules.push_back(kept_ban("198.18.0." + std::to_string(i), {}));
    EXPECT_FALSE(rules_->restore(kept));
    ASSERT_EQ(bans().size(), 1U);
    EXPECT_EQ(bans()[0].reason, "new");
    EXPECT_EQ(standing("192.0.2.1"), SourceStanding::banned);
    EXPECT_EQ(standing("198.18.0.1"), SourceStanding::unknown);
}

}  // namespace

}  // namespace sluice
