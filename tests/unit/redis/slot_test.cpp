#include "redis/slot.h"

#include <gtest/gtest.h>

namespace sluice::redis {
namespace {

TEST(RedisSlot, IsTheCrcOfTheKey) {
    EXPECT_EQ(slot_of("123456789"), 0x31c3);  // the check value of CRC-16/XMODEM
    EXPECT_EQ(slot_of(""), 0);
    EXPECT_EQ(slot_of("foo"), 12'182);
}

TEST(RedisSlot, OfAHashTagIsThatOfWhatItHolds) {
    EXPECT_EQ(slot_of("sluice:{F:l7}"), slot_of("F:l7"));
    EXPECT_EQ(slot_of("sluice:{F:l7}:expiry"), slot_of("F:l7"));
    EXPECT_EQ(slot_of("{a}{b}"), slot_of("a"));
    EXPECT_EQ(slot_of("{{a}}"), slot_of("{a"));
    // No tag: nothing in it, not closed, closed before it is opened.
    EXPECT_NE(slot_of("{}a"), slot_of("a"));
    EXPECT_NE(slot_of("{}{a}"), slot_of("a"));
    EXPECT_NE(slot_of("{a"), slot_of("a"));
    EXPECT_NE(slot_of("}a{"), slot_of("a"));
}

}  // namespace
}  // namespace sluice::redis
