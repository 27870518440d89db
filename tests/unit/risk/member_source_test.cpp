// Members of a risk set, as gateways write them.
#include "risk/member_source.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

using Kind = MemberSource::Kind;
using namespace std::string_literals;

std::string source(std::string_view member) {
    const MemberSource found = source_of_member(member);
    switch (found.kind) {
        case Kind::source:
            return found.source.to_string();
        case Kind::identity:
            return "identity";
        case Kind::unreadable:
            break;
    }
    return "unreadable";
}

TEST(MemberSource, TextOfBothFamilies) {
    EXPECT_EQ(source("192.0.2.7"), "192.0.2.7");
    EXPECT_EQ(source("::ffff:192.0.2.7"), "192.0.2.7");
    EXPECT_EQ(source("2001:db8::1"), "2001:db8::/64") << "a host has all of its /64";
    EXPECT_EQ(source("2001:db8:0:0:1:2:3:4"), "2001:db8::/64");
    EXPECT_EQ(source("1::2"), "1::/64") << "four bytes that are text";
    EXPECT_EQ(source("2001:db8::1:5834"), "2001:db8::/64") << "sixteen bytes that are text";
}

TEST(MemberSource, RawBytes) {
    EXPECT_EQ(source("\xc0\x00\x02\x07"s), "192.0.2.7");
    EXPECT_EQ(source("\x20\x01\x0d\xb8\0\0\0\x05\0\0\0\0\0\0\0\x01"s), "2001:db8:0:5::/64");
    EXPECT_EQ(source("\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x07"s), "192.0.2.7");
}

TEST(MemberSource, BehindAMark) {
    EXPECT_EQ(source("ip:192.0.2.7"), "192.0.2.7");
    EXPECT_EQ(source("ip:\xc0\x00\x02\x07"s), "192.0.2.7");
    EXPECT_EQ(source("ip:2001:db8::1"), "2001:db8::/64");
    EXPECT_EQ(source("uid:4711"), "identity");
    EXPECT_EQ(source("dfp:192.0.2.7"), "identity") << "whatever is behind it";
}

TEST(MemberSource, WithAPort) {
    EXPECT_EQ(source("192.0.2.7:58340"), "192.0.2.7");
    EXPECT_EQ(source("[2001:db8::1]:443"), "2001:db8::/64");
    EXPECT_EQ(source("[2001:db8::1]"), "2001:db8::/64");
    // HAProxy's way, in which the port may be no group, or one too many.
    EXPECT_EQ(source("2001:db8::1:58340"), "2001:db8::/64");
    EXPECT_EQ(source("2001:db8:1:2:3:4:5:6:443"), "2001:db8:1:2::/64");
    EXPECT_EQ(source("2001:db8::1:99999"), "unreadable") << "no port";
}

TEST(MemberSource, WhatIsNoAddress) {
    for (const char* member : {"", "ip:", "alice", "192.0.2", "192.0.2.7/24", "192.0.2.300",
                               "fe80::1%eth0", "[192.0.2.7", "[::1]x", "192.0.2.7:", ":4430"})
        EXPECT_EQ(source(member), "unreadable") << member;
    EXPECT_EQ(source(std::string(100'000, '1')), "unreadable");
    EXPECT_EQ(source("192.0.2.7\0"s), "unreadable");
}

}  // namespace
}  // namespace sluice
