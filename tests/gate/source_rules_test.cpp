#include "gate/source_rules.h"

#include <bpf/bpf.h>

#include <chrono>
#include <sstream>
#include <string>
#include <vector>

#include "gate/listing.h"
#include "gate/table_list.h"
#include "test_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

constexpr uint64_t kSecond = 1'000'000'000;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}
IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

class SourceRulesTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (IsSkipped())
            return;
        make_rules(small_sizes());
    }
    void TearDown() override {
        rules_.reset();
        GateTest::TearDown();
    }

    void make_rules(const TableSizes& sizes) {
        rules_.reset();
        make_tables(sizes);
        set_clock(1000);
        rules_.emplace(*tables_);
    }
    void set_clock(uint64_t seconds) { tables_->settings().test_now_ns = seconds * kSecond; }

    void ban(std::string_view text, Ttl ttl = {}, std::string list = "operator") {
        const auto done = rules_->ban(prefix(text), {.ttl = ttl, .list = std::move(list)});
        EXPECT_TRUE(done) << text << ": " << done.error().message;
    }
    void allow(std::string_view text, Ttl ttl = {}, bool exempt = false) {
        const auto done = rules_->allow(prefix(text), {.ttl = ttl, .exempt = exempt});
        EXPECT_TRUE(done) << text << ": " << done.error().message;
    }
    void protect(std::string_view text) {
        const auto done = rules_->protect(prefix(text), {.list = "policy"});
        EXPECT_TRUE(done) << text << ": " << done.error().message;
    }
    SourceStanding standing(std::string_view text) {
        return rules_->lookup(address(text)).value().standing;
    }
    bool banned(std::string_view text) { return standing(text) == SourceStanding::banned; }
    size_t listed(RuleKind kind = RuleKind::ban) { return rules_->list(kind).value().total; }
    // Wanted and enforced agree at any time.
    void expect_consistent() {
        const auto counts = rules_->counts().value();
        EXPECT_EQ(counts.bans_wanted, counts.bans_enforced);
    }

    std::optional<SourceRules> rules_;
};

// --- prefixes ----------------------------------------------------------------------------------

TEST_F(SourceRulesTest, APrefixIsBannedAsAWhole) {
    ban("2001:db8:aa00::/40", 24h * 90);
    EXPECT_TRUE(banned("2001:db8:aabb::1"));
    EXPECT_FALSE(banned("2001:db8:ab00::1"));
    ban("198.51.100.0/25");
    EXPECT_TRUE(banned("198.51.100.77"));
    EXPECT_FALSE(banned("198.51.100.200"));
    expect_consistent();
}

TEST_F(SourceRulesTest, AllKindsOfLengthsWork) {
    for (const auto* text :
         {"192.0.2.9", "192.0.2.128/31", "203.0.112.0/23", "100.64.0.0/10", "2001:db8:1::/48",
          "2001:db8:2:3::/64", "2001:db8:2:4:5::/80", "2001:db8::7", "2a00::/19"})
        ban(text, 1h);
    for (const auto* in :
         {"192.0.2.9", "192.0.2.129", "203.0.113.255", "100.127.255.255", "2001:db8:1:ffff::1",
          "2001:db8:2:3:4:5:6:7", "2001:db8:2:4:5::1", "2001:db8::7", "2a00:1fff::1"})
        EXPECT_TRUE(banned(in)) << in;
    for (const auto* out : {"192.0.2.8", "192.0.2.130", "203.0.111.255", "203.0.114.0",
                            "100.128.0.0", "2001:db8:0:ffff::1", "2001:db8:2:2::1",
                            "2001:db8:2:4:6::1", "2001:db8::8", "2a00:2000::"})
        EXPECT_FALSE(banned(out)) << out;
    EXPECT_EQ(listed(), 9U);
    expect_consistent();
    EXPECT_EQ(rules_->unban(prefix("0.0.0.0/0")).value().removed, 4U);
    EXPECT_EQ(rules_->unban(prefix("::/0")).value().removed, 5U);
    EXPECT_EQ(listed(), 0U);
    EXPECT_EQ(tables_->settings().codes, 0U);
    EXPECT_EQ(tables_->settings().rule_lengths[0], 0U);
    EXPECT_EQ(tables_->settings().rule_lengths[1], 0U);
    EXPECT_EQ(tables_->settings().bans4, 0U);
}

