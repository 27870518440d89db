// The state on disk: what is kept of it, while others write, and what is not believed.
#include "daemon/state_file.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "gate/test_gate.h"
#include "operate/protected_sources.h"
#include "unit/temp_folder.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

std::vector<RuleEntry> hosts(uint32_t count, Ttl ttl) {
    std::vector<RuleEntry> entries;
    for (uint32_t i = 0; i < count; ++i)
        entries.push_back(
            {.prefix = Prefix::host(IpAddress::from_ipv4(0xc612'0000U + i)), .ttl = ttl});
    return entries;
}

class StateFileTest : public GateTest {
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

    [[nodiscard]] std::string path() const { return folder_.path() + "/state"; }
    [[nodiscard]] std::string text() const {
        std::ifstream file(path());
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void write(const std::string& text) const { std::ofstream(path()) << text; }
    // What load() does not believe, or nothing.
    [[nodiscard]] std::string doubt() const {
        const auto loaded = state_.load();
        return loaded ? "" : loaded.error().message;
    }

    TempFolder folder_;
    StateFile state_{folder_.path()};
    std::optional<SourceRules> rules_;
};

TEST_F(StateFileTest, NothingIsThereBeforeTheFirstSave) {
    const auto loaded = state_.load();
    ASSERT_TRUE(loaded);
    EXPECT_TRUE(loaded->kept.rules.empty());
}

TEST_F(StateFileTest, WhoBannedWhomWhyAndForHowLong) {
    const std::string odd = "tab\there, line\nthere, back\\slash";
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.reason = odd, .actor = "alice"}));
    ASSERT_TRUE(rules_->ban(prefix("2001:db8::/48"), {.ttl = 1h, .list = "feed", .forced = true}));
    ASSERT_TRUE(rules_->allow(prefix("198.51.100.0/24"), {.exempt = true, .list = "office"}));
    ASSERT_TRUE(state_.save(*tables_));
    const auto state = state_.load();
    ASSERT_TRUE(state);

    make_tables(small_sizes());
    rules_.emplace(*tables_);
    EXPECT_EQ(restore_state(*tables_, *state).value(), 3U);
    const auto bans = rules_->list(RuleKind::ban).value().rules;
    ASSERT_EQ(bans.size(), 2U);
    const auto& feed = bans[bans[0].list == "feed" ? 0 : 1];
    const auto& own = bans[bans[0].list == "feed" ? 1 : 0];
    EXPECT_EQ(own.prefix, prefix("192.0.2.1"));
    EXPECT_EQ(own.list, kOperatorList);
    EXPECT_EQ(own.actor, "alice");
    EXPECT_EQ(own.reason, odd);
    EXPECT_EQ(own.until_ns, SLUICE_NEVER);
    EXPECT_EQ(feed.prefix, prefix("2001:db8::/48"));
    EXPECT_TRUE(feed.forced);
    EXPECT_EQ(feed.actor, "");
    const uint64_t now = gate_now_ns(*tables_);
    EXPECT_LE(feed.until_ns, now + std::chrono::nanoseconds(1h).count());
    EXPECT_GT(feed.until_ns, now + std::chrono::nanoseconds(50min).count());
    const auto allows = rules_->list(RuleKind::allow).value().rules;
    ASSERT_EQ(allows.size(), 1U);
    EXPECT_TRUE(allows[0].exempt);
    EXPECT_EQ(allows[0].list, "office");
}

TEST_F(StateFileTest, WhatOthersBringAgainIsNotKept) {
    ASSERT_TRUE(rules_->allow(prefix("192.0.2.1"), {.list = std::string(kPolicyList)}));
    ASSERT_TRUE(rules_->protect(prefix("192.0.2.2"), {.list = std::string(kPolicyList)}));
    ASSERT_TRUE(rules_->classify(prefix("192.0.2.3"), {.source_class = 1}));
    ASSERT_TRUE(rules_->protect(prefix("192.0.2.4"), {.ttl = 1h, .list = std::string(kGrace)}));
    ASSERT_TRUE(state_.save(*tables_));
    const auto state = state_.load();
    ASSERT_TRUE(state);
    ASSERT_EQ(state->kept.rules.size(), 1U);
    EXPECT_EQ(state->kept.rules[0].entry.prefix, prefix("192.0.2.4"));
}

// More than is read or written in one piece.
TEST_F(StateFileTest, ManyRulesOfFewLists) {
    const auto entries = hosts(15'000, {});
    for (const char* list : {"one", "two"})
        ASSERT_TRUE(rules_->import(list, entries, {.reason = "noise", .actor = "feeds"}));
    ASSERT_TRUE(state_.save(*tables_));
    const auto state = state_.load();
    ASSERT_TRUE(state);
    EXPECT_EQ(state->kept.rules.size(), 30'000U);
    EXPECT_EQ(state->kept.origins.size(), 2U);

    make_tables(small_sizes());
    rules_.emplace(*tables_);
    EXPECT_EQ(restore_state(*tables_, *state).value(), 30'000U);
    EXPECT_EQ(rules_->counts().value().bans_enforced, 15'000U);
    EXPECT_EQ(rules_->list(RuleKind::ban, "two").value().total, 15'000U);
}

TEST_F(StateFileTest, WhatIsNotWholeIsSetAside) {
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {}));
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.2"), {}));
    ASSERT_TRUE(state_.save(*tables_));
    const std::string whole = text();
    const auto doubted = [&](const std::string& instead) {
        write(instead);
        return doubt();
    };
    EXPECT_EQ(doubted(whole), "");
    for (size_t kept = 1; kept < whole.size(); ++kept)
        EXPECT_NE(doubted(whole.substr(0, kept)), "") << "cut after " << kept << " bytes";
    EXPECT_THAT(doubted(whole.substr(0, whole.size() / 2)),
                ::testing::HasSubstr("its end is missing"));
    EXPECT_THAT(doubted(whole.substr(0, whole.size() - 1)),
                ::testing::HasSubstr("its end is missing"));
    std::string other = whole;
    other[whole.find("192.0.2.1") + 8] = '9';
    EXPECT_THAT(doubted(other), ::testing::HasSubstr("its checksum is wrong"));
    for (const char* more : {"x", "\n", "ban\n"})
        EXPECT_THAT(doubted(whole + more), ::testing::HasSubstr("behind its end")) << more;
    EXPECT_THAT(doubted(std::string(1U << 20, 'x')), ::testing::HasSubstr("too long"));
    EXPECT_THAT(doubted("sluice-state 10" + whole.substr(14)),
                ::testing::HasSubstr("not a state of this version"));
    EXPECT_THAT(doubted(""), ::testing::HasSubstr("not a state of this version"));
    EXPECT_FALSE(std::filesystem::exists(path())) << "it is out of the way of the next save";
}

// Whoever was told of a ban before a save began finds it in the file, whatever else is changed
// meanwhile.
TEST_F(StateFileTest, ASaveMissesNothingThatStays) {
    constexpr size_t kStaying = 5'000;
    constexpr int kRounds = 60;  // fewer than there can be lists
    ASSERT_TRUE(rules_->import("stays", hosts(kStaying, 1h), {}));
    std::atomic<bool> done = false;
    std::jthread writer([&] {
        SourceRules others(*tables_);
        for (int round = 0; round < kRounds; ++round) {
            // Deadlines that change, and lists that are new to whoever began to read before.
            const std::string list = "list-" + std::to_string(round);
            const Ttl longer = 2h + std::chrono::seconds(round);
            EXPECT_TRUE(others.import("stays", hosts(100, longer), {.reason = list}));
            EXPECT_TRUE(others.import(list, hosts(100, 1h), {.reason = list}));
            EXPECT_TRUE(others.flush(list));
        }
        done = true;
    });
    while (!done) {
        EXPECT_TRUE(state_.save(*tables_));
        const SavedState state = state_.load().value();
        size_t stayed = 0;
        for (const KeptRule& rule : state.kept.rules) {
            const std::string& list = state.kept.origins[rule.origin].list;
            EXPECT_FALSE(list.empty());
            stayed += list == "stays" ? 1 : 0;
        }
        EXPECT_EQ(stayed, kStaying);
    }
}

}  // namespace

}  // namespace sluice
