#include "net/address.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace sluice {
namespace {

using namespace std::string_view_literals;

IpAddress address(std::string_view text) {
    const auto parsed = IpAddress::parse(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : IpAddress{};
}

Prefix prefix(std::string_view text) {
    const auto parsed = Prefix::parse(text);
    EXPECT_TRUE(parsed) << text;
    return parsed ? *parsed : Prefix{};
}

struct Canonical {
    const char* text;
    const char* shown;
};

class Addresses : public testing::TestWithParam<Canonical> {};

TEST_P(Addresses, AreCanonical) {
    EXPECT_EQ(address(GetParam().text).to_string(), GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(Forms, Addresses,
                         testing::Values(Canonical{"192.0.2.1", "192.0.2.1"},
                                         Canonical{"0.0.0.0", "0.0.0.0"},
                                         Canonical{"255.255.255.255", "255.255.255.255"},
                                         Canonical{"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
                                         Canonical{"2001:0db8::0001", "2001:db8::1"},
                                         Canonical{"::", "::"},
                                         Canonical{"::ffff:192.0.2.7", "192.0.2.7"},
                                         Canonical{"::FFFF:c000:0207", "192.0.2.7"},
                                         Canonical{"0:0:0:0:0:ffff:192.0.2.7", "192.0.2.7"}));

class BadAddresses : public testing::TestWithParam<std::string_view> {};

TEST_P(BadAddresses, AreRefused) {
    const auto parsed = IpAddress::parse(GetParam());
    ASSERT_FALSE(parsed) << parsed->to_string();
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_FALSE(parsed.error().hint.empty());
}

INSTANTIATE_TEST_SUITE_P(Forms, BadAddresses,
                         testing::Values(""sv, "192.0.2"sv, "192.0.2.256"sv, "192.0.2.01"sv,
                                         "192.0.2.1 "sv, " 192.0.2.1"sv, "192.0.2.1."sv,
                                         "0x7f.0.0.1"sv, "3221225985"sv, "192.0.2.1\0evil"sv,
                                         "192.0.2.1/32"sv, "2001:db8::1%eth0"sv, "[2001:db8::1]"sv,
                                         "2001:db8::1::2"sv, "2001:db8::12345"sv, "2001:db8:1"sv,
                                         "::ffff:192.0.2.07"sv, "::ffff:192.0.2.1\0"sv,
                                         "localhost"sv, ":"sv));

TEST(Address, KnowsItsFamilyAndParts) {
    const IpAddress ipv4 = address("192.0.2.1");
    EXPECT_EQ(ipv4.family(), Family::ipv4);
    EXPECT_EQ(ipv4.ipv4_host_order(), 0xc0000201U);
    EXPECT_EQ(ipv4, IpAddress::from_ipv4(0xc0000201));
    EXPECT_EQ(ipv4.high64(), 0U);
    EXPECT_EQ(ipv4.low64(), 0x0000ffffc0000201U);

    const IpAddress ipv6 = address("2001:db8::5");
    EXPECT_EQ(ipv6.family(), Family::ipv6);
    EXPECT_EQ(ipv6.high64(), 0x20010db800000000U);
    EXPECT_EQ(ipv6.low64(), 5U);
    EXPECT_EQ(IpAddress::from_bytes(ipv6.bytes()), ipv6);
}

struct PrefixCase {
    const char* text;
    const char* shown;
    bool cleared = false;
};

class Prefixes : public testing::TestWithParam<PrefixCase> {};

TEST_P(Prefixes, AreCanonicalAndSayWhatWasCleared) {
    bool cleared = !GetParam().cleared;
    const auto parsed = Prefix::parse(GetParam().text, &cleared);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->to_string(), GetParam().shown);
    EXPECT_EQ(cleared, GetParam().cleared);
    EXPECT_EQ(prefix(GetParam().shown), *parsed) << "what is shown reads back";
}

INSTANTIATE_TEST_SUITE_P(Forms, Prefixes,
                         testing::Values(PrefixCase{"192.0.2.0/24", "192.0.2.0/24"},
                                         PrefixCase{"192.0.2.4/24", "192.0.2.0/24", true},
                                         PrefixCase{"192.0.2.5/24", "192.0.2.0/24", true},
                                         PrefixCase{"192.0.2.9", "192.0.2.9"},
                                         PrefixCase{"192.0.2.9/32", "192.0.2.9"},
                                         PrefixCase{"0.0.0.0/0", "0.0.0.0/0"},
                                         PrefixCase{"192.0.2.1/0", "0.0.0.0/0", true},
                                         PrefixCase{"198.51.100.255/31", "198.51.100.254/31", true},
                                         PrefixCase{"::/0", "::/0"},
                                         PrefixCase{"2001:db8::1", "2001:db8::1"},
                                         PrefixCase{"2001:db8::1/128", "2001:db8::1"},
                                         PrefixCase{"2001:db8:aa00::/40", "2001:db8:aa00::/40"},
                                         PrefixCase{"2001:db8::1/64", "2001:db8::/64", true},
                                         PrefixCase{"2001:db8::ff/121", "2001:db8::80/121", true},
                                         PrefixCase{"::ffff:192.0.2.7", "192.0.2.7"},
                                         PrefixCase{"::ffff:192.0.2.7/128", "192.0.2.7"},
                                         PrefixCase{"::ffff:192.0.2.1/120", "192.0.2.0/24", true},
                                         PrefixCase{"::ffff:192.0.2.0/120", "192.0.2.0/24"},
                                         PrefixCase{"::ffff:0:0/96", "0.0.0.0/0"},
                                         PrefixCase{"::ffff:192.0.2.1/0", "::/0", true}));

class BadPrefixes : public testing::TestWithParam<std::string_view> {};

TEST_P(BadPrefixes, AreRefused) {
    const auto parsed = Prefix::parse(GetParam());
    ASSERT_FALSE(parsed) << parsed->to_string();
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_FALSE(parsed.error().hint.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadPrefixes,
    testing::Values(""sv, "/24"sv, "192.0.2.0/"sv, "192.0.2.0/33"sv, "192.0.2.0/128"sv,
                    "192.0.2.0/+8"sv, "192.0.2.0/ 8"sv, "192.0.2.0/8 "sv, "192.0.2.0/-1"sv,
                    "192.0.2.0/08"sv, "192.0.2.0/024"sv, "192.0.2.0/0x8"sv, "192.0.2.0/8.0"sv,
                    "192.0.2.0/24/24"sv, "192.0.2.0/4294967304"sv, "192.0.2.0/255.255.255.0"sv,
                    "192.0.2/24"sv, "2001:db8::/129"sv, "2001:db8::/"sv, "2001:db8::%eth0/64"sv,
                    "::ffff:192.0.2.0/129"sv, "::ffff:192.0.2.0/95"sv, "::ffff:192.0.2.0/24"sv,
                    "::ffff:192.0.2.0/1"sv, "192.0.2.0\0/24"sv, "192.0.2.0/24\0"sv));

TEST(Prefix, MappedLengthsBelow96SayWhy) {
    const auto parsed = Prefix::parse("::ffff:192.0.2.0/24");
    ASSERT_FALSE(parsed);
    EXPECT_NE(parsed.error().message.find("IPv4-mapped range"), std::string::npos);
    EXPECT_NE(parsed.error().hint.find("192.0.2.0/24"), std::string::npos);
}

TEST(Prefix, ContainsItsWholeRangeAndNoMore) {
    EXPECT_TRUE(prefix("2001:db8:aa00::/40").contains(address("2001:db8:aabb::1")));
    EXPECT_FALSE(prefix("2001:db8:aa00::/40").contains(address("2001:db8:ab00::1")));
    EXPECT_TRUE(prefix("198.51.100.0/25").contains(address("198.51.100.77")));
    EXPECT_FALSE(prefix("198.51.100.0/25").contains(address("198.51.100.200")));
    EXPECT_TRUE(prefix("192.0.2.1").contains(address("192.0.2.1")));
    EXPECT_FALSE(prefix("192.0.2.1").contains(address("192.0.2.2")));
    EXPECT_TRUE(prefix("192.0.2.0/24").contains(address("::ffff:192.0.2.7")));
}

TEST(Prefix, OfLengthZeroContainsAllOfItsFamilyAndNoneOfTheOther) {
    EXPECT_TRUE(prefix("0.0.0.0/0").contains(address("192.0.2.1")));
    EXPECT_TRUE(prefix("0.0.0.0/0").contains(address("255.255.255.255")));
    EXPECT_FALSE(prefix("0.0.0.0/0").contains(address("2001:db8::1")));
    EXPECT_TRUE(prefix("::/0").contains(address("2001:db8::1")));
    EXPECT_TRUE(prefix("::/0").contains(address("::")));
    EXPECT_FALSE(prefix("::/0").contains(address("192.0.2.1")));
    EXPECT_FALSE(prefix("0.0.0.0/0").is_host());
}

TEST(Prefix, ContainsNarrowerPrefixes) {
    EXPECT_TRUE(prefix("198.51.100.0/24").contains(prefix("198.51.100.64/26")));
    EXPECT_TRUE(prefix("198.51.100.0/24").contains(prefix("198.51.100.0/24")));
    EXPECT_FALSE(prefix("198.51.100.64/26").contains(prefix("198.51.100.0/24")));
    EXPECT_FALSE(prefix("::/0").contains(prefix("192.0.2.0/24")));
    EXPECT_TRUE(prefix("192.0.2.48/28").contains(prefix("192.0.2.52")));
    EXPECT_FALSE(prefix("192.0.2.48/28").contains(prefix("192.0.2.64")));
}

TEST(Prefix, IsBuiltFromParts) {
    EXPECT_EQ(*Prefix::make(address("192.0.2.77"), 24), prefix("192.0.2.0/24"));
    EXPECT_EQ(Prefix::host(address("192.0.2.77")), prefix("192.0.2.77"));
    EXPECT_TRUE(Prefix::host(address("2001:db8::1")).is_host());
    EXPECT_FALSE(Prefix::make(address("192.0.2.77"), 33));
    EXPECT_FALSE(Prefix::make(address("2001:db8::1"), 129));
    EXPECT_EQ(Prefix{}, prefix("::/0"));
}

}  // namespace
}  // namespace sluice