TEST_F(SourceRulesTest, BansThatDropNothingAreKnown) {
    ban("198.51.100.9");
    ban("198.51.100.0/24");
    ban("203.0.113.5");
    ASSERT_TRUE(rules_->ban(prefix("203.0.113.6"), {.forced = true}));
    ASSERT_TRUE(rules_->ban(prefix("198.51.100.8"), {.forced = true}));
    EXPECT_EQ(rules_->counts().value().bans_overruled, 0U);
    protect("198.51.100.9");
    ban("198.51.100.8", {}, "feed");
    protect("198.51.100.8");  // in vain: that ban insists
    allow("203.0.113.0/24");
    const auto counts = rules_->counts().value();
    EXPECT_EQ(counts.bans_enforced, 5U);
    EXPECT_EQ(counts.bans_overruled, 3U);
    for (const ListedRule& rule : rules_->list(RuleKind::ban).value().rules) {
        const bool passes = rule.prefix.is_host() && !banned(rule.prefix.address().to_string());
        EXPECT_EQ(rule.overruled, passes) << rule.prefix.to_string();
    }
    expect_consistent();
}

TEST_F(SourceRulesTest, ProtectionsAreListedByThemselves) {
    ban("198.51.100.0/24");
    protect("198.51.100.9");
    ASSERT_TRUE(rules_->protect(prefix("198.51.100.9"), {.list = "gateways"}));
    ASSERT_TRUE(rules_->protect(prefix("2001:db8::9"), {.ttl = 1h, .list = "ssh-peers"}));
    EXPECT_EQ(rules_->protections().value().size(), 3U);
    set_clock(1000 + 3600);
    const auto left = rules_->protections().value();
    ASSERT_EQ(left.size(), 2U);
    EXPECT_EQ(left[0].prefix, prefix("198.51.100.9"));
    EXPECT_NE(left[0].list, left[1].list);
}

TEST_F(SourceRulesTest, TheWidestPrefixesTakeForce) {
    for (const auto* text : {"0.0.0.0/0", "128.0.0.0/7", "::/0", "2000::/18"})
        EXPECT_FALSE(rules_->ban(prefix(text), {})) << text;
    EXPECT_FALSE(rules_->allow(prefix("0.0.0.0/0"), {}));
    ban("10.0.0.0/8");
    EXPECT_TRUE(banned("10.255.0.1"));

    ASSERT_TRUE(rules_->ban(prefix("0.0.0.0/0"), {.forced = true}));
    EXPECT_TRUE(banned("192.0.2.1"));
    EXPECT_TRUE(banned("255.255.255.255"));
    EXPECT_FALSE(banned("2001:db8::1"));
    ASSERT_TRUE(rules_->unban(prefix("0.0.0.0/0")));
    EXPECT_FALSE(banned("192.0.2.1"));

    ASSERT_TRUE(rules_->ban(prefix("::/0"), {.forced = true}));
    EXPECT_TRUE(banned("2001:db8::1"));
    EXPECT_FALSE(banned("192.0.2.1"));
}

TEST_F(SourceRulesTest, AMappedAddressIsTheIpv4Address) {
    ban("::ffff:192.0.2.7");
    EXPECT_TRUE(banned("192.0.2.7"));
    EXPECT_EQ(tables_->settings().bans4, 1U);
    EXPECT_EQ(tables_->settings().rule_lengths[1], 0U);
}

// --- how long ----------------------------------------------------------------------------------

TEST_F(SourceRulesTest, TheLongestBanOfAListHoldsInAnyOrder) {
    ban("192.0.2.9", 1h, "feed");
    const auto shorter = rules_->ban(prefix("192.0.2.9"), {.ttl = 60s, .list = "feed"});
    EXPECT_TRUE(shorter.value().kept_longer);
    ban("192.0.2.10", 60s, "feed");
    ban("192.0.2.10", 1h, "feed");
    set_clock(1000 + 3599);
    EXPECT_TRUE(banned("192.0.2.9"));
    EXPECT_TRUE(banned("192.0.2.10"));
    set_clock(1000 + 3601);
    EXPECT_FALSE(banned("192.0.2.9"));
    EXPECT_FALSE(banned("192.0.2.10"));
    EXPECT_EQ(listed(), 0U);
}

