// ban.lua, unban.lua, switch.lua and accept.lua one call at a time on a real server: what is
// stored, what is refused, what hosts hear of it.
#include <thread>

#include "fleet/feed_message.h"
#include "redis/script.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::RedisServer;
using redis::Command;
using redis::Reply;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;
using Outcome = FeedUnbanned::Outcome;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

class FeedScript : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(server_->url())).value());
    }
    Reply run(const Command& command) { return redis_->run(command).value(); }
    FeedBanned ban(std::string_view what, Ttl ttl = {}, std::string source = "operator",
                   RuleKind kind = RuleKind::ban) {
        const Reply reply = run(feed_ban_command(keys_, {.kind = kind,
                                                         .prefix = prefix(what),
                                                         .source = std::move(source),
                                                         .ttl = ttl,
                                                         .actor = "alice",
                                                         .reason = "a test"}));
        const auto banned = parse_feed_banned(reply);
        EXPECT_TRUE(banned) << banned.error().message;
        return banned ? *banned : FeedBanned();
    }
    FeedUnbanned unban(std::string_view what, std::optional<std::string> source = {},
                       RuleKind kind = RuleKind::ban) {
        FeedUnban wanted{.kind = kind, .prefix = prefix(what), .source = std::move(source)};
        const auto done = parse_feed_unbanned(run(feed_unban_command(keys_, wanted)));
        EXPECT_TRUE(done) << done.error().message;
        return done ? *done : FeedUnbanned();
    }
    std::vector<FeedEntry> feed() {
        return parse_feed_entries(run({"XREAD", "STREAMS", keys_.feed, "0"})).value();
    }
    FeedMeta meta() { return parse_feed_meta(run(feed_meta_command(keys_))).value(); }
    std::vector<FeedRecord> bucket(unsigned number) {
        std::vector<FeedRecord> records;
        const Reply reply = run({"HGETALL", keys_.bucket(number)});
        const auto fields = reply.as_array().value();
        for (size_t i = 0; i < fields.size(); i += 2)
            records.push_back(
                parse_feed_record(*fields[i].as_text(), *fields[i + 1].as_text()).value());
        return records;
    }
    std::optional<FeedRecord> stored(std::string_view what, std::string_view source = "operator",
                                     RuleKind kind = RuleKind::ban) {
        for (const FeedRecord& record : bucket(feed_bucket(prefix(what))))
            if (record.member == feed_member(kind, source, prefix(what)))
                return record;
        return std::nullopt;
    }
    // Whether the string of digests is what all buckets come to.
    void expect_true_digests() {
        const FeedDigests digests = parse_feed_digests(run({"GET", keys_.digest})).value();
        for (unsigned number = 0; number < kFeedBuckets; ++number) {
            uint16_t sum = 0;
            for (const FeedRecord& record : bucket(number))
                sum = static_cast<uint16_t>(sum + record.digest);
            ASSERT_EQ(digests[number], sum) << "bucket " << number;
        }
    }
    int64_t members() { return lab::number(run({"ZCARD", keys_.base + ":order"})); }

    FeedKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(FeedScript, ABanIsStoredAndAnnounced) {
    const FeedBanned banned = ban("192.0.2.7", 10min);
    EXPECT_TRUE(banned.added);
    const auto record = stored("192.0.2.7");
    ASSERT_TRUE(record);
    EXPECT_EQ(record->expires_ms, banned.expires_ms);
    EXPECT_EQ(record->actor, "alice");
    EXPECT_EQ(record->reason, "a test");
    EXPECT_EQ(record->rev, meta().rev);
    EXPECT_FALSE(meta().epoch.empty());
    const auto entries = feed();
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].rev, record->rev);
    const auto* announced = std::get_if<FeedRecord>(&entries[0].change);
    ASSERT_NE(announced, nullptr);
    EXPECT_EQ(announced->digest, record->digest);
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    EXPECT_NEAR(static_cast<double>(banned.expires_ms), static_cast<double>((now + 10min).count()),
                20'000);
    expect_true_digests();
}

