// A whole policy, compiled; and reports of limiters that went wrong, replayed against ours.
#include "policy/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sluice/event.h>
#include <sluice/hash.h>

#include "policy/gcra_bucket.h"
#include "policy/parse.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr HostFacts kHost{{4'000'000, 8'000'000}, 2};
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kStartNs = 7'000 * kSecondNs;

Policy parsed(std::string_view text) {
    auto policy = parse_policy(text, "sluice.toml");
    EXPECT_TRUE(policy) << (policy ? "" : policy.error().message);
    return policy ? *policy : Policy{};
}

constexpr std::string_view kShop = R"(
mode = "enforce"
interfaces = ["eth0"]
[sources]
ipv4_prefix = 32
ipv6_prefix = 64
on_table_full = "share"
[[service]]
name = "login"
match = ["tcp/443"]
mode = "observe"
modes = { "per_source.data" = "off" }
[service.per_source]
connections = { limit = 10, window = "60s" }
data = { rate = "60/s", burst = 120 }
bytes = "2MB/s"
on_excess = { jail = "30s", spoofable = true }
[service.per_prefix]
ipv4 = 20
connections = "500/s"
[service.budget]
data = "20000/s"
[[service]]
name = "dns"
match = ["udp/53"]
reply_exempt = false
[[class]]
name = "slow"
prefixes = ["198.51.100.0/24"]
scale = 0.5
[[class]]
name = "fast"
prefixes = ["192.0.2.0/24"]
scale = 3
)";
const ServiceIds kIds = {{"other", 0}, {"login", 7}, {"dns", 3}};

TEST(Compile, WholePolicy) {
    const auto compiled = compile(parsed(kShop), kIds, kHost);
    ASSERT_TRUE(compiled) << compiled.error().message;
    ASSERT_EQ(compiled->services.size(), 3U);
    const sluice_service& other = compiled->services[0];
    EXPECT_EQ(other.id, 0U);
    EXPECT_EQ(other.source_limits | other.prefix_limits | other.budget_limits, 0);
    EXPECT_EQ(other.flags, SLUICE_SERVICE_REPLY_EXEMPT);

    const sluice_service& login = compiled->services[1];
    EXPECT_EQ(login.id, 7U);
    EXPECT_EQ(login.source_limits, 1 << SLUICE_DATA | 1 << SLUICE_BYTES)
        << "a window is not a bucket";
    EXPECT_EQ(login.window.limit, 10U);
    EXPECT_NE(login.window.cell_ns, 0U) << "three times ten do not fit the log";
    EXPECT_EQ(login.prefix_limits, 1 << SLUICE_CONNECTIONS);
    EXPECT_EQ(login.budget_limits, 1 << SLUICE_DATA);
    EXPECT_EQ(login.jail_ns, 30 * kSecondNs);
    EXPECT_EQ(login.flags, SLUICE_SERVICE_SPOOFABLE) << "nothing answers to a server's one port";
    EXPECT_EQ(login.prefix_mask[0].low, 0xfffffffffffff000ULL);
    EXPECT_EQ(login.prefix_mask[0].high, ~0ULL);
    EXPECT_EQ(login.prefix_mask[1].high, 0xffffffffffff0000ULL);
    EXPECT_EQ(login.prefix_mask[1].low, 0U);
    EXPECT_EQ(compiled->services[2].id, 3U);
    EXPECT_EQ(compiled->services[2].flags, 0);
}