TEST_F(SourceRulesTest, TheLongestOfSeveralListsHolds) {
    ban("192.0.2.9", 1h, "feed");
    ban("192.0.2.9", 10min);
    ban("198.51.100.0/24", 10min, "feed");
    ban("198.51.100.0/24", 1h);
    EXPECT_EQ(listed(), 4U);
    const auto one = rules_->unban(prefix("192.0.2.9"), "feed");
    EXPECT_EQ(one.value().removed, 1U);
    EXPECT_EQ(one.value().still_under, prefix("192.0.2.9"));
    set_clock(1000 + 601);
    EXPECT_FALSE(banned("192.0.2.9"));
    EXPECT_TRUE(banned("198.51.100.1"));
    EXPECT_EQ(rules_->lookup(address("198.51.100.1")).value().deciding->listed.size(), 1U);
}

TEST_F(SourceRulesTest, LongAndPermanentBansLastAsLongAsAsked) {
    ban("192.0.2.1");
    ban("192.0.2.2", std::chrono::seconds(2'419'200));
    ban("192.0.2.3", std::chrono::seconds(31'536'000));
    EXPECT_EQ(rules_->lookup(address("192.0.2.1")).value().deciding->until_ns, SLUICE_NEVER);
    set_clock(1000 + 2'419'199);
    EXPECT_TRUE(banned("192.0.2.2"));
    set_clock(1000 + 2'419'201);
    EXPECT_FALSE(banned("192.0.2.2"));
    set_clock(1000 + 31'535'999);
    EXPECT_TRUE(banned("192.0.2.3"));
    set_clock(1000 + 31'536'001);
    EXPECT_FALSE(banned("192.0.2.3"));
    set_clock(1'000'000'000);
    EXPECT_TRUE(banned("192.0.2.1"));
}

TEST_F(SourceRulesTest, TimesBeyondTheClockAreRefusedAloud) {
    const auto long_ban = rules_->ban(prefix("192.0.2.1"), {.ttl = kLongestTtl + 1h});
    ASSERT_FALSE(long_ban);
    EXPECT_EQ(long_ban.error().code, ErrorCode::usage);
    EXPECT_TRUE(rules_->ban(prefix("192.0.2.1"), {.ttl = kLongestTtl}));
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.2"), {.ttl = 0s}));
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.2"), {.ttl = -5s}));
    EXPECT_FALSE(banned("192.0.2.2"));
}

TEST_F(SourceRulesTest, WhatHasExpiredMakesRoom) {
    for (int i = 0; i < 200; ++i) {
        ban("192.0.2." + std::to_string(i), 10s);
        ban("2001:db8::" + std::to_string(i), 10s);
        ban("10." + std::to_string(i) + ".0.0/16", 10s);
    }
    set_clock(2000);
    EXPECT_EQ(listed(), 0U);
    EXPECT_EQ(rules_->counts().value().bans_enforced, 0U);
    for (int i = 0; i < 40; ++i)
        ban("203.0.113." + std::to_string(i));
    EXPECT_EQ(rules_->counts().value().tables.front().used, 40U);
    EXPECT_EQ(tables_->settings().bans4, 40U);
    EXPECT_EQ(tables_->settings().codes, 0U);
    EXPECT_EQ(tables_->settings().rule_lengths[0], 0U);
    EXPECT_EQ(tables_->settings().rule_lengths[1], 0U);
}

TEST_F(SourceRulesTest, SweepingLeavesWhatIsAlive) {
    ban("192.0.2.1", 10s);
    ban("192.0.2.1", 1h, "feed");
    ban("198.51.100.0/24", 10s);
    set_clock(1020);
    EXPECT_EQ(rules_->sweep().value(), 2U);
    EXPECT_TRUE(banned("192.0.2.1"));
    EXPECT_EQ(rules_->counts().value().tables.front().used, 1U);
}

TEST_F(SourceRulesTest, WhatHasExpiredGoesWithoutAnyChange) {
    for (int i = 0; i < 50; ++i) {
        ban("192.0.2." + std::to_string(i), 10s);
        ban("2001:db8:" + std::to_string(i) + "::/64", 10s);
    }
    ban("198.51.100.0/24", 1h);
    const uint64_t changes = tables_->settings().changes;
    set_clock(1020);
    // Each looks at a part.
    for (int i = 0; i < 200; ++i)
        ASSERT_TRUE(rules_->sweep_some());
    EXPECT_EQ(rules_->counts().value().tables.front().used, 1U);
    EXPECT_EQ(tables_->settings().bans4, 0U);
    EXPECT_EQ(tables_->settings().rule_lengths[1], 0U);
    EXPECT_EQ(tables_->settings().changes, changes);
    EXPECT_TRUE(banned("198.51.100.9"));
}

// --- taking back -------------------------------------------------------------------------------

TEST_F(SourceRulesTest, AWiderUnbanTakesBackWhatIsInside) {
    ban("192.0.2.52");
    ban("192.0.2.60/31", 1h, "feed");
    ban("192.0.2.64");
    EXPECT_EQ(rules_->unban(prefix("192.0.2.48/28")).value().removed, 2U);
    EXPECT_FALSE(banned("192.0.2.52"));
    EXPECT_FALSE(banned("192.0.2.60"));
    EXPECT_TRUE(banned("192.0.2.64"));
    expect_consistent();
}

TEST_F(SourceRulesTest, ANarrowerUnbanIsRefusedWithTheCoverNamed) {
    ban("198.51.100.0/24");
    ban("198.51.100.70", 1h, "feed");
    const auto refused = rules_->unban(prefix("198.51.100.64/26"));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("198.51.100.0/24"), std::string::npos);
    EXPECT_TRUE(banned("198.51.100.70"));
    EXPECT_EQ(listed(), 2U);

    const auto named = rules_->unban(prefix("198.51.100.70"), "feed");
    EXPECT_EQ(named.value().removed, 1U);
    EXPECT_EQ(named.value().still_under, prefix("198.51.100.0/24"));
    EXPECT_TRUE(banned("198.51.100.70"));
}