TEST_F(FeedScript, OfOneSourceTheLongestHoldsOfSeveralEachItsOwn) {
    (void)ban("192.0.2.7", 1h);
    const FeedBanned shorter = ban("192.0.2.7", 1min);
    EXPECT_TRUE(shorter.kept_longer);
    EXPECT_EQ(feed().size(), 1U) << "nothing changed";
    EXPECT_FALSE(ban("192.0.2.7").kept_longer) << "for good is longer";
    EXPECT_TRUE(ban("192.0.2.7", 1h).kept_longer);
    EXPECT_TRUE(ban("192.0.2.7", 1min, "crowdsec").added);
    EXPECT_EQ(stored("192.0.2.7")->expires_ms, 0U);
    EXPECT_NE(stored("192.0.2.7", "crowdsec")->expires_ms, 0U);
    expect_true_digests();
}

TEST_F(FeedScript, AnUnbanTakesOneSourceOrAll) {
    for (const char* source : {"operator", "crowdsec", "risk"})
        (void)ban("192.0.2.7", 1h, source);
    const FeedUnbanned one = unban("192.0.2.7", "crowdsec");
    EXPECT_EQ(one.outcome, Outcome::done);
    EXPECT_EQ(one.removed, 1U);
    EXPECT_EQ(one.still_under, "192.0.2.7") << "two others ban it";
    EXPECT_FALSE(stored("192.0.2.7", "crowdsec"));
    const FeedUnbanned all = unban("192.0.2.7");
    EXPECT_EQ(all.removed, 2U);
    EXPECT_EQ(all.still_under, "");
    EXPECT_EQ(members(), 0);
    EXPECT_EQ(lab::number(run({"ZCARD", keys_.gone})), 3) << "each has its tombstone";
    EXPECT_EQ(unban("192.0.2.7").outcome, Outcome::missing);
    expect_true_digests();
}

TEST_F(FeedScript, AWiderUnbanTakesWhatIsInside) {
    for (const char* inside : {"10.1.0.0/16", "10.1.2.3", "10.1.255.255", "10.1.0.0"})
        (void)ban(inside);
    for (const char* outside : {"10.0.255.255", "10.2.0.0", "10.0.0.0/15"})
        (void)ban(outside, {}, "far");
    (void)unban("10.0.0.0/15", "far");
    for (const char* outside : {"10.0.255.255", "10.2.0.0"})
        (void)ban(outside, {}, "far");
    const FeedUnbanned done = unban("10.1.0.0/16");
    EXPECT_EQ(done.removed, 4U);
    EXPECT_EQ(members(), 2);
    expect_true_digests();
}

TEST_F(FeedScript, AWiderUnbanTakesWhatIsInsideAlsoOfIpv6) {
    for (const char* inside : {"2001:db8:1::/64", "2001:db8:1:ffff::/64", "2001:db8:1::7"})
        (void)ban(inside);
    (void)ban("2001:db8:2::/64");
    EXPECT_EQ(unban("2001:db8:1::/48").removed, 3U);
    EXPECT_EQ(members(), 1);
    expect_true_digests();
}

TEST_F(FeedScript, ANarrowerUnbanIsRefusedAndNamesTheCover) {
    (void)ban("10.0.0.0/8");
    (void)ban("10.1.0.0/16");
    (void)ban("2001:db8::/33");
    const FeedUnbanned refused = unban("10.1.2.3");
    EXPECT_EQ(refused.outcome, Outcome::covered);
    EXPECT_EQ(refused.still_under, "10.0.0.0/8") << "the widest";
    EXPECT_EQ(unban("2001:db8:1::/48").still_under, "2001:db8::/33");
    EXPECT_EQ(unban("10.1.0.0/16", "operator").outcome, Outcome::done)
        << "one source's own word can go, and it says what holds";
    EXPECT_EQ(unban("11.0.0.0/16").outcome, Outcome::missing);
    EXPECT_EQ(members(), 2);
    // An allow is no cover for a ban.
    (void)ban("198.51.100.0/24", {}, "operator", RuleKind::allow);
    EXPECT_EQ(unban("198.51.100.7").outcome, Outcome::missing);
}

