#include "feeds/spare.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

std::vector<Prefix> prefixes(std::initializer_list<const char*> texts) {
    std::vector<Prefix> all;
    for (const char* text : texts)
        all.push_back(Prefix::parse(text).value());
    return all;
}

TEST(Without, LeavesAloneWhatHasNothingToDoWithTheSpared) {
    const auto list =
        prefixes({"198.51.100.0/24", "203.0.113.7", "2001:db8::/32", "198.51.0.0/16"});
    EXPECT_EQ(without(list, prefixes({"10.0.0.0/8", "fe80::/10"})), list);
}

TEST(Without, DropsWhatLiesInsideTheSpared) {
    EXPECT_THAT(
        without(prefixes({"10.1.2.3", "10.0.0.0/8", "10.128.0.0/9"}), prefixes({"10.0.0.0/8"})),
        testing::IsEmpty());
}

TEST(Without, CutsTheSparedOutOfAWiderPrefix) {
    EXPECT_EQ(without(prefixes({"192.0.2.0/24"}), prefixes({"192.0.2.64/26"})),
              prefixes({"192.0.2.0/26", "192.0.2.128/25"}));
    EXPECT_EQ(without(prefixes({"192.0.2.4/30"}), prefixes({"192.0.2.4", "192.0.2.7"})),
              prefixes({"192.0.2.5", "192.0.2.6"}));
    EXPECT_EQ(without(prefixes({"2001:db8::/126"}), prefixes({"2001:db8::2"})),
              prefixes({"2001:db8::/127", "2001:db8::3"}));
}

TEST(Without, TheDefaultRouteIsCutUpToo) {
    const auto rest = without(prefixes({"0.0.0.0/0"}), prefixes({"10.0.0.0/8"}));
    EXPECT_EQ(rest.size(), 8U);
    for (const Prefix& prefix : rest) {
        EXPECT_FALSE(prefix.contains(Prefix::parse("10.0.0.0/8").value()));
    }
}

TEST(Without, MakesFewPiecesHoweverSmallTheSpared) {
    // Each length is another look-up for every packet.
    const auto rest = without(prefixes({"2001:db8::/32"}), prefixes({"2001:db8:0:1::/64"}));
    EXPECT_EQ(rest, prefixes({"2001:db8:100::/40", "2001:db8:200::/39", "2001:db8:400::/38",
                              "2001:db8:800::/37", "2001:db8:1000::/36", "2001:db8:2000::/35",
                              "2001:db8:4000::/34", "2001:db8:8000::/33"}));
}

TEST(SparedNetworks, HaveThePrivateOnesAndLoopback) {
    const auto spared = spared_networks();
    ASSERT_TRUE(spared);
    EXPECT_THAT(*spared, testing::IsSupersetOf(prefixes(
                             {"10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12", "127.0.0.0/8"})));
}

}  // namespace
}  // namespace sluice