TEST_F(SourceRulesTest, UnbanOfNothingIsNotFound) {
    ban("192.0.2.1");
    for (const auto* text : {"192.0.2.2", "2001:db8::1", "198.51.100.0/24"}) {
        const auto missing = rules_->unban(prefix(text));
        ASSERT_FALSE(missing);
        EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    }
    const auto other = rules_->unban(prefix("192.0.2.1"), "feed");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::not_found);
    ban("192.0.2.9", 1s);
    set_clock(1010);
    EXPECT_FALSE(rules_->unban(prefix("192.0.2.9")));
}

TEST_F(SourceRulesTest, AListIsFlushedByItself) {
    ban("192.0.2.1", 1h, "f2b");
    ban("192.0.2.2", 1h, "f2b");
    ban("192.0.2.2", 1h);
    ban("198.51.100.0/24", 1h, "f2b");
    EXPECT_EQ(rules_->flush("f2b").value(), 3U);
    EXPECT_FALSE(banned("192.0.2.1"));
    EXPECT_TRUE(banned("192.0.2.2"));
    EXPECT_FALSE(banned("198.51.100.1"));
    EXPECT_EQ(rules_->flush("f2b").value(), 0U);
    EXPECT_EQ(rules_->flush("never-heard-of").value(), 0U);
    EXPECT_EQ(listed(), 1U);
}

// --- precedence --------------------------------------------------------------------------------