TEST_F(FeedScript, ALargeUnbanTakesSeveralCallsAndIsAnnouncedOnce) {
    std::vector<Command> commands;
    for (unsigned i = 0; i < 2500; ++i)
        commands.push_back(feed_ban_command(
            keys_, {.prefix = Prefix::host(IpAddress::from_ipv4(0x0a010000U + i))}));
    ASSERT_TRUE(redis_->run(commands));
    const size_t before = feed().size();
    unsigned calls = 0;
    uint64_t removed = 0;
    FeedUnbanned done;
    do {
        done = unban("10.1.0.0/16");
        removed += done.removed;
        ++calls;
    } while (done.outcome == Outcome::more && calls < 10);
    EXPECT_EQ(removed, 2500U);
    EXPECT_EQ(calls, 3U);
    EXPECT_EQ(feed().size(), before + 1);
    EXPECT_EQ(members(), 0);
    expect_true_digests();
}

TEST_F(FeedScript, WhatIsOverIsClearedAwayAThousandAtATime) {
    std::vector<Command> commands;
    for (unsigned i = 0; i < 1500; ++i)
        commands.push_back(feed_ban_command(
            keys_, {.prefix = Prefix::host(IpAddress::from_ipv4(0x0a010000U + i)), .ttl = 1s}));
    const auto begun = std::chrono::steady_clock::now();
    ASSERT_TRUE(redis_->run(commands));
    std::this_thread::sleep_until(begun + 1s + (std::chrono::steady_clock::now() - begun) + 100ms);
    const int64_t before = members();
    ASSERT_GT(before, 1000) << "what the last of these calls left";
    (void)ban("192.0.2.1");
    EXPECT_EQ(members(), before - 1000 + 1);
    (void)ban("192.0.2.2");
    EXPECT_EQ(members(), 2);
    EXPECT_NE(meta().cleaned_ms, 0U);
    EXPECT_FALSE(stored("10.1.0.0"));
    EXPECT_EQ(lab::number(run({"ZCARD", keys_.gone})), 0) << "what ends by itself leaves no trace";
    expect_true_digests();
}

TEST_F(FeedScript, AnAllowIsReplacedAndIsNoBan) {
    EXPECT_TRUE(ban("192.0.2.7", 1h, "operator", RuleKind::allow).added);
    (void)ban("192.0.2.7", 1min, "operator", RuleKind::allow);
    const auto allow = stored("192.0.2.7", "operator", RuleKind::allow);
    ASSERT_TRUE(allow);
    EXPECT_EQ(allow->kind, RuleKind::allow);
    const auto first = std::get<FeedRecord>(feed().at(0).change);
    EXPECT_LT(allow->expires_ms, first.expires_ms);
    EXPECT_EQ(unban("192.0.2.7").outcome, Outcome::missing);
    EXPECT_EQ(unban("192.0.2.7", {}, RuleKind::allow).removed, 1U);
}

TEST_F(FeedScript, SwitchesHaveAStateAndAreAnnounced) {
    const auto set = [&](std::optional<Mode> mode, std::optional<std::chrono::nanoseconds> lasts) {
        return parse_feed_switched(
            run(feed_switch_command(keys_, "login.budget.data", mode, lasts, "alice", "why")));
    };
    EXPECT_EQ(*set(Mode::observe, {}), std::nullopt);
    EXPECT_EQ(*set(Mode::off, 10min), Mode::observe);
    const std::string value = lab::text(run({"HGET", keys_.switches, "login.budget.data"}));
    EXPECT_EQ(parse_feed_switch(value)->mode, Mode::off);
    EXPECT_EQ(parse_feed_switch(value)->reason, "why");
    EXPECT_EQ(*set({}, {}), Mode::off);
    EXPECT_EQ(*set({}, {}), std::nullopt) << "there was nothing to give back";
    const auto entries = feed();
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_FALSE(std::get<FeedSwitched>(entries[2].change).to);
}

