// What the policy of a limiter of requests means as limits of a source.
#include "fleet/rl_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr RlNumbers kTenAMinute{
    .window_ms = 60'000, .limit = 10, .bucket_cap = {}, .bucket_rate = {}};
constexpr RlNumbers kFiveASecond{.window_ms = {}, .limit = {}, .bucket_cap = 20, .bucket_rate = 5};

RlSettings settings(std::optional<double> users = std::nullopt) {
    RlSettings made;
    made.users_per_source = users;
    return made;
}
RlService one(const RlNumbers& numbers, const RlSettings& how = settings()) {
    return translate("login", {{.route = "login", .base = numbers}}, how);
}
Limit window(uint64_t limit, std::chrono::nanoseconds length) {
    return StrictWindow{limit, length};
}

TEST(RlPolicy, AWindowOfRequestsIsOneOfConnectionsWithHeadroom) {
    const RlService service = one(kTenAMinute);
    ASSERT_TRUE(service.ceiling);
    EXPECT_EQ(service.ceiling->connections, window(20, 60s));
    EXPECT_EQ(service.ceiling->data.burst, 40U);
    EXPECT_EQ(format_rate(service.ceiling->data.rate), "40/m");
    EXPECT_EQ(service.there, "10 requests/60 s per user");
    EXPECT_EQ(ceiling_text(*service.ceiling),
              "20 new connections/60 s per address, data 40/m (burst 40)");
    EXPECT_THAT(service.notes, IsEmpty());
}

TEST(RlPolicy, ABucketOfRequestsIsABucketOfConnections) {
    const RlService service = one(kFiveASecond);
    ASSERT_TRUE(service.ceiling);
    EXPECT_EQ(service.ceiling->connections, Limit(TokenBucket{{10, 1s}, 40}));
    EXPECT_EQ(service.ceiling->data, (TokenBucket{{20, 1s}, 80}));
    EXPECT_EQ(service.there, "5 requests/s (burst 20) per user");
}

TEST(RlPolicy, ASourceHasItsUsers) {
    EXPECT_EQ(one(kTenAMinute, settings(3)).ceiling->connections, window(60, 60s));
    EXPECT_EQ(one(kFiveASecond, settings(2.5)).ceiling->connections,
              Limit(TokenBucket{{25, 1s}, 100}));
}

TEST(RlPolicy, OfAWindowAndABucketTheStricterInTheLongRunCounts) {
    RlNumbers both = kTenAMinute;
    both.bucket_cap = 20, both.bucket_rate = 5;
    EXPECT_EQ(one(both).ceiling->connections, window(20, 60s));
    both.limit = 1000;
    EXPECT_EQ(one(both).ceiling->connections, Limit(TokenBucket{{10, 1s}, 40}));
}

TEST(RlPolicy, FractionsAreRoundedUp) {
    EXPECT_EQ(one({.window_ms = {}, .limit = {}, .bucket_cap = 1.5, .bucket_rate = 0.5})
                  .ceiling->connections,
              Limit(TokenBucket{{1, 1s}, 3}));
    const auto slow = one({.window_ms = {}, .limit = {}, .bucket_cap = {}, .bucket_rate = 0.0033});
    EXPECT_EQ(limit_toml(slow.ceiling->connections), "{ rate = \"0.396/m\", burst = 2 }");
    const auto fast = one({.window_ms = {}, .limit = {}, .bucket_cap = {}, .bucket_rate = 1.3335});
    EXPECT_EQ(limit_toml(fast.ceiling->connections), "{ rate = \"2.667/s\", burst = 3 }");
}

