// Members of another limiter's whitelist.
#include "fleet/rl_whitelist.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}
// Of 4 or 16 bytes.
std::string bytes(const char* text) {
    const IpAddress parsed = address(text);
    const auto& all = parsed.bytes();
    const size_t skipped = parsed.family() == Family::ipv4 ? 12 : 0;
    return {all.begin() + static_cast<std::ptrdiff_t>(skipped), all.end()};
}

TEST(RlWhitelist, AddressesAreTextOrBytesWithAndWithoutAMark) {
    for (const char* text : {"192.0.2.7", "2001:db8::7", "58.58.49.50", "0.0.0.1"})
        for (const std::string& mark : {std::string(), std::string("ip:")}) {
            EXPECT_EQ(parse_rl_address(mark + text), address(text)) << mark << text;
            EXPECT_EQ(parse_rl_address(mark + bytes(text)), address(text)) << mark << text;
        }
    // 16 characters of text.
    EXPECT_EQ(parse_rl_address("2001:db8:0:1::25"), address("2001:db8:0:1::25"));
    EXPECT_EQ(parse_rl_address("::ffff:192.0.2.7"), address("192.0.2.7"));
}

TEST(RlWhitelist, OthersAreCounted) {
    RlWhitelist whitelist;
    for (const std::string& member :
         {std::string("uid:17"), std::string("dfp:abcdef"), std::string("192.0.2.7"),
          std::string("ip:192.0.2.7"), std::string(), std::string("192.0.2.0/24"),
          std::string("ip:uid:1"), std::string("\x1b[31mevil"), std::string(5000, 'x')})
        whitelist.add(member);
    EXPECT_EQ(whitelist.addresses, std::set{address("192.0.2.7")});
    EXPECT_EQ(whitelist.skipped, 2U);
    EXPECT_EQ(whitelist.refused, 5U);
    EXPECT_EQ(whitelist.first_refused, "");
    RlWhitelist hostile;
    hostile.add("\x1b[31m" + std::string(5000, 'x'));
    EXPECT_LT(hostile.first_refused.size(), 120U);
    EXPECT_EQ(hostile.first_refused.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace sluice
