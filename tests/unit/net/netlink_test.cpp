#include "net/netlink.h"

#include <gtest/gtest.h>
#include <linux/genetlink.h>

#include <array>

namespace sluice {
namespace {

Bytes bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.c_str(), text.size() + 1));
}

TEST(Netlink, AttributesAreReadAsTheyAreWritten) {
    const std::string odd = "abcde";
    const uint32_t number = 7;
    std::vector<std::byte> request = attribute(1, bytes_of(odd));
    const auto second = attribute(2, std::as_bytes(std::span(&number, 1)));
    EXPECT_EQ(request.size() % 4, 0U);
    request.insert(request.end(), second.begin(), second.end());
    const auto read = parse_attributes(request);
    ASSERT_EQ(read.size(), 2U);
    EXPECT_EQ(read.at(1).size(), odd.size() + 1);
    EXPECT_EQ(read_number(read.at(2)), 7U);
}

TEST(Netlink, NumbersAreOfAnySize) {
    const uint64_t wide = 5'000'000'000;
    const uint16_t narrow = 500;
    const std::array<std::byte, 1> least{std::byte{9}};
    EXPECT_EQ(read_number(std::as_bytes(std::span(&wide, 1))), wide);
    EXPECT_EQ(read_number(std::as_bytes(std::span(&narrow, 1))), narrow);
    EXPECT_EQ(read_number(least), 9U);
    EXPECT_EQ(read_number({}), 0U);
}

// Every kernel has the family that knows the others.
TEST(Netlink, AsksFamiliesByTheirName) {
    std::string answered;
    const Status asked =
        ask_family("nlctrl", CTRL_CMD_GETFAMILY, Ask::one,
                   attribute(CTRL_ATTR_FAMILY_NAME, bytes_of("nlctrl")), [&](Bytes answer) {
                       const auto name = parse_attributes(answer).at(CTRL_ATTR_FAMILY_NAME);
                       answered = reinterpret_cast<const char*>(name.data());
                   });
    ASSERT_TRUE(asked) << asked.error().message;
    EXPECT_EQ(answered, "nlctrl");
    size_t families = 0;
    ASSERT_TRUE(ask_family("nlctrl", CTRL_CMD_GETFAMILY, Ask::dump, {},
                           [&](Bytes /*answer*/) { ++families; }));
    EXPECT_GE(families, 1U);
}

TEST(Netlink, FamiliesThatDoNotExistAreNotFound) {
    const Status asked =
        ask_family("sluice-none", 1, Ask::one, {}, [](Bytes /*answer*/) { ADD_FAILURE(); });
    ASSERT_FALSE(asked);
    EXPECT_EQ(asked.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace sluice