TEST(RlPolicy, AWindowThatTheGateCannotHoldIsTheBucketThatLetsAsMuchThrough) {
    // A day; and more than a window counts.
    EXPECT_EQ(one({.window_ms = 86'400'000, .limit = 1000, .bucket_cap = {}, .bucket_rate = {}})
                  .ceiling->connections.index(),
              0U);
    const auto large =
        one({.window_ms = 1000, .limit = 100'000, .bucket_cap = {}, .bucket_rate = {}});
    EXPECT_EQ(large.ceiling->connections, Limit(TokenBucket{{200'000, 1s}, 200'000}));
}

TEST(RlPolicy, WhatTheGateCannotHoldAtAllIsNotTaken) {
    const auto service =
        one({.window_ms = {}, .limit = {}, .bucket_cap = 1e9, .bucket_rate = 0.001});
    EXPECT_FALSE(service.ceiling);
    EXPECT_THAT(service.notes, ElementsAre(HasSubstr("than the gate can hold")));
}

TEST(RlPolicy, EachNumberIsInherited) {
    const RlNumbers asn{.window_ms = {}, .limit = 5, .bucket_cap = {}, .bucket_rate = {}};
    const RlNumbers base{.window_ms = 1000, .limit = 7, .bucket_cap = {}, .bucket_rate = {}};
    const RlNumbers local{.window_ms = 2000, .limit = 9, .bucket_cap = 3, .bucket_rate = {}};
    EXPECT_EQ(inherit(asn, inherit(base, local)),
              (RlNumbers{.window_ms = 1000, .limit = 5, .bucket_cap = 3, .bucket_rate = {}}));
}

TEST(RlPolicy, WhatIsMissingComesFromTheGatewaysOwn) {
    RlSettings how = settings();
    const RlNumbers half{.window_ms = {}, .limit = 10, .bucket_cap = {}, .bucket_rate = {}};
    EXPECT_THAT(one(half, how).notes, ElementsAre(HasSubstr("neither limit with window_ms")));
    how.local.window_ms = 60'000;
    EXPECT_EQ(one(half, how).ceiling->connections, window(20, 60s));
}

// Nobody here knows a source's AS.
TEST(RlPolicy, TheMostLenientOfARoutesPoliciesIsEverybodysCeiling) {
    const RlNumbers more{.window_ms = {}, .limit = 50, .bucket_cap = {}, .bucket_rate = {}};
    const RlNumbers less{.window_ms = {}, .limit = 1, .bucket_cap = {}, .bucket_rate = {}};
    const auto service = translate(
        "login",
        {{.route = "login", .base = kTenAMinute, .asns = {{64'496, more}, {64'511, less}}}},
        settings());
    EXPECT_EQ(service.ceiling->connections, window(100, 60s));
    EXPECT_THAT(service.notes,
                ElementsAre(AllOf(HasSubstr("AS 64496: 50 requests/60 s"), HasSubstr("everybody")),
                            AllOf(HasSubstr("AS 64511: 1 requests/60 s"), HasSubstr("alone"))));
}

TEST(RlPolicy, RoutesOfOneServiceAddUp) {
    RlNumbers other = kTenAMinute;
    other.limit = 30;
    const auto alike = translate(
        "web", {{.route = "login", .base = kTenAMinute}, {.route = "search", .base = other}},
        settings());
    EXPECT_EQ(alike.ceiling->connections, window(80, 60s));
    EXPECT_EQ(alike.there, "10 requests/60 s + 30 requests/60 s per user");
    EXPECT_THAT(alike.notes, ElementsAre(HasSubstr("add up")));
    // A window and a bucket are together a bucket.
    const auto unlike = translate(
        "web", {{.route = "login", .base = kFiveASecond}, {.route = "search", .base = other}},
        settings());
    EXPECT_EQ(unlike.ceiling->connections, Limit(TokenBucket{{11, 1s}, 100}));
    // Of one nothing is known: neither is of what the service may get.
    const auto half = translate(
        "web", {{.route = "login", .base = kTenAMinute}, {.route = "search"}}, settings());
    EXPECT_FALSE(half.ceiling);
    EXPECT_THAT(half.notes, ElementsAre(HasSubstr("not all of its routes")));
}

TEST(RlPolicy, HostileValuesAreNamed) {
    const std::string huge(100'000, '9');
    for (const std::string& text :
         {std::string("nan"), std::string("inf"), std::string("-1"), std::string("+1"),
          std::string("1e9"), std::string(""), std::string(" 10"), std::string("10 "),
          std::string("0x10"), std::string("10.5"), std::string("1.2.3"), std::string("."),
          std::string("0"), std::string("99999999999"), std::string("\0", 1), huge}) {
        const auto numbers = parse_rl_numbers({std::nullopt, text, std::nullopt, std::nullopt});
        ASSERT_FALSE(numbers) << text.substr(0, 20);
        EXPECT_THAT(numbers.error().message, HasSubstr("limit = "));
        EXPECT_LT(numbers.error().message.size(), 200U);
        EXPECT_THAT(numbers.error().hint, HasSubstr("a whole number from 1 to 1000000000"));
    }
    for (const char* text : {"0", "nan", "-0.5", "0.0001", "2000000000"})
        EXPECT_FALSE(parse_rl_numbers({std::nullopt, std::nullopt, std::nullopt, text})) << text;
    for (const char* text : {"1", "259200000", "0.5"})
        EXPECT_FALSE(parse_rl_numbers({text, std::nullopt, std::nullopt, std::nullopt})) << text;
    const auto good = parse_rl_numbers({"60000.0", "10", "2.5", "0.25"});
    ASSERT_TRUE(good) << good.error().message;
    EXPECT_EQ(format_rl_numbers(*good), "window_ms=60000 limit=10 bucket_cap=2.5 bucket_rate=0.25");
    EXPECT_EQ(parse_rl_numbers({}).value(), RlNumbers());
}

TEST(RlPolicy, KeysAndStamps) {
    EXPECT_EQ(rl_policy_key("login"), "policy:login");
    EXPECT_EQ(rl_asn_key("login", 64'496), "policy:login:asn:64496");
    EXPECT_EQ(rl_dated_key("login", "2026120118"), "policy:login:2026120118");
    EXPECT_TRUE(is_rl_stamp("2026120118"));
    for (const char* text :
         {"", "20261201", "2026130118", "2026120024", "2026120018", "2026-12-01", "20261201180"})
        EXPECT_FALSE(is_rl_stamp(text)) << text;
}

}  // namespace
}  // namespace sluice