TEST_F(FeedScript, RevsRiseOneByOneAndAlsoAfterAWipe) {
    (void)ban("192.0.2.1");
    (void)ban("192.0.2.2");
    (void)unban("192.0.2.1");
    std::vector<uint64_t> revs;
    for (const FeedEntry& entry : feed())
        revs.push_back(entry.rev);
    ASSERT_EQ(revs.size(), 3U);
    EXPECT_THAT(revs, ElementsAre(revs[0], revs[0] + 1, revs[0] + 2));
    const FeedMeta before = meta();
    (void)run({"FLUSHALL"});
    EXPECT_TRUE(meta().epoch.empty());
    (void)ban("192.0.2.3");
    EXPECT_NE(meta().epoch, before.epoch);
    EXPECT_GT(meta().rev, before.rev);
}

TEST_F(FeedScript, WhatIsLeftOfAnEvictedStateIsNoState) {
    (void)ban("192.0.2.1");
    const std::string before = meta().epoch;
    (void)run({"DEL", keys_.digest});
    (void)ban("192.0.2.2");
    EXPECT_NE(meta().epoch, before);
    EXPECT_FALSE(stored("192.0.2.1"));
    EXPECT_TRUE(stored("192.0.2.2"));
    expect_true_digests();
}

TEST_F(FeedScript, AnAcceptanceMakesTheDigestOfADamagedBucketTrue) {
    (void)ban("192.0.2.1");
    const unsigned damaged = feed_bucket(prefix("192.0.2.1"));
    (void)run({"DEL", keys_.bucket(damaged)});
    ASSERT_TRUE(run(feed_accept_command(keys_, std::span(&damaged, 1))).check());
    expect_true_digests();
    EXPECT_EQ(meta().accepted_rev, meta().rev);
    EXPECT_TRUE(std::holds_alternative<FeedAcceptance>(feed().back().change));
}

TEST_F(FeedScript, NonsenseIsRefusedAndChangesNothing) {
    (void)ban("192.0.2.1");
    const uint64_t rev = meta().rev;
    const auto refused = [&](std::initializer_list<std::string_view> words) {
        Command command = feed_ban_command(keys_, {.prefix = prefix("192.0.2.9")});
        Command bad = command.script()->call({keys_.base});
        for (const std::string_view word : words)
            bad.add(word);
        return run(bad).is_error();
    };
    const std::string place = "00000000000000000000ffffc000020980";
    EXPECT_TRUE(refused({}));
    EXPECT_TRUE(refused({"ban", "192.0.2.9", "c0", "operator", "0", "", "a", "r"}));
    EXPECT_TRUE(refused({"ban", "192.0.2.9", place, "Operator!", "0", "", "a", "r"}));
    EXPECT_TRUE(refused({"ban", "192.0.2.9", place, "operator", "-5", "", "a", "r"}));
    EXPECT_TRUE(refused({"ban", "192.0.2.9", place, "operator", "nan", "", "a", "r"}));
    EXPECT_TRUE(refused({"ban", "192.0.2.9", place, "operator", "0", "", "a", "two\nlines"}));
    EXPECT_TRUE(refused({"jail", "192.0.2.9", place, "operator", "0", "", "a", "r"}));
    EXPECT_FALSE(refused({"ban", "192.0.2.9", place, "operator", "0", "", "a", "r"}));
    EXPECT_EQ(meta().rev, rev + 1);
    expect_true_digests();
}

TEST_F(FeedScript, TheStreamIsCapped) {
    for (unsigned round = 0; round < 18; ++round) {
        std::vector<Command> commands;
        for (unsigned i = 0; i < 1000; ++i)
            commands.push_back(feed_switch_command(
                keys_, "gate", i % 2 == 0 ? Mode::off : Mode::observe, {}, "a", ""));
        ASSERT_TRUE(redis_->run(commands));
    }
    const int64_t length = lab::number(run({"XLEN", keys_.feed}));
    EXPECT_GE(length, 16'384);
    EXPECT_LT(length, 16'384 + 200) << "whole nodes of the stream are dropped";
}

}  // namespace
}  // namespace sluice
