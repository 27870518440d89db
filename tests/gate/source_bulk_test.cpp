// Many prefixes at once: imports, replaced lists, and what must not happen to live bans meanwhile.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include "gate/source_rules.h"
#include "test_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}
IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

// Distinct IPv4 addresses all over the space that is not 0/8.
Prefix nth_host(uint32_t n) {
    return Prefix::host(IpAddress::from_ipv4(0x01000000U + n * 2654435761U % 0xdf000000U));
}

std::vector<RuleEntry> hosts(uint32_t count) {
    std::vector<RuleEntry> entries;
    for (uint32_t i = 0; i < count; ++i)
        entries.push_back({.prefix = nth_host(i), .ttl = 24h});
    return entries;
}

// Of this process: what a busy machine adds to it is not ours.
std::chrono::nanoseconds cpu_time() {
    timespec used{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

class SourceBulkTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (!IsSkipped())
            make_rules(small_sizes());
    }
    void TearDown() override {
        rules_.reset();
        GateTest::TearDown();
    }
    void make_rules(const TableSizes& sizes) {
        rules_.reset();
        make_tables(sizes);
        rules_.emplace(*tables_);
    }
    bool banned(std::string_view text) {
        return rules_->lookup(address(text)).value().standing == SourceStanding::banned;
    }
    void expect_enforced(size_t count) {
        const auto counts = rules_->counts().value();
        EXPECT_EQ(counts.bans_wanted, count);
        EXPECT_EQ(counts.bans_enforced, count);
    }

    std::optional<SourceRules> rules_;
};

TEST_F(SourceBulkTest, AnImportSaysWhatBecameOfEachEntry) {
    ASSERT_TRUE(rules_->allow(prefix("198.51.100.0/24"), {}));
    ASSERT_TRUE(rules_->protect(prefix("203.0.113.1"), {}));
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.8"), {.ttl = 1min, .list = "feed"}));
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.9"), {.list = "feed"}));
    const std::vector<RuleEntry> entries = {
        {.prefix = prefix("192.0.2.1"), .ttl = 1h},
        {.prefix = prefix("192.0.2.1"), .ttl = 1min},
        {.prefix = prefix("2001:db8::/48")},
        {.prefix = prefix("192.0.2.2"), .ttl = -55min - 9s},
        {.prefix = prefix("192.0.2.3"), .ttl = 0s},
        {.prefix = prefix("198.51.100.7")},
        {.prefix = prefix("203.0.113.1")},
        {.prefix = prefix("203.0.113.0/24")},
        {.prefix = prefix("0.0.0.0/0")},
        {.prefix = prefix("192.0.2.8"), .ttl = 1h},
        {.prefix = prefix("192.0.2.9"), .ttl = 1h},
    };
    const auto done = rules_->import("feed", entries, {.reason = "list", .actor = "import"});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->added, 3U);
    EXPECT_EQ(done->changed, 1U);
    EXPECT_EQ(done->unchanged, 1U);
    EXPECT_EQ(done->duplicates, 1U);
    EXPECT_EQ(done->over, 2U);
    EXPECT_EQ(done->allowed.count, 1U);
    EXPECT_EQ(done->protected_.count, 1U);
    EXPECT_EQ(done->too_wide.count, 1U);
    EXPECT_EQ(done->too_wide.named, std::vector{prefix("0.0.0.0/0")});
    EXPECT_EQ(done->allowed.named, std::vector{prefix("198.51.100.7")});
    EXPECT_TRUE(banned("192.0.2.1"));
    EXPECT_FALSE(banned("192.0.2.2"));
    EXPECT_FALSE(banned("192.0.2.3"));
    EXPECT_FALSE(banned("198.51.100.7"));
    EXPECT_FALSE(banned("203.0.113.1"));
    EXPECT_TRUE(banned("203.0.113.2"));
    EXPECT_FALSE(banned("8.8.8.8"));
    EXPECT_EQ(rules_->list(RuleKind::ban, "feed").value().rules.at(0).reason, "list");
}