TEST_F(SourceRulesTest, AllowBeatsBanWhateverTheLengths) {
    ban("192.0.2.7");
    ban("198.51.100.0/24");
    ban("2001:db8:1::/64");
    allow("192.0.2.0/24");
    allow("198.51.100.7");
    allow("2001:db8::/32", 1h, true);
    EXPECT_EQ(standing("192.0.2.7"), SourceStanding::allowed);
    EXPECT_EQ(standing("198.51.100.7"), SourceStanding::allowed);
    EXPECT_EQ(standing("198.51.100.8"), SourceStanding::banned);
    EXPECT_EQ(standing("2001:db8:1::1"), SourceStanding::exempt);
    ASSERT_TRUE(rules_->unallow(prefix("192.0.2.0/24")));
    EXPECT_TRUE(banned("192.0.2.7"));
    set_clock(5000);
    EXPECT_TRUE(banned("2001:db8:1::1"));
    expect_consistent();
}

TEST_F(SourceRulesTest, AnAllowedAddressMustBeUnallowedFirst) {
    allow("192.0.2.0/24");
    for (const bool forced : {false, true}) {
        const auto refused = rules_->ban(prefix("192.0.2.9"), {.forced = forced});
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().hint.find("unallow 192.0.2.0/24"), std::string::npos);
    }
    ban("192.0.0.0/16");
    EXPECT_TRUE(banned("192.0.3.1"));
    EXPECT_EQ(standing("192.0.2.9"), SourceStanding::allowed);
}

TEST_F(SourceRulesTest, AProtectedAddressIsBannedByForceOnly) {
    protect("192.0.2.53");
    protect("2001:db8::/64");
    ban("192.0.2.0/24");
    EXPECT_EQ(standing("192.0.2.53"), SourceStanding::guarded);
    EXPECT_TRUE(banned("192.0.2.54"));
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.53"), {}));
    EXPECT_FALSE(rules_->ban(prefix("2001:db8::1"), {}));
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.53"), {.ttl = 1h, .forced = true}));
    EXPECT_TRUE(banned("192.0.2.53"));
    EXPECT_EQ(rules_->lookup(address("192.0.2.53")).value().deciding->prefix, prefix("192.0.2.53"));
    set_clock(5000);
    EXPECT_EQ(standing("192.0.2.53"), SourceStanding::guarded);
}

TEST_F(SourceRulesTest, ThePolicysAllowsStayUnlessNamed) {
    ASSERT_TRUE(rules_->allow(prefix("192.0.2.0/24"), {.list = "policy"}));
    const auto refused = rules_->unallow(prefix("192.0.2.0/24"));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().hint.find("policy"), std::string::npos);
    EXPECT_EQ(standing("192.0.2.1"), SourceStanding::allowed);
    EXPECT_TRUE(rules_->unallow(prefix("192.0.2.0/24"), kPolicyList));
    EXPECT_EQ(standing("192.0.2.1"), SourceStanding::unknown);
}

TEST_F(SourceRulesTest, OfClassesTheLongestPrefixWins) {
    ASSERT_TRUE(rules_->classify(prefix("10.0.0.0/8"), {.source_class = 3, .list = "policy"}));
    ASSERT_TRUE(rules_->classify(prefix("10.1.0.0/16"), {.source_class = 5, .list = "policy"}));
    ASSERT_TRUE(
        rules_->classify(prefix("10.1.0.0/16"), {.source_class = 9, .ttl = 60s, .list = "fleet"}));
    EXPECT_FALSE(rules_->classify(prefix("10.2.0.0/16"), {}));
    const auto class_of = [&](std::string_view text) {
        return rules_->lookup(address(text)).value().source_class;
    };
    EXPECT_EQ(class_of("10.9.0.1"), 3);
    EXPECT_EQ(class_of("10.1.0.1"), 9);
    EXPECT_EQ(class_of("11.0.0.1"), 0);
    ASSERT_TRUE(rules_->withdraw(prefix("10.1.0.0/16"), RuleKind::classify, "fleet"));
    EXPECT_EQ(class_of("10.1.0.1"), 5);
}

