// Which part of a configuration is a fleet's, and what a host makes of both.
#include "policy/fleet_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/capacity.h"
#include "policy/config_text.h"
#include "policy/parse.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ConfigTable tree(std::string_view text, std::string_view name = "test.toml") {
    return read_toml(text, name).value();
}

constexpr std::string_view kHost = R"(
mode = "observe"
interfaces = ["eth0"]
[sources]
capacity = 5_000
ipv4_prefix = 24
allow = ["192.0.2.1", { prefix = "192.0.2.2", exempt = true }]
[[service]]
name = "own"
match = ["tcp/1"]
[redis]
url = "redis://127.0.0.1"
[fleet]
name = "shop"
max_hosts = 4
)";

constexpr std::string_view kFleet = R"(
[sources]
ipv6_prefix = 56
allow = ["192.0.2.2", "198.51.100.0/24"]
[[service]]
name = "web"
match = ["tcp/443"]
[service.budget]
data = "100/s"
[[class]]
name = "far"
prefixes = ["203.0.113.0/24"]
scale = 0.5
)";

Policy both(std::string_view fleet) {
    const auto policy = read_policy(with_fleet_part(tree(kHost), tree(fleet)), "test.toml");
    EXPECT_TRUE(policy) << policy.error().message;
    return policy ? *policy : Policy{};
}

TEST(FleetPart, WhatIsAHostsOwnStaysOutAndIsNamedWithItsPlace) {
    const FleetPart part = fleet_part(
        tree("mode = 'enforce'\ninterfaces = ['eth0']\n[sources]\ncapacity = 5\nipv4_prefix = 24\n"
             "[redis]\nurl = 'redis://a'\n[[service]]\nname = 'web'\nmatch = ['tcp/443']\n",
             "sluice.toml"));
    EXPECT_THAT(part.left_out,
                ElementsAre("sluice.toml:2:1: interfaces: is each host's own, and stays out",
                            "sluice.toml:6:2: redis: is each host's own, and stays out",
                            "sluice.toml:4:1: sources.capacity: is each host's own, and stays "
                            "out"));
    EXPECT_EQ(config_text(part.policy),
              "mode = \"enforce\"\n\n[sources]\nipv4_prefix = 24\n\n[[service]]\nname = \"web\"\n"
              "match = [\"tcp/443\"]\n");
}

TEST(FleetPart, AMistypedKeyIsNotLeftOutButRefused) {
    const FleetPart part = fleet_part(tree("servise = []\n"));
    EXPECT_THAT(part.left_out, IsEmpty());
    const auto policy = read_policy(with_fleet_part(tree(kHost), part.policy), "x");
    ASSERT_FALSE(policy);
    EXPECT_THAT(policy.error().message, HasSubstr("test.toml:1:1: servise: unknown key"));
}

TEST(FleetPart, TakesThePlaceOfAHostsOwnPolicyAndOfNothingElse) {
    const Policy policy = both(kFleet);
    ASSERT_EQ(policy.services.size(), 1U);
    EXPECT_EQ(policy.services[0].name, "web");
    EXPECT_TRUE(policy.services[0].shared) << "the host has a fleet";
    EXPECT_EQ(policy.classes.size(), 1U);
    EXPECT_THAT(policy.interfaces, ElementsAre("eth0"));
    EXPECT_EQ(policy.sources.capacity, 5'000U);
    EXPECT_EQ(policy.sources.ipv4_prefix, 32U) << "the host's own is of its own policy";
    EXPECT_EQ(policy.sources.ipv6_prefix, 56U);
    EXPECT_EQ(policy.fleet.name, "shop");
    EXPECT_TRUE(policy.redis);
}

TEST(FleetPart, AHostsModeHoldsWhereTheFleetNamesNone) {
    EXPECT_EQ(both(kFleet).mode, Mode::observe);
    EXPECT_EQ(both("mode = 'enforce'\n" + std::string(kFleet)).mode, Mode::enforce);
}

TEST(FleetPart, AHostsOwnAllowsStayAndItsWordAboutOneHolds) {
    std::vector<std::pair<std::string, bool>> allows;
    for (const Allow& allow : both(kFleet).sources.allow)
        allows.emplace_back(allow.prefix.to_string(), allow.exempt);
    EXPECT_THAT(allows, ElementsAre(std::pair("192.0.2.1", false), std::pair("192.0.2.2", true),
                                    std::pair("198.51.100.0/24", false)));
}

TEST(Capacity, NamesEveryBudgetAboveIt) {
    const auto policy = parse_policy(
        "[[service]]\nname = 'web'\nmatch = ['tcp/443']\n[service.budget]\ndata = '100/s'\n"
        "bytes = '3MB/s'\nconnections = '10/s'\n"
        "capacity = { data = '80/s', bytes = '2MB/s', connections = '600/m' }\n",
        "x");
    ASSERT_TRUE(policy) << policy.error().message;
    const auto above = above_capacity(*policy);
    EXPECT_THAT(above, ElementsAre("web.budget.data = 100/s is above its capacity of 80/s",
                                   "web.budget.bytes = 3MB/s is above its capacity of 2MB/s"));
    EXPECT_EQ(policy->warnings, above);
}

}  // namespace
}  // namespace sluice