TEST_F(SourceBulkTest, ARehearsalCountsAndChangesNothing) {
    ASSERT_TRUE(rules_->allow(prefix("198.51.100.0/24"), {}));
    const std::vector<RuleEntry> entries = {{.prefix = prefix("192.0.2.0/24")},
                                            {.prefix = prefix("198.51.100.7")},
                                            {.prefix = prefix("0.0.0.0/0")}};
    const auto rehearsed = rules_->import("feed", entries, {.rehearse = true});
    ASSERT_TRUE(rehearsed);
    EXPECT_EQ(rehearsed->added, 1U);
    EXPECT_EQ(rehearsed->allowed.count, 1U);
    EXPECT_EQ(rehearsed->too_wide.count, 1U);
    EXPECT_FALSE(banned("192.0.2.1"));
    EXPECT_FALSE(rules_->knows_list("feed").value());

    ASSERT_TRUE(rules_->import("feed", entries, {}));
    EXPECT_EQ(rules_->import("feed", entries, {.rehearse = true})->unchanged, 1U);
    EXPECT_EQ(rules_->import("feed", entries, {.forced = true, .rehearse = true})->changed, 1U);
    EXPECT_FALSE(banned("203.0.113.1"));
}

TEST_F(SourceBulkTest, AnEmptyListIsKnown) {
    EXPECT_FALSE(rules_->knows_list("feed").value());
    EXPECT_FALSE(rules_->knows_list("").value());
    EXPECT_TRUE(rules_->knows_list(kOperatorList).value());
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.list = "feed"}));
    EXPECT_EQ(rules_->flush("feed").value(), 1U);
    EXPECT_TRUE(rules_->knows_list("feed").value());
    EXPECT_EQ(rules_->flush("feed").value(), 0U);
}