TEST_F(SourceRulesTest, TheCodesTellWhatNeedsNoLookup) {
    const PrefixCodes codes(*tables_);
    const auto code = [&](std::string_view text) {
        return codes.code(address(text).ipv4_host_order());
    };
    ban("10.1.0.0/16");
    EXPECT_EQ(code("10.1.2.3"), SLUICE_CODE_BAN);
    EXPECT_EQ(code("10.2.0.0"), SLUICE_CODE_NONE);
    ban("10.1.2.3", 1h);
    EXPECT_EQ(code("10.1.2.3"), SLUICE_CODE_BAN);
    protect("10.1.3.3");
    EXPECT_EQ(code("10.1.3.9"), SLUICE_CODE_RULES);
    allow("10.1.4.0/24");
    EXPECT_EQ(code("10.1.4.1"), SLUICE_CODE_ALLOW);
    allow("10.1.4.7", {}, true);
    EXPECT_EQ(code("10.1.4.1"), SLUICE_CODE_RULES);
    ban("10.2.0.0/16", 1h);
    EXPECT_EQ(code("10.2.1.1"), SLUICE_CODE_RULES);
    ban("10.3.1.0/25");
    EXPECT_EQ(code("10.3.1.200"), SLUICE_CODE_RULES);
    EXPECT_EQ(code("10.3.2.0"), SLUICE_CODE_NONE);
    ASSERT_TRUE(rules_->unban(prefix("10.3.1.0/25")));
    EXPECT_EQ(code("10.3.1.200"), SLUICE_CODE_NONE);
}

// --- listing -----------------------------------------------------------------------------------

TEST_F(SourceRulesTest, TheListingSaysWhoAndWhy) {
    const std::string long_reason(400, 'x');
    ASSERT_TRUE(rules_->ban(
        prefix("192.0.2.1"),
        {.ttl = 1h, .list = "fail2ban:sshd", .reason = "5 failures", .actor = "root@host"}));
    ASSERT_TRUE(rules_->ban(prefix("10.0.0.0/16"), {.reason = long_reason, .actor = "amy"}));
    auto found = rules_->list(RuleKind::ban).value();
    ASSERT_EQ(found.rules.size(), 2U);
    EXPECT_EQ(found.rules[0].prefix, prefix("10.0.0.0/16"));
    EXPECT_EQ(found.rules[0].list, "operator");
    EXPECT_EQ(found.rules[0].actor, "amy");
    EXPECT_EQ(found.rules[0].reason, long_reason.substr(0, 115));
    EXPECT_EQ(found.rules[0].until_ns, SLUICE_NEVER);
    EXPECT_EQ(found.rules[1].list, "fail2ban:sshd");
    EXPECT_EQ(found.rules[1].actor, "root@host");
    EXPECT_EQ(found.rules[1].reason, "5 failures");
    EXPECT_EQ(found.rules[1].until_ns, 4600 * kSecond);
    EXPECT_NEAR(static_cast<double>(found.rules[1].since_s), static_cast<double>(::time(nullptr)),
                5);

    found = rules_->list(RuleKind::ban, "fail2ban:sshd", 1).value();
    EXPECT_EQ(found.total, 1U);
    EXPECT_EQ(rules_->list(RuleKind::ban, "nobody").value().total, 0U);
    EXPECT_EQ(rules_->list(RuleKind::ban, {}, 1).value().rules.size(), 1U);
    EXPECT_EQ(listed(RuleKind::allow), 0U);
    const auto why = rules_->lookup(address("192.0.2.1")).value();
    ASSERT_TRUE(why.deciding);
    EXPECT_EQ(why.deciding->listed.at(0).reason, "5 failures");
}

TEST_F(SourceRulesTest, AnotherWriterIsSeen) {
    ban("192.0.2.1");
    auto opened = Tables::open(pin_dir_);
    ASSERT_TRUE(opened);
    SourceRules other(*opened);
    ASSERT_TRUE(other.ban(prefix("192.0.2.2"), {.list = "another"}));
    ASSERT_TRUE(other.unban(prefix("192.0.2.1")));
    EXPECT_FALSE(banned("192.0.2.1"));
    EXPECT_EQ(rules_->list(RuleKind::ban, "another").value().total, 1U);
}

