// What a host makes of a version of the fleet's policy, with the overrides that there are.
#include "fleet/fleet_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/parse.h"
#include "policy/written_rate.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kText =
    "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.per_source]\nconnections = "
    "\"10/s\"\n[service.budget]\ndata = \"100/s\"\n";

PolicyOverride of(const std::string& service, const std::string& key, const std::string& value,
                  bool by_fleet) {
    return {.change = {service, {{key, value}}},
            .until_ms = 1,
            .actor = "alice",
            .reason = "",
            .by_fleet = by_fleet};
}

std::string rate(const Policy& policy, Scope scope, Dimension dimension) {
    return written_rate(policy, "web", {scope, dimension});
}

TEST(FleetPolicy, AnOverrideThatDoesNotFitIsLeftOutAndTheOthersHold) {
    const ConfigFile config{parse_policy(kText, "x").value(), kText, "x"};
    std::vector<PolicyOverride> overrides = {
        of("web", "per_source.connections", "99/s", false),
        of("web", "budget.data", "lots", true),
    };
    std::vector<std::string> left_out;
    const auto changed = with_fitting_overrides(config, overrides, left_out);
    ASSERT_TRUE(changed) << changed.error().message;
    EXPECT_EQ(rate(changed->policy, Scope::per_source, Dimension::connections), "99/s");
    EXPECT_EQ(rate(changed->policy, Scope::budget, Dimension::data), "100/s");
    ASSERT_EQ(overrides.size(), 1U);
    EXPECT_FALSE(overrides[0].by_fleet);
    EXPECT_THAT(left_out, ElementsAre(HasSubstr("the fleet's override of web, by alice: ")));
    EXPECT_THAT(left_out[0], HasSubstr("budget.data"));
}

TEST(FleetPolicy, OverridesThatFitAreAllTaken) {
    const ConfigFile config{parse_policy(kText, "x").value(), kText, "x"};
    std::vector<PolicyOverride> overrides = {of("web", "budget.data", "50/s", true)};
    std::vector<std::string> left_out;
    const auto changed = with_fitting_overrides(config, overrides, left_out);
    ASSERT_TRUE(changed);
    EXPECT_EQ(rate(changed->policy, Scope::budget, Dimension::data), "50/s");
    EXPECT_THAT(left_out, IsEmpty());
    EXPECT_EQ(overrides.size(), 1U);
}

TEST(FleetPolicy, SharedBudgetsAreThoseOfTheTextWhereAnOverrideDoesNotFit) {
    const auto policy = policy_of_any_host(
        kText, Instant(),
        {of("web", "budget.data", "lots", true), of("mail", "budget.data", "1/s", true)});
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ(rate(*policy, Scope::budget, Dimension::data), "100/s");
}

}  // namespace
}  // namespace sluice
