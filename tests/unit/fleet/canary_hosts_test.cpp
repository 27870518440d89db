// Which hosts get a canary.
#include "fleet/canary_hosts.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace sluice {
namespace {

std::string id(unsigned number) {
    char text[33];
    (void)std::snprintf(text, sizeof(text), "%08x%024x", number * 2'654'435'761U, number);
    return text;
}

unsigned how_many(std::string_view canaries, unsigned of) {
    const auto parsed = CanaryHosts::parse(canaries).value();
    unsigned count = 0;
    for (unsigned i = 0; i < of; ++i)
        count += parsed.has(id(i), "edge") ? 1 : 0;
    return count;
}

TEST(CanaryHosts, APartIsAboutThatManyHostsAndTheSameEachTime) {
    EXPECT_NEAR(how_many("10%", 10'000), 1'000, 120);
    EXPECT_NEAR(how_many("0.5%", 10'000), 50, 30);
    EXPECT_NEAR(how_many("99.9%", 10'000), 9'990, 12);
    const auto tenth = CanaryHosts::parse("10%").value(), half = CanaryHosts::parse("50%").value();
    for (unsigned i = 0; i < 1'000; ++i)
        EXPECT_LE(tenth.has(id(i), ""), half.has(id(i), "")) << "a larger part has the smaller one";
}

TEST(CanaryHosts, AllHostsAreNoCanaryAsNobodyIsLeftToCompareWith) {
    for (const char* all : {"100%", "99.999%"}) {
        const auto parsed = CanaryHosts::parse(all);
        ASSERT_FALSE(parsed) << all;
        EXPECT_EQ(parsed.error().code, ErrorCode::usage);
        EXPECT_NE(parsed.error().message.find("leaves no host to compare with"), std::string::npos);
    }
}

TEST(CanaryHosts, HostsAreNamedByNameOrById) {
    const auto canaries = CanaryHosts::parse("edge1,0a1b2c3d").value();
    EXPECT_TRUE(canaries.has("ffffffffffffffffffffffffffffffff", "edge1"));
    EXPECT_TRUE(canaries.has("0a1b2c3d4e5f60718293a4b5c6d7e8f9", "edge2"));
    EXPECT_FALSE(canaries.has("ffffffffffffffffffffffffffffffff", "edge11"));
    EXPECT_FALSE(CanaryHosts::parse("0a1b").value().has("0a1b2c3d4e5f60718293a4b5c6d7e8f9", "x"))
        << "so few digits are another host's as well";
}

TEST(CanaryHosts, AreWrittenAsTheyAreRead) {
    for (const char* text : {"10%", "0.5%", "99.5%", "edge1,edge2", "0a1b2c3d"})
        EXPECT_EQ(CanaryHosts::parse(text).value().to_string(), text);
}

TEST(CanaryHosts, WhatNamesNobodyIsRefused) {
    for (const char* text :
         {"", "%", "0%", "101%", "-1%", "nan%", "x%", "1 %", "a,,b", "a,", ",a", "a b", "a,10%"}) {
        const auto canaries = CanaryHosts::parse(text);
        ASSERT_FALSE(canaries) << text;
        EXPECT_EQ(canaries.error().code, ErrorCode::usage);
    }
}

}  // namespace
}  // namespace sluice