TEST(Compile, WhatAllServicesShare) {
    const auto compiled = compile(parsed(kShop), kIds, kHost);
    ASSERT_TRUE(compiled) << compiled.error().message;
    const sluice_policy& shared = compiled->shared;
    EXPECT_EQ(shared.source_mask[0].low, ~0ULL);
    EXPECT_EQ(shared.source_mask[1].high, ~0ULL);
    EXPECT_EQ(shared.source_mask[1].low, 0U);
    EXPECT_EQ(shared.share_on_full, 1U);
    EXPECT_EQ(shared.inverse_scale[0], SLUICE_SCALE_ONE);
    EXPECT_EQ(shared.inverse_scale[1], 2 * SLUICE_SCALE_ONE);
    EXPECT_EQ(shared.inverse_scale[2], SLUICE_SCALE_ONE / 3 + 1);
    EXPECT_EQ(shared.inverse_scale[255], SLUICE_SCALE_ONE);
    EXPECT_EQ(shared.port_classes, compiled->table.classes);
    EXPECT_EQ(shared.destination_lengths, 0U);
    EXPECT_EQ(shared.event_tokens_per_tick, 1024U) << "one event";
}

TEST(Compile, ASharedBudgetIsAHostsPartUntilItHasAShare) {
    Policy policy = parsed(kShop);
    policy.fleet.max_hosts = 4;
    Service& login = policy.services[0];
    login.budget = {{Dimension::data, TokenBucket{{1000, 1s}, 40}}};
    const auto alone = compile(policy, kIds, kHost);
    ASSERT_TRUE(alone) << alone.error().message;
    login.shared = true;
    const auto shared = compile(policy, kIds, kHost);
    ASSERT_TRUE(shared) << shared.error().message;
    const auto data = [](const CompiledPolicy& compiled) {
        return compiled.services[1].budget[SLUICE_DATA];
    };
    const auto flags = SLUICE_SERVICE_SHARED(SLUICE_DATA);
    EXPECT_EQ(alone->services[1].flags & flags, 0U);
    EXPECT_EQ(shared->services[1].flags & flags, flags);
    const auto unit_ns = [](const sluice_budget_limit& limit) {
        return static_cast<double>(limit.lease_ns) / limit.lease;
    };
    EXPECT_NEAR(unit_ns(data(*shared)), 4 * unit_ns(data(*alone)), 1);
    login.on_redis_loss = OnRedisLoss::open;
    const auto open = compile(policy, kIds, kHost);
    ASSERT_TRUE(open) << open.error().message;
    EXPECT_EQ(data(*open).burst_ns, 0U) << "no limit";
}

TEST(Compile, ErrorsNameServiceAndRule) {
    Policy policy = parsed(kShop);
    policy.services[0].per_source[Dimension::bytes] = TokenBucket{{2'000'000, 1s}, 100'000};
    const auto refused = compile(policy, kIds, kHost);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::usage);
    EXPECT_THAT(refused.error().message, HasSubstr("service \"login\": per_source.bytes: "));
    EXPECT_THAT(refused.error().hint, HasSubstr("131100"));
}

TEST(Compile, ClassesOutOfRangeAreRefused) {
    for (const double scale : {0.0, 1.0 / 65, 64.5, -1.0}) {
        Policy policy = parsed(kShop);
        policy.classes[0].scale = scale;
        EXPECT_FALSE(compile(policy, kIds, kHost)) << scale;
    }
}

TEST(Compile, ModesThatThePolicyLeavesOpenInherit) {
    const auto all = policy_modes(parsed(kShop));
    ASSERT_EQ(all.size(), 3U);
    EXPECT_EQ(all[0].service, "other");
    EXPECT_EQ(all[1].service, "login");
    EXPECT_EQ(all[1].mode, SLUICE_MODE_OBSERVE);
    EXPECT_EQ(all[1].rules[sluice_rule(SLUICE_PER_SOURCE, SLUICE_DATA)], SLUICE_MODE_OFF);
    EXPECT_EQ(all[1].rules[sluice_rule(SLUICE_BUDGET, SLUICE_DATA)], SLUICE_MODE_ENFORCE);
    EXPECT_EQ(all[2].mode, SLUICE_MODE_ENFORCE);
}

// --- reports of other limiters' bugs: same input, right outcome -------------------------------

