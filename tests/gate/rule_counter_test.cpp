#include "gate/rule_counter.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "gate/listing.h"
#include "test_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

class RuleCounterTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (!IsSkipped())
            begin();
    }
    void begin() {
        make_tables(small_sizes());
        tables_->settings().test_now_ns = 1'000'000'000'000;
    }
    void ban(std::string_view text, Ttl ttl) {
        ASSERT_TRUE(SourceRules(*tables_).ban(prefix(text), {.ttl = ttl}));
    }
    size_t wanted() { return counter_.of(*tables_).value().bans_wanted; }
    // As no writer does: without a word to anybody.
    void lose(std::string_view text) {
        for (const Member& member : Listing(*tables_).all().value())
            if (member.prefix() == prefix(text)) {
                ASSERT_EQ(bpf_map_delete_elem(tables_->listing.get(), &member.key), 0);
            }
    }

    RuleCounter counter_;
};

TEST_F(RuleCounterTest, CountsAnewWhatChanged) {
    EXPECT_EQ(wanted(), 0U);
    ban("192.0.2.1", 1h);
    EXPECT_EQ(wanted(), 1U);
    ban("192.0.2.2", {});
    EXPECT_EQ(wanted(), 2U);
    ASSERT_TRUE(SourceRules(*tables_).unban(prefix("192.0.2.2")));
    const RuleCounts counts = counter_.of(*tables_).value();
    EXPECT_EQ(counts.bans_wanted, 1U);
    EXPECT_EQ(counts.bans_enforced, 1U);
    EXPECT_EQ(counts.tables.front().used, 1U);
}

TEST_F(RuleCounterTest, RemembersWhereNothingDid) {
    ban("192.0.2.1", 1h);
    ban("192.0.2.2", {});
    EXPECT_EQ(wanted(), 2U);
    lose("192.0.2.2");
    EXPECT_EQ(wanted(), 2U);
    EXPECT_EQ(RuleCounter().of(*tables_).value().bans_wanted, 1U);
    // A writer that was killed may have left anything.
    tables_->settings().rules_dirty = 1;
    EXPECT_EQ(wanted(), 1U);
}

TEST_F(RuleCounterTest, CountsAnewWhatEnds) {
    ban("192.0.2.1", 1h);
    ban("192.0.2.2", {});
    EXPECT_EQ(wanted(), 2U);
    tables_->settings().test_now_ns += 3'601'000'000'000;
    EXPECT_EQ(wanted(), 1U);
    // It stands in the listing until it is swept, which nobody counts as a change.
    EXPECT_EQ(counter_.of(*tables_).value().tables.front().used, 2U);
    ASSERT_TRUE(SourceRules(*tables_).sweep_some());
    EXPECT_EQ(counter_.of(*tables_).value().tables.front().used, 2U);
    tables_->settings().test_now_ns += 5'000'000'000;
    EXPECT_EQ(counter_.of(*tables_).value().tables.front().used, 1U);
}

TEST_F(RuleCounterTest, TellsGatesApart) {
    ban("192.0.2.1", {});
    ban("192.0.2.2", {});
    EXPECT_EQ(wanted(), 2U);
    begin();
    ban("192.0.2.1", {});
    tables_->settings().changes++;
    EXPECT_EQ(wanted(), 1U);
}

TEST_F(RuleCounterTest, LooksAtBansByHandEachTime) {
    EXPECT_EQ(counter_.of(*tables_).value().bans_by_hand, 0U);
    sluice_manual_key key{};
    const auto bytes = prefix("192.0.2.9").address().bytes();
    std::copy(bytes.begin(), bytes.end(), key.address);
    const sluice_manual for_good{SLUICE_NEVER};
    ASSERT_EQ(bpf_map_update_elem(tables_->bans_manual.get(), &key, &for_good, BPF_ANY), 0);
    tables_->bans_manual_on[0] = 1;
    EXPECT_EQ(counter_.of(*tables_).value().bans_by_hand, 1U);
}

}  // namespace

}  // namespace sluice
