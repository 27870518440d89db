// [rl]: how another limiter's policies are followed.
#include "policy/rl_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/parse.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using namespace std::chrono_literals;

Result<Policy> read(const std::string& rl) {
    return parse_policy("[redis]\nurl = \"redis://127.0.0.1\"\n[rl]\n" + rl, "x.toml");
}

TEST(RlReader, AnEmptyTableIsEnough) {
    const auto policy = read("");
    ASSERT_TRUE(policy) << policy.error().message;
    ASSERT_TRUE(policy->rl);
    EXPECT_EQ(*policy->rl, RlSettings());
    EXPECT_EQ(policy->rl->prefix, "rl:");
    EXPECT_EQ(policy->rl->base_after, 10min);
    EXPECT_FALSE(read("enabled = false\n")->rl);
    EXPECT_FALSE(parse_policy("", "x.toml")->rl);
}

TEST(RlReader, EveryKey) {
    const auto policy = read(
        "enabled = true\nprefix = \"limits:\"\nusers_per_source = 2.5\nheadroom = 3\n"
        "routes = { web = [\"login\", \"api/v1\"] }\nasn = [64496]\nbase_after = \"5m\"\n"
        "whitelist = false\n[rl.local]\nwindow_ms = 1000\nlimit = 10\nbucket_cap = 2.5\n"
        "bucket_rate = 1\n");
    ASSERT_TRUE(policy) << policy.error().message;
    const RlSettings& rl = *policy->rl;
    EXPECT_EQ(rl.prefix, "limits:");
    EXPECT_EQ(rl.users_per_source, 2.5);
    EXPECT_EQ(rl.headroom, 3);
    EXPECT_THAT(rl.routes.at("web"), ElementsAre("api/v1", "login"));
    EXPECT_THAT(rl.asns, ElementsAre(64496U));
    EXPECT_EQ(rl.base_after, 5min);
    EXPECT_FALSE(rl.whitelist);
    EXPECT_EQ(rl.local, (RlNumbers{1000, 10, 2.5, 1}));
}

TEST(RlReader, MistakesAreNamedWithTheirPlace) {
    for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
             {"users_per_source = 0.5\n", "x.toml:4:20: rl.users_per_source: 0.5 is out of range"},
             {"users_per_source = nan\n", "rl.users_per_source"},
             {"headroom = 0\n", "rl.headroom"},
             {"prefix = \"\"\n", "rl.prefix"},
             {"prefix = \"r l:\"\n", "rl.prefix"},
             {"routes = { web = [] }\n", "rl.routes.web"},
             {"routes = { web = [\"a:b\"] }\n", "is no route"},
             {"routes = { web = [\"a\", \"a\"] }\n", "stands twice"},
             {"routes = { Web = [\"a\"] }\n", "is no name of a service"},
             {"asn = [0]\n", "rl.asn[1]"},
             {"asn = [5, 5]\n", "stands twice"},
             {"base_after = \"1ms\"\n", "rl.base_after"},
             {"[rl.local]\nlimit = 0\n", "rl.local.limit"},
             {"[rl.local]\nrate = 1\n", "rl.local.rate: unknown key"},
             {"user_per_source = 1\n", "did you mean \"users_per_source\""}}) {
        const auto policy = read(text);
        ASSERT_FALSE(policy) << text;
        EXPECT_THAT(policy.error().message, HasSubstr(what));
    }
    const auto alone = parse_policy("[rl]\n", "x.toml");
    ASSERT_FALSE(alone);
    EXPECT_THAT(alone.error().message, HasSubstr("add [redis]"));
}

}  // namespace
}  // namespace sluice
