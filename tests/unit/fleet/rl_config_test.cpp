// Limits of another limiter, laid over a configuration below the overrides.
#include "fleet/rl_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/fleet_policy.h"
#include "policy/find_service.h"
#include "policy/parse.h"
#include "policy/written_rate.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr std::string_view kServices =
    "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n[service.per_source]\nconnections = "
    "\"50/s\"\n[[service]]\nname = \"api\"\nmatch = [\"tcp/80\"]\n";

ConfigFile config(const std::string& rl) {
    const std::string text = std::string(kServices) + "[redis]\nurl = \"redis://127.0.0.1\"\n" + rl;
    return {parse_policy(text, "x").value(), text, "x"};
}
RlService ten_a_minute(const std::string& service, const ConfigFile& config) {
    return translate(
        service,
        {{.route = service,
          .base =
              RlNumbers{.window_ms = 60'000, .limit = 10, .bucket_cap = {}, .bucket_rate = {}}}},
        config.policy.rl.value_or(RlSettings()));
}
std::string rate(const RlLaid& laid, const char* service, Dimension dimension) {
    return written_rate(laid.config.policy, service, {Scope::per_source, dimension});
}
std::vector<std::string> names(const RlLaid& laid) {
    std::vector<std::string> names;
    for (const RuleId& rule : laid.in_force)
        names.push_back(format_rule_id(rule));
    return names;
}

TEST(RlConfig, UntilUsersAreSaidItObservesAndTakesNobodysPlace) {
    const ConfigFile own = config("[rl]\n");
    const auto laid = with_rl_limits(own, {ten_a_minute("web", own), ten_a_minute("api", own)}, {});
    EXPECT_EQ(rate(laid, "web", Dimension::connections), "50/s");
    EXPECT_EQ(rate(laid, "web", Dimension::data), "40/m");
    EXPECT_EQ(rate(laid, "api", Dimension::connections), "20 per 1m");
    EXPECT_THAT(names(laid), ElementsAre("web.per_source.data", "api.per_source.connections",
                                         "api.per_source.data"));
    const Service* web = find_service(laid.config.policy, "web");
    EXPECT_FALSE(web->modes.contains({Scope::per_source, Dimension::connections}));
    EXPECT_EQ(web->modes.at({Scope::per_source, Dimension::data}), Mode::observe);
    EXPECT_EQ(laid.config.source, "x, with limits of rl:");
    const auto again = parse_policy(laid.config.text, "again");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(written_rate(*again, "api", {Scope::per_source, Dimension::data}), "40/m");
}

TEST(RlConfig, WithUsersItTakesTheLimitsPlaceAndTheirMode) {
    const ConfigFile own = config("[rl]\nusers_per_source = 3\n");
    const auto laid = with_rl_limits(own, {ten_a_minute("web", own)}, {});
    EXPECT_EQ(rate(laid, "web", Dimension::connections), "60 per 1m");
    EXPECT_THAT(find_service(laid.config.policy, "web")->modes, IsEmpty());
}

TEST(RlConfig, AnOverrideIsOverIt) {
    const ConfigFile own = config("[rl]\nusers_per_source = 3\n");
    const PolicyOverride entry{.change = {"web", {{"per_source.connections", "7/s"}}},
                               .until_ms = 1,
                               .actor = "alice",
                               .reason = ""};
    const auto laid = with_rl_limits(own, {ten_a_minute("web", own)}, {entry});
    EXPECT_THAT(names(laid), ElementsAre("web.per_source.data"));
    const auto all = with_overrides(laid.config, {entry});
    ASSERT_TRUE(all);
    EXPECT_EQ(written_rate(all->policy, "web", {Scope::per_source, Dimension::connections}), "7/s");
    EXPECT_EQ(all->source, "x, with limits of rl:, changed for a time");
}

TEST(RlConfig, NothingLiesOverAConfigurationThatFollowsNobody) {
    for (const char* rl : {"", "[rl]\nenabled = false\n"}) {
        const ConfigFile own = config(rl);
        const auto laid = with_rl_limits(own, {ten_a_minute("web", own)}, {});
        EXPECT_EQ(laid.config.text, own.text);
        EXPECT_THAT(laid.in_force, IsEmpty());
    }
    const ConfigFile own = config("[rl]\n");
    const auto unknown = with_rl_limits(own, {ten_a_minute("mail", own)}, {});
    EXPECT_EQ(unknown.config.text, own.text);
}

// A class may scale a limit beyond what the gate can compute with.
TEST(RlConfig, WhatDoesNotFitIsLeftOutAndTheOthersHold) {
    const ConfigFile own = config("[rl]\n");
    RlService odd = ten_a_minute("web", own);
    odd.ceiling->data = TokenBucket{{1, std::chrono::hours(1)}, 1'000'000};
    const auto laid = with_rl_limits(own, {odd, ten_a_minute("api", own)}, {});
    EXPECT_THAT(laid.left_out, ElementsAre(HasSubstr("web: ")));
    EXPECT_EQ(rate(laid, "web", Dimension::data), "");
    EXPECT_EQ(rate(laid, "api", Dimension::connections), "20 per 1m");
}

TEST(RlConfig, TheFleetsPolicyIsStillKnownAsSuch) {
    const auto source =
        parse_fleet_source("fleet shop, version 7, canary, with limits of rl:, changed for a time");
    ASSERT_TRUE(source);
    EXPECT_EQ(source->version, 7U);
    EXPECT_TRUE(source->is_canary);
    EXPECT_TRUE(source->is_overridden);
    EXPECT_FALSE(parse_fleet_source("fleet shop, version 7, with limits of rl:")->is_overridden);
}

}  // namespace
}  // namespace sluice