GcraBucket source_of(uint64_t count, std::chrono::nanoseconds per, uint64_t burst) {
    const auto limit = compile_limit({{count, per}, burst}, Dimension::data, kHost.clock);
    EXPECT_TRUE(limit);
    return GcraBucket(limit ? *limit : sluice_limit{});
}

// The wall clock may step; the gate's time is monotonic and does not notice. Even if it did step,
// a source would be refused for no longer than the step, and a jump ahead is worth one burst.
TEST(ReportedRateBugs, ClockStepsBack) {
    GcraBucket source = source_of(10, 10s, 10);
    EXPECT_EQ(source.admit_of(kStartNs, 3), 3U);
    EXPECT_TRUE(source.admit(kStartNs + 1)) << "the wall clock went back 11 s, ours went on";
    EXPECT_EQ(source.admit_of(kStartNs + 2, 100), 6U);

    GcraBucket stepped = source_of(10, 10s, 10);
    EXPECT_EQ(stepped.admit_of(kStartNs, 3), 3U);
    (void)stepped.admit_of(kStartNs - 11 * kSecondNs, 100);
    EXPECT_LE(stepped.admit_of(kStartNs, 100), 7U);
    EXPECT_LE(stepped.admit_of(kStartNs + 3600 * kSecondNs, 100), 10U);
}

TEST(ReportedRateBugs, RefillMovesByWholeIntervals) {
    GcraBucket source = source_of(1, 10s, 5);
    EXPECT_EQ(source.admit_of(kStartNs, 100), 5U);
    EXPECT_EQ(source.admit_of(kStartNs + 25 * kSecondNs, 100), 2U);
    EXPECT_FALSE(source.admit(kStartNs + 29 * kSecondNs));
    EXPECT_TRUE(source.admit(kStartNs + 30 * kSecondNs));
    EXPECT_FALSE(source.admit(kStartNs + 30 * kSecondNs));
}

TEST(ReportedRateBugs, PollingFasterThanATokenDoesNotStarveTheRefill) {
    GcraBucket source = source_of(10, 1s, 10);
    EXPECT_EQ(source.admit_of(kStartNs, 100), 10U);
    uint64_t passed = 0;
    for (uint64_t ms = 10; ms <= 1000; ms += 10)
        passed += source.admit(kStartNs + ms * 1'000'000) ? 1 : 0;
    EXPECT_GE(passed, 9U);
    EXPECT_LE(passed, 10U);
}

TEST(ReportedRateBugs, IdleTimeOfAFullBucketIsNotCreditedLater) {
    GcraBucket source = source_of(3, 500ms, 3);
    uint64_t passed = 0;
    for (uint64_t ms = 0; ms < 50; ms += 15)
        passed += source.admit(kStartNs + 5 * kSecondNs + ms * 1'000'000) ? 1 : 0;
    EXPECT_EQ(passed, 3U);
}

TEST(ReportedRateBugs, BurstOrRateOfZeroIsRefused) {
    EXPECT_FALSE(compile_limit({{1, 1s}, 0}, Dimension::data, kHost.clock));
    EXPECT_FALSE(compile_limit({{0, 1s}, 1}, Dimension::data, kHost.clock));
    EXPECT_FALSE(compile_budget({{1, 1s}, 0}, Dimension::data, kHost.clock));
}

TEST(ReportedRateBugs, FirstOfOneInTenSecondsPasses) {
    for (const uint64_t start : {uint64_t{0}, uint64_t{1}, kStartNs, kStartNs + 1023}) {
        GcraBucket source = source_of(1, 10s, 1);
        EXPECT_TRUE(source.admit(start));
        EXPECT_FALSE(source.admit(start + 1));
        EXPECT_FALSE(source.admit(start + 10 * kSecondNs - 1'000'000));
        EXPECT_TRUE(source.admit(start + 10 * kSecondNs));
    }
}

}  // namespace
}  // namespace sluice
