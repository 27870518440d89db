#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>

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
    EXPECT_THAT(no_file.error().message, HasSubstr("is a directory, not a file"));
}

TEST(LoadPolicy, TakesRegularFilesOfASizeThatAGateCanKeep) {
    const TempFolder folder;
    const auto path = folder.write("sluice.toml", '#' + std::string(kLongestConfig, 'x'));
    EXPECT_THAT(load_policy(path).error().message, HasSubstr("has more than 1048572 bytes"));
    folder.write("sluice.toml", '#' + std::string(kLongestConfig - 1, 'x'));
    EXPECT_TRUE(load_policy(path));
    EXPECT_THAT(load_policy("/dev/zero").error().message, HasSubstr("/dev/zero: is a device"));

    folder.write("conf.d/10.toml", "mode = 'observe'\n");
    std::filesystem::create_symlink("/dev/zero", folder.path() + "/conf.d/20.toml");
    EXPECT_THAT(load_policy(path).error().message, HasSubstr("20.toml: is a device"));
    std::filesystem::remove(folder.path() + "/conf.d/20.toml");
    ASSERT_EQ(::mkfifo((folder.path() + "/conf.d/30.toml").c_str(), 0600), 0);
    EXPECT_THAT(load_policy(path).error().message, HasSubstr("30.toml: is a pipe"));
}

// Whatever grows with the square of these would take minutes.
TEST(LoadPolicy, LargeConfigurationsTakeNoLongTime) {
    std::string text = "[sources]\nallow = [";
    for (unsigned i = 0; i < 20'000; ++i)
        text += "'10.1." + std::to_string(i / 256) + '.' + std::to_string(i % 256) + "', ";
    text += "]\n[[service]]\nname = 'a'\nmatch = [";
    for (unsigned i = 0; i < 4000; ++i)
        text += "'10.0." + std::to_string(i / 256) + '.' + std::to_string(i % 256) + ":tcp/80', ";
    // Ranges that all overlap.
    for (unsigned i = 1; i < 10'000; ++i)
        text += "'udp/" + std::to_string(i) + '-' + std::to_string(i + 25'000) + "', ";
    text += "]\n";
    const auto start = std::chrono::steady_clock::now();
    const auto policy = parse_policy(text, "sluice.toml");
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace sluice