TEST_F(SourceBulkTest, AHundredThousandAreQuick) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 1U << 16;
    sizes.listing = 1U << 18;
    make_rules(sizes);
    const auto entries = hosts(100'000);
    const auto begin = cpu_time();
    const auto done = rules_->import("feed", entries, {});
    const auto took = cpu_time() - begin;
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->added, 100'000U);
    EXPECT_LT(took, 2s);
    RecordProperty("milliseconds", static_cast<int>(took / 1ms));
    // At most 2 MiB of lines, so that most of them stay in the cache.
    const LineView view(tables_->settings().ban4_view, sizes.ban4_lines);
    EXPECT_EQ(view.lines(), 1U << 15);
    expect_enforced(100'000);
    EXPECT_EQ(rules_->flush("feed").value(), 100'000U);
    expect_enforced(0);
}

TEST_F(SourceBulkTest, AMillionPrefixesFit) {
    make_rules({.source_sets = 64, .window_sets = 16});
    std::vector<RuleEntry> entries;
    for (uint32_t i = 0; i < 1'000'000; ++i) {
        const uint32_t address = 0x01000000U + i * 2654435761U % 0xdf000000U;
        const auto host = IpAddress::from_ipv4(address);
        entries.push_back({.prefix = Prefix::make(host, i % 2 == 0 ? 32 : 24 + i % 8).value(),
                           .ttl = i % 3 == 0 ? Ttl{} : Ttl{24h}});
    }
    const auto begin = cpu_time();
    const auto done = rules_->import("feed", entries, {});
    const auto took = cpu_time() - begin;
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_GT(done->added, 950'000U);
    EXPECT_LT(took, 15s);
    RecordProperty("milliseconds", static_cast<int>(took / 1ms));
    expect_enforced(done->added);
    for (uint32_t i = 0; i < 1'000'000; i += 9973)
        EXPECT_TRUE(banned(entries[i].prefix.address().to_string()));
}

TEST_F(SourceBulkTest, WhatDoesNotFitIsRefusedWhole) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 1024;  // 7,168 slots
    make_rules(sizes);
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {}));
    auto refused = rules_->import("feed", hosts(20'000), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("7168 entries"), std::string::npos)
        << refused.error().message;
    expect_enforced(1);
    EXPECT_TRUE(banned("192.0.2.1"));

    sizes = small_sizes();
    sizes.listing = 4096;
    make_rules(sizes);
    ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {}));
    refused = rules_->import("feed", hosts(5'000), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("4096"), std::string::npos) << refused.error().message;
    expect_enforced(1);
    EXPECT_EQ(rules_->counts().value().tables.front().used, 1U);
    // One by one the same.
    ASSERT_TRUE(rules_->import("feed", hosts(2'000), {}));
    std::vector<RuleEntry> more;
    for (uint32_t i = 2000; i < 4000; ++i)
        more.push_back({.prefix = nth_host(i)});
    ASSERT_TRUE(rules_->import("feed", more, {}));
    refused = rules_->import("other", hosts(1'000), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("4096"), std::string::npos) << refused.error().message;
    expect_enforced(4001);
    EXPECT_EQ(rules_->counts().value().tables.front().used, 4001U);
}

TEST_F(SourceBulkTest, AReplacedListIsExactlyTheNewOne) {
    ASSERT_TRUE(rules_->allow(prefix("10.9.0.0/16"), {}));
    const std::vector<RuleEntry> first = {
        {.prefix = prefix("10.0.0.0/16"), .kind = RuleKind::allow},
        {.prefix = prefix("10.1.0.0/16"), .kind = RuleKind::allow, .exempt = true},
        {.prefix = prefix("10.2.0.0/16"), .kind = RuleKind::classify, .source_class = 7},
        {.prefix = prefix("10.3.0.1"), .kind = RuleKind::protect},
    };
    auto done = rules_->replace_list(kPolicyList, first, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->added, 4U);
    const auto view = tables_->settings().rule_view;
    done = rules_->replace_list(kPolicyList, first, {});
    EXPECT_EQ(done->unchanged, 4U);
    EXPECT_EQ(tables_->settings().rule_view, view);  // nothing was touched

    const std::vector<RuleEntry> second = {
        {.prefix = prefix("10.0.0.0/16"), .kind = RuleKind::allow},
        {.prefix = prefix("10.1.0.0/16"), .kind = RuleKind::allow},
        {.prefix = prefix("10.2.0.0/17"), .kind = RuleKind::classify, .source_class = 8},
    };
    done = rules_->replace_list(kPolicyList, second, {});
    ASSERT_TRUE(done);
    EXPECT_EQ(done->unchanged, 1U);
    EXPECT_EQ(done->changed, 1U);
    EXPECT_EQ(done->added, 1U);
    EXPECT_EQ(done->removed, 2U);
    const auto standing = [&](std::string_view text) {
        return rules_->lookup(address(text)).value().standing;
    };
    EXPECT_EQ(standing("10.0.0.1"), SourceStanding::allowed);
    EXPECT_EQ(standing("10.1.0.1"), SourceStanding::allowed);
    EXPECT_EQ(standing("10.3.0.1"), SourceStanding::unknown);
    EXPECT_EQ(standing("10.9.0.1"), SourceStanding::allowed);
    EXPECT_EQ(rules_->lookup(address("10.2.0.1")).value().source_class, 8);
    EXPECT_EQ(rules_->lookup(address("10.2.128.1")).value().source_class, 0);
}

// With many lists there would be a look into each for every ban.
TEST_F(SourceBulkTest, AWidePrefixIsUnbannedAtOnce) {
    const auto entries = hosts(20'000);
    ASSERT_TRUE(rules_->import("feed", entries, {}));
    for (int i = 0; i < 8; ++i)
        ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.list = "f2b-" + std::to_string(i)}));
    ASSERT_TRUE(rules_->ban(prefix("198.51.100.0/24"), {.list = "f2b-0"}));
    const Prefix half = prefix("128.0.0.0/1");
    const size_t inside = rules_->bans_inside(half).value();
    EXPECT_GT(inside, 5'000U);
    const auto changes = tables_->settings().changes;
    EXPECT_EQ(rules_->unban(half).value().removed, inside);
    EXPECT_LE(tables_->settings().changes - changes, 2U) << "all or nothing";
    EXPECT_EQ(rules_->bans_inside(half).value(), 0U);
    EXPECT_FALSE(banned("192.0.2.1"));
    EXPECT_FALSE(banned("198.51.100.7"));
    expect_enforced(entries.size() + 9 - inside);
}

// A reader beside the writer, as the packet path is one.
// A writer that is killed leaves the listing and the tables apart; the next change mends that.
TEST_F(SourceBulkTest, TheNextChangeMendsWhatAKilledWriterLeft) {
    const auto entries = hosts(5'000);
    unsigned interrupted = 0;
    const auto kill_within = [&](std::chrono::microseconds delay, const auto& change) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            change();
            ::_exit(0);
        }
        std::this_thread::sleep_for(delay);
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, nullptr, 0), child);
        interrupted += tables_->settings().rules_dirty != 0 ? 1 : 0;
        ASSERT_TRUE(rules_->ban(prefix("192.0.2.1"), {.ttl = 1h}));
        EXPECT_EQ(tables_->settings().rules_dirty, 0U);
        const auto counts = rules_->counts().value();
        EXPECT_EQ(counts.bans_enforced, counts.bans_wanted);
        for (const RuleEntry& entry : {entries.front(), entries.back()}) {
            const auto found = rules_->lookup(entry.prefix.address()).value();
            const bool listed = !rules_->list(RuleKind::ban, "feed").value().rules.empty();
            // All of them are in the listing, or were on their way in or out.
            EXPECT_TRUE(listed || found.standing != SourceStanding::banned);
        }
    };
    const auto took = [](const auto& change) {
        const auto begun = std::chrono::steady_clock::now();
        change();
        return std::chrono::duration_cast<std::chrono::microseconds>(
            std::chrono::steady_clock::now() - begun);
    };
    const auto import = [&] { ASSERT_TRUE(rules_->import("feed", entries, {})); };
    const auto flush = [&] { ASSERT_TRUE(rules_->flush("feed")); };
    const auto import_took = took(import), flush_took = took(flush);
    // A child also has to fault in every page of the tables.
    constexpr int kRounds = 24, kSlower = 4;
    for (int round = 1; round <= kRounds && !HasFatalFailure(); ++round) {
        kill_within(kSlower * import_took * round / kRounds, import);
        import();
        expect_enforced(entries.size() + 1);
        kill_within(kSlower * flush_took * round / kRounds, flush);
        flush();
        expect_enforced(1);
    }
    EXPECT_GT(interrupted, 0U);
}

TEST_F(SourceBulkTest, ALiveBanNeverDisappears) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 1U << 14;
    sizes.rule_lines = 1U << 14;
    make_rules(sizes);
    const std::vector<Prefix> kept = {prefix("192.0.2.1"),      prefix("198.51.100.0/24"),
                                      prefix("203.0.113.0/25"), prefix("2001:db8::/32"),
                                      prefix("2001:db9::/48"),  prefix("2001:dba::1")};
    for (const auto& one : kept)
        ASSERT_TRUE(rules_->ban(one, {.ttl = 1h}));

    std::atomic<bool> stop = false;
    std::atomic<int> missed = 0;
    std::atomic<uint64_t> looks = 0;
    std::thread reader([&] {
        auto opened = Tables::open(pin_dir_);
        const RuleTables tables(*opened);
        while (!stop) {
            for (const auto& one : kept) {
                const auto key = RuleKey::of(one);
                bool found = false;
                for (const uint64_t value : tables.values(key))
                    found |= is_live(sluice_rule_until(value), gate_now_ns(*opened));
                const auto used = tables.lengths().in_use(one.family());
                found &= (one.is_host() && one.family() == Family::ipv4) ||
                         std::find(used.begin(), used.end(), key.length) != used.end();
                const auto& address = one.address();
                found &= one.family() == Family::ipv6 || key.is_ipv4_host() ||
                         tables.codes().code(address.ipv4_host_order()) != SLUICE_CODE_NONE;
                missed += found ? 0 : 1;
                ++looks;
            }
        }
    });
    for (int round = 0; round < 20; ++round) {
        for (const auto& one : kept)  // longer and longer
            ASSERT_TRUE(rules_->ban(one, {.ttl = 1h + std::chrono::minutes(round)}));
        ASSERT_TRUE(rules_->import("feed", hosts(3'000), {}));
        for (unsigned length = 9; length < 24; ++length)
            ASSERT_TRUE(
                rules_->ban(prefix("100.64.0.0/" + std::to_string(length)), {.list = "lengths"}));
        ASSERT_TRUE(rules_->flush("lengths"));
        ASSERT_TRUE(rules_->rebuild());
        ASSERT_TRUE(rules_->flush("feed"));
    }
    stop = true;
    reader.join();
    EXPECT_EQ(missed, 0);
    EXPECT_GT(looks, 1000U);
}

}  // namespace

}  // namespace sluice
