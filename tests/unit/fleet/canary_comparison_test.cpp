// A canary against its control group: when it holds back more, and when that is spread wide.
#include "fleet/canary_comparison.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

HostView host(uint64_t version, bool is_canary, CutRate cut, std::chrono::milliseconds age = 1s) {
    HostView view;
    view.last.fleet_version = version;
    view.last.is_canary = is_canary;
    view.last.cut = cut;
    view.age = age;
    return view;
}

CanaryComparison compare(CutRate canary, CutRate others) {
    FleetView view;
    view.hosts = {host(8, true, canary), host(7, false, others)};
    return compare_canary(view, 8, 7);
}

constexpr CutRate kQuiet{.packets = 1000, .cut = 1, .sources = 1, .heaviest = 1};

TEST(CanaryComparison, ManySourcesWithLittleEachAreSpreadWide) {
    const auto compared =
        compare({.packets = 1000, .cut = 50, .sources = 400, .heaviest = 0.1}, kQuiet);
    EXPECT_TRUE(compared.is_known());
    EXPECT_TRUE(compared.holds_back_more());
    EXPECT_TRUE(compared.is_wide());
    EXPECT_DOUBLE_EQ(compared.canary.share(), 0.05);
}

TEST(CanaryComparison, FewWhoHaveMostOfItAreNot) {
    EXPECT_FALSE(
        compare({.packets = 1000, .cut = 500, .sources = 400, .heaviest = 0.9}, kQuiet).is_wide());
    EXPECT_FALSE(
        compare({.packets = 1000, .cut = 500, .sources = 5, .heaviest = 0.1}, kQuiet).is_wide());
}

TEST(CanaryComparison, WhatTheOthersHoldBackAsWellIsNoMore) {
    const CutRate flooded{.packets = 1000, .cut = 500, .sources = 4000, .heaviest = 0.01};
    EXPECT_FALSE(compare(flooded, flooded).holds_back_more()) << "a flood, and no policy's fault";
    EXPECT_FALSE(compare(kQuiet, flooded).holds_back_more());
}

TEST(CanaryComparison, WithoutTrafficNothingIsKnown) {
    const auto compared = compare({.packets = 5, .cut = 5, .sources = 40, .heaviest = 0}, kQuiet);
    EXPECT_FALSE(compared.is_known());
    EXPECT_FALSE(compared.holds_back_more());
}

TEST(CanaryComparison, OnlyHostsThatAreThereAndHaveTheVersionCount) {
    FleetView view;
    const CutRate cut{.packets = 100, .cut = 10, .sources = 10, .heaviest = 0.5};
    view.hosts = {host(8, true, cut),  host(8, true, cut),  host(8, true, cut, 1min),
                  host(8, false, cut), host(7, false, cut), host(6, false, cut)};
    view.hosts.emplace_back();  // one that says nothing
    const auto compared = compare_canary(view, 8, 7);
    EXPECT_EQ(compared.canary.hosts, 2U);
    EXPECT_EQ(compared.others.hosts, 1U);
    EXPECT_DOUBLE_EQ(compared.canary.rate.packets, 200);
    EXPECT_DOUBLE_EQ(compared.canary.rate.heaviest, 0.5);
}

}  // namespace
}  // namespace sluice
