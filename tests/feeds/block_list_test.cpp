#include "feeds/block_list.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

BanFeed feed() {
    BanFeed feed;
    feed.most_growth = 4;
    feed.most_shrink = 2;
    return feed;
}

TEST(AUsualChange, IsAnyOfTheFirstList) {
    EXPECT_TRUE(is_usual_change(feed(), 0, 1));
    EXPECT_TRUE(is_usual_change(feed(), 0, 1'000'000));
}

TEST(AUsualChange, IsNoMoreThanFourTimesAndNoLessThanHalf) {
    EXPECT_TRUE(is_usual_change(feed(), 1000, 4000));
    EXPECT_FALSE(is_usual_change(feed(), 1000, 4001));
    EXPECT_TRUE(is_usual_change(feed(), 1000, 500));
    EXPECT_FALSE(is_usual_change(feed(), 1000, 499));
}

TEST(AUsualChange, IsAFewEntriesOfAShortList) {
    EXPECT_TRUE(is_usual_change(feed(), 2, 18));
    EXPECT_FALSE(is_usual_change(feed(), 2, 19));
    EXPECT_TRUE(is_usual_change(feed(), 17, 1));
    EXPECT_FALSE(is_usual_change(feed(), 18, 1));
}

}  // namespace
}  // namespace sluice