TEST_F(SourceRulesTest, ABadListNameIsRefused) {
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.1"), {.list = ""}));
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.1"), {.list = std::string(33, 'a')}));
    EXPECT_TRUE(rules_->ban(prefix("192.0.2.1"), {.list = std::string(32, 'a')}));
    EXPECT_EQ(rules_->list(RuleKind::ban).value().rules.at(0).list, std::string(32, 'a'));
    // The fleet's of the same name.
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.2"), {.list = fleet_list("")}));
    EXPECT_FALSE(rules_->ban(prefix("192.0.2.2"), {.list = fleet_list(std::string(33, 'a'))}));
    EXPECT_TRUE(rules_->ban(prefix("192.0.2.2"), {.list = fleet_list(std::string(32, 'a'))}));
}

TEST_F(SourceRulesTest, EmptyListsGiveTheirNamesAway) {
    for (int i = 0; i < 300; ++i) {
        const auto list = "f2b-" + std::to_string(i);
        ban("192.0.2.1", 1h, list);
        ASSERT_TRUE(rules_->unban(prefix("192.0.2.1"), list));
    }
}

TEST_F(SourceRulesTest, ABanByHandIsSeenAndLeftAlone) {
    sluice_manual_key key{};
    const auto bytes = address("192.0.2.66").bytes();
    std::copy(bytes.begin(), bytes.end(), key.address);
    const sluice_manual value{SLUICE_NEVER};
    ASSERT_EQ(bpf_map_update_elem(tables_->bans_manual.get(), &key, &value, BPF_ANY), 0);
    EXPECT_FALSE(banned("192.0.2.66"));
    tables_->bans_manual_on[0] = 1;
    EXPECT_TRUE(banned("192.0.2.66"));
    const auto unban = rules_->unban(prefix("192.0.2.66"));
    ASSERT_FALSE(unban);
    EXPECT_EQ(unban.error().code, ErrorCode::not_found);
    EXPECT_NE(unban.error().hint.find("bans_manual"), std::string::npos);
    allow("192.0.2.66");
    EXPECT_EQ(standing("192.0.2.66"), SourceStanding::allowed);
}

// --- full tables -------------------------------------------------------------------------------

TEST_F(SourceRulesTest, TablesGrowAndOverflowAndThenRefuse) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 16;  // 112 slots, 64 in the overflow
    sizes.rule_lines = 16;  // 64 slots, 64 in the overflow
    make_rules(sizes);
    std::vector<std::string> taken;
    Error last;
    for (int i = 0; i < 300; ++i) {
        const auto text = "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256);
        const auto done = rules_->ban(prefix(text), {});
        if (done)
            taken.push_back(text);
        else
            last = done.error();
    }
    EXPECT_GT(taken.size(), 112U);
    EXPECT_LE(taken.size(), 176U);
    EXPECT_NE(last.message.find("ban4_overflow"), std::string::npos) << last.message;
    EXPECT_NE(last.message.find("64"), std::string::npos) << last.message;
    for (const auto& text : taken)
        EXPECT_TRUE(banned(text)) << text;
    EXPECT_EQ(listed(), taken.size());
    expect_consistent();
    ASSERT_TRUE(rules_->unban(prefix(taken.front())));
    EXPECT_FALSE(banned(taken.front()));

    size_t rules = 0;
    for (int i = 0; i < 256; ++i) {
        const auto text = "2001:db8:" + std::to_string(i) + "::/64";
        if (rules_->ban(prefix(text), {}))
            ++rules;
        else
            EXPECT_FALSE(banned("2001:db8:" + std::to_string(i) + "::1"));
    }
    EXPECT_GT(rules, 64U);
    EXPECT_LE(rules, 128U);
    expect_consistent();
    ASSERT_TRUE(rules_->unban(prefix("::/0")));
    ASSERT_TRUE(rules_->unban(prefix("0.0.0.0/0")));
    EXPECT_EQ(rules_->counts().value().tables.front().used, 0U);
    const LineView view(tables_->settings().ban4_view, sizes.ban4_lines);
    for (uint32_t i = view.base(); i < view.base() + view.lines(); ++i)
        EXPECT_EQ(tables_->ban4_filter[i], 0U);
}

TEST_F(SourceRulesTest, AFullListingRefuses) {
    auto sizes = small_sizes();
    sizes.listing = 16;
    make_rules(sizes);
    for (int i = 0; i < 16; ++i)
        ban("192.0.2." + std::to_string(i));
    const auto refused = rules_->ban(prefix("192.0.2.99"), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("listing is full (16"), std::string::npos);
    EXPECT_FALSE(banned("192.0.2.99"));
    ban("192.0.2.3", 1h);
    expect_consistent();
}

