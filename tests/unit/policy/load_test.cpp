#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policy/parse.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(LoadPolicy, ReadsOneFile) {
    const TempFolder folder;
    const auto policy = load_policy(folder.write("sluice.toml", "mode = 'enforce'\n"));
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ(policy->mode, Mode::enforce);
}

TEST(LoadPolicy, MergesDropInsInTheOrderOfTheirNames) {
    const TempFolder folder;
    const auto path = folder.write("sluice.toml",
                                   "mode = 'observe'\n[sources]\ncapacity = 5000\n"
                                   "[[service]]\nname = 'a'\nmatch = ['tcp/1']\n");
    folder.write("conf.d/20-second.toml", "[[service]]\nname = 'c'\nmatch = ['tcp/3']\n");
    folder.write("conf.d/10-first.toml",
                 "xdp_mode = 'generic'\n[sources]\nipv6_prefix = 48\n"
                 "[[service]]\nname = 'b'\nmatch = ['tcp/2']\n");
    folder.write("conf.d/.hidden.toml", "nonsense");
    folder.write("conf.d/10-first.toml~", "nonsense");
    folder.write("conf.d/README", "nonsense");

    const auto policy = load_policy(path);
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ(policy->xdp_mode, XdpMode::generic);
    EXPECT_EQ(policy->sources.capacity, 5000U);
    EXPECT_EQ(policy->sources.ipv6_prefix, 48U);
    ASSERT_EQ(policy->services.size(), 3U);
    EXPECT_EQ(policy->services[0].name, "a");
    EXPECT_EQ(policy->services[1].name, "b");
    EXPECT_EQ(policy->services[2].name, "c");
}

TEST(LoadPolicy, RefusesAValueSetInTwoFilesAndNamesBoth) {
    const TempFolder folder;
    const auto path = folder.write("sluice.toml", "[sources]\ncapacity = 5000\n");
    const auto drop_in = folder.write("conf.d/10.toml", "\n[sources]\ncapacity = 5000\n");
    const auto policy = load_policy(path);
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().message, drop_in + ":3:1: sources.capacity: already set at " + path +
                                          ":2:1; keep one of the two");
}

TEST(LoadPolicy, RefusesListsAndMixedKindsInTwoFiles) {
    const TempFolder folder;
    const auto path =
        folder.write("sluice.toml", "interfaces = ['eth0']\n[events]\nrate = '1/s'\n");
    folder.write("conf.d/10.toml", "interfaces = ['eth1']\n");
    EXPECT_THAT(load_policy(path).error().message, HasSubstr("interfaces: already set at"));
    folder.write("conf.d/10.toml", "events = 1\n");
    EXPECT_THAT(load_policy(path).error().message, HasSubstr("events: already set at"));
}

TEST(LoadPolicy, NamesTheFileOfAnError) {
    const TempFolder folder;
    const auto path = folder.write("sluice.toml", "mode = 'observe'\n");
    const auto drop_in = folder.write("conf.d/10.toml", "[sources]\ncapcity = 1\n");
    EXPECT_EQ(load_policy(path).error().message,
              drop_in + ":2:1: sources.capcity: unknown key; did you mean \"capacity\"?");
    folder.write("conf.d/10.toml", "mode =\n");
    EXPECT_THAT(load_policy(path).error().message, testing::StartsWith(drop_in + ":1:"));
}

TEST(LoadPolicy, ComparesServicesOfAllFiles) {
    const TempFolder folder;
    const auto path = folder.write("sluice.toml", "[[service]]\nname = 'a'\nmatch = ['tcp/443']\n");
    const auto drop_in =
        folder.write("conf.d/10.toml", "[[service]]\nname = 'b'\nmatch = ['tcp/443']\n");
    EXPECT_EQ(load_policy(path).error().message,
              drop_in +
                  ":3:10: service \"b\": match[1]: \"tcp/443\" ties with \"tcp/443\" of "
                  "service \"a\"; make one of them more specific, or remove it");
}

TEST(LoadPolicy, SaysWhichFileCannotBeRead) {
    const TempFolder folder;
    const auto missing = load_policy(folder.path() + "/sluice.toml");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, ErrorCode::not_found);
    EXPECT_THAT(missing.error().message, HasSubstr(folder.path() + "/sluice.toml"));

    const auto no_file = load_policy(folder.path());
    ASSERT_FALSE(no_file);
    EXPECT_THAT(no_file.error().message, HasSubstr("Is a directory"));
}

}  // namespace
}  // namespace sluice
