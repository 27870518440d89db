// Other numbers for one service, laid over a configuration.
#include "policy/service_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/policy_override.h"
#include "policy/parse.h"
#include "policy/written_rate.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr std::string_view kPolicy =
    "[[service]]\nname = 'web'\nmatch = ['tcp/443']\n[service.per_source]\ndata = '10/s'\n"
    "[[service]]\nname = 'dns'\nmatch = ['udp/53']\n";

ServiceChange change(const std::string& service, const std::vector<std::string>& values) {
    ServiceChange made{service, {}};
    for (const std::string& value : values)
        made.values.push_back(parse_change_value(value).value());
    return made;
}

Result<Policy> changed(const ServiceChange& change) {
    auto tree = read_toml(kPolicy, "test.toml").value();
    if (const Status status = change_service(tree, change); !status)
        return status.error();
    return read_policy(tree, "test.toml");
}

TEST(ServiceChange, ReplacesAndAddsLimitsOfThatServiceAlone) {
    const auto policy =
        changed(change("web", {"per_source.data=60/s", "budget.bytes=5MB/s",
                               "per_source.connections={ limit = 5, window = \"60s\" }"}));
    ASSERT_TRUE(policy) << policy.error().message;
    const auto rate = [&](const char* service, Scope scope, Dimension dimension) {
        return written_rate(*policy, service, {scope, dimension});
    };
    EXPECT_EQ(rate("web", Scope::per_source, Dimension::data), "60/s");
    EXPECT_EQ(rate("web", Scope::budget, Dimension::bytes), "5MB/s");
    EXPECT_EQ(rate("web", Scope::per_source, Dimension::connections), "5 per 1m");
    EXPECT_EQ(rate("dns", Scope::per_source, Dimension::data), "");
}

TEST(ServiceChange, NumbersThatMakeNoSenseAreNamed) {
    const auto policy = changed(change("web", {"per_source.data=many"}));
    ASSERT_FALSE(policy);
    EXPECT_THAT(policy.error().message,
                HasSubstr("override:1:1: service \"web\": per_source.data"));
    EXPECT_EQ(changed(change("mail", {"per_source.data=1/s"})).error().code, ErrorCode::not_found);
    EXPECT_FALSE(changed(change("web", {"per_source.data={ rate ="})));
}

TEST(ServiceChange, OnlyLimitsCanBeChanged) {
    for (const char* text : {"match=tcp/80", "budget=5/s", "budget.data",
                             "budget.data=", "budget.requests=5/s", "budget.data=5/s\n", "=5/s"}) {
        const auto value = parse_change_value(text);
        ASSERT_FALSE(value) << text;
        EXPECT_EQ(value.error().code, ErrorCode::usage);
    }
}

TEST(PolicyOverrides, AreReadBackAsTheyWereWritten) {
    const TempFolder folder;
    std::vector<PolicyOverride> overrides = {
        {.change = change("web", {"budget.data=5/s", "per_source.data=1/s"}),
         .until_ms = 1'800'000'000'000,
         .actor = "alice from 192.0.2.7",
         .reason = "the sale",
         .by_fleet = true},
        {.change = change("dns", {"per_source.data={ rate = \"5/s\", burst = 9 }"}),
         .until_ms = 1'800'000'000'001,
         .actor = "bob",
         .reason = "",
         .by_fleet = false}};
    const OverrideFile file(folder.path());
    EXPECT_TRUE(file.load().value().empty());
    ASSERT_TRUE(file.save(overrides));
    EXPECT_EQ(file.load().value(), overrides);
    const std::string torn = "sluice-overrides-2\tboot\t1\t1\nhost\t1\ta\t\tweb\tbudget.data=5/s\n";
    for (const std::string& bad : {torn, std::string("sluice-overrides-9\n"), std::string()}) {
        (void)folder.write("overrides", bad);
        const auto lost = file.load();
        ASSERT_FALSE(lost) << bad;
        EXPECT_NE(lost.error().hint.find("set aside as " + folder.path() + "/overrides.bad-"),
                  std::string::npos);
        EXPECT_TRUE(file.load().value().empty()) << "it is out of the way";
    }
}

TEST(PolicyOverrides, OnDiskEndByTheBootClockAndOverABootByThatOfTheWall) {
    const TempFolder folder;
    const OverrideFile file(folder.path());
    constexpr uint64_t kWall = 1'800'000'000'000;
    ASSERT_TRUE(file.save({{.change = change("web", {"budget.data=5/s"}),
                            .until_ms = 160'000,
                            .actor = "alice",
                            .reason = "",
                            .by_fleet = false}},
                          {"this", 100'000, kWall}));
    const auto until = [&](const Moment& now) {
        const auto loaded = file.load(now).value();
        return loaded.size() == 1 ? loaded[0].until_ms : 0;
    };
    EXPECT_EQ(until({"this", 110'000, kWall + 10'000}), 160'000U);
    EXPECT_EQ(until({"this", 110'000, kWall + 3'600'000}), 160'000U) << "the clock was set";
    EXPECT_EQ(until({"next", 5'000, kWall + 20'000}), 45'000U) << "40 s are left";
    EXPECT_EQ(until({"next", 5'000, kWall + 90'000}), 5'000U) << "it is over";
    EXPECT_EQ(until({"next", 5'000, kWall - 3'600'000}), 65'000U) << "nothing lasts longer";
}

TEST(PolicyOverrides, OfOneServiceTheLastHoldsAndAHostsOwnIsOverTheFleets) {
    std::vector<PolicyOverride> overrides;
    const auto add = [&](const char* value, bool by_fleet, uint64_t until_ms) {
        put_override(overrides, {.change = change("web", {value}),
                                 .until_ms = until_ms,
                                 .actor = "a",
                                 .reason = "",
                                 .by_fleet = by_fleet});
    };
    add("per_source.data=1/s", false, 10);
    add("per_source.data=2/s", false, 20);
    add("per_source.data=3/s", true, 30);
    ASSERT_EQ(overrides.size(), 2U);
    const auto rate = [&] {
        auto tree = read_toml(kPolicy, "test.toml").value();
        EXPECT_TRUE(apply_overrides(tree, overrides));
        return written_rate(read_policy(tree, "x").value(), "web",
                            {Scope::per_source, Dimension::data});
    };
    EXPECT_EQ(rate(), "2/s");
    EXPECT_TRUE(drop_ended(overrides, 20));
    EXPECT_EQ(rate(), "3/s");
    EXPECT_FALSE(drop_ended(overrides, 29));
    EXPECT_FALSE(drop_override(overrides, "web", false));
    EXPECT_TRUE(drop_override(overrides, "web", true));
    EXPECT_EQ(rate(), "10/s");
}

TEST(PolicyOverrides, OneOfAServiceThatHasGoneChangesNothing) {
    auto tree = read_toml(kPolicy, "test.toml").value();
    EXPECT_TRUE(apply_overrides(tree, {{.change = change("mail", {"budget.data=5/s"}),
                                        .until_ms = 1,
                                        .actor = "a",
                                        .reason = "",
                                        .by_fleet = true}}));
}

}  // namespace
}  // namespace sluice