// Hosts of IPv6 lie in a table of their own.
TEST_F(SourceRulesTest, AFullTableIsNamedWithItsUse) {
    make_rules(small_sizes());
    const auto use = [&](std::string_view name) {
        for (const auto& table : rules_->counts().value().tables)
            if (table.name == name)
                return table;
        return TableUse{};
    };
    EXPECT_EQ(use("rule_overflow").used, 0U);
    const uint64_t capacity = use("rule_overflow").capacity;
    ASSERT_EQ(capacity, rule_overflow_entries(tables_->sizes));
    const auto host = [](uint64_t i) {
        std::ostringstream text;
        text << "2001:db8::" << std::hex << i / 65536 << ':' << i % 65536;
        return text.str();
    };
    for (uint64_t i = 0; i < capacity; ++i)
        ban(host(i));
    EXPECT_EQ(use("rule_overflow").used, capacity);
    EXPECT_EQ(use("rule_lines").used, 0U);
    EXPECT_EQ(use("ban4_lines").used, 0U);
    EXPECT_EQ(use("listing").used, capacity);

    const auto refused = rules_->ban(prefix(host(capacity)), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("rule_overflow is full"), std::string::npos)
        << refused.error().message;
    EXPECT_NE(refused.error().hint.find("bans flush"), std::string::npos) << refused.error().hint;
    EXPECT_FALSE(banned(host(capacity)));
    for (uint64_t i = 0; i < capacity; ++i)
        EXPECT_TRUE(banned(host(i)));
    ban("192.0.2.1");
    EXPECT_EQ(use("ban4_lines").used, 1U);
}

TEST_F(SourceRulesTest, FullOfWhatHasExpiredIsNotFull) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 2;
    sizes.rule_lines = 2;
    sizes.listing = 70;
    make_rules(sizes);
    for (int i = 0; i < 64; ++i)
        ban("2001:db8::" + std::to_string(i), 10s);
    EXPECT_FALSE(rules_->ban(prefix("2001:db8:1::1"), {}));
    set_clock(2000);
    for (int i = 0; i < 64; ++i)
        ban("2001:db8:1::" + std::to_string(i), 10s);
    set_clock(3000);
    for (int i = 0; i < 64; ++i)
        ban("192.0.2." + std::to_string(i));
    expect_consistent();
}

TEST_F(SourceRulesTest, TooManyLengthsAreRefusedWithTheCount) {
    for (unsigned length = 33; length < 33 + SLUICE_MAX_LENGTHS; ++length)
        ban("2001:db8::/" + std::to_string(length));
    const auto refused = rules_->ban(prefix("2001:db8::/80"), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("33 different"), std::string::npos);
    EXPECT_EQ(listed(), SLUICE_MAX_LENGTHS);
    ASSERT_TRUE(rules_->unban(prefix("2001:db8::/64")).has_value() == false);
    ASSERT_TRUE(rules_->unban(prefix("2001:db8::/33")));
    EXPECT_EQ(tables_->settings().rule_lengths[1], 0U);
}

TEST_F(SourceRulesTest, LengthsStayLongestFirst) {
    for (const unsigned length : {20U, 24U, 16U, 28U, 12U, 30U, 22U})
        ban("10.64.0.0/" + std::to_string(length), 1h, "l" + std::to_string(length));
    const auto& gate = tables_->settings();
    ASSERT_EQ(gate.rule_lengths[0], 7);
    for (unsigned i = 1; i < 7; ++i)
        EXPECT_GT(gate.rule_length[0][i - 1], gate.rule_length[0][i]);
    ASSERT_TRUE(rules_->flush("l20"));
    ASSERT_TRUE(rules_->flush("l30"));
    ASSERT_EQ(gate.rule_lengths[0], 5);
    EXPECT_EQ(gate.rule_length[0][0], 96 + 28);
    EXPECT_EQ(gate.rule_length[0][4], 96 + 12);
}

}  // namespace

}  // namespace sluice
