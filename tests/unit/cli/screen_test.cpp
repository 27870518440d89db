// Text for people, in a pipe and in a terminal of some width.
#include "cli/screen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::cli {

namespace {

using ::testing::ElementsAre;

TEST(Wrap, BreaksAtTheLastSpaceThatFits) {
    EXPECT_THAT(wrap("one two three", 7), ElementsAre("one two", "three"));
    EXPECT_THAT(wrap("one two three", 13), ElementsAre("one two three"));
    EXPECT_THAT(wrap("one two three", 3), ElementsAre("one", "two", "three"));
}

TEST(Wrap, LeavesLongWordsWhole) {
    EXPECT_THAT(wrap("2001:db8:1:2:3:4:5:6 is banned", 8),
                ElementsAre("2001:db8:1:2:3:4:5:6", "is", "banned"));
    EXPECT_THAT(wrap("", 8), ElementsAre(""));
}

TEST(Wrap, CountsCharactersNotBytes) {
    EXPECT_THAT(wrap("über größe", 10), ElementsAre("über größe"));
}

TEST(Screen, APipeGetsLinesAsLongAsTheyAre) {
    Screen screen(false);
    screen.table({{"A"}, {"B"}}, {{{"a"}, {"one two three four five six seven eight nine ten"}}});
    EXPECT_EQ(screen.text(), "A  B\na  one two three four five six seven eight nine ten\n");
}

TEST(Screen, InATerminalTheLastColumnGoesOnBelowItself) {
    Screen screen(false, 30);
    screen.table({{"A"}, {"B"}}, {{{"a"}, {"one two three four five six seven"}}, {{"b"}, {"x"}}});
    EXPECT_EQ(screen.text(),
              "A  B\n"
              "a  one two three four five six\n"
              "   seven\n"
              "b  x\n");
}

TEST(Screen, SoDoValuesAndItems) {
    Screen screen(false, 30);
    screen.fields({{"label", {"one two three four five six"}}});
    screen.item("one two three four five six seven");
    EXPECT_EQ(screen.text(),
              "label  one two three four five\n"
              "       six\n"
              "- one two three four five six\n"
              "  seven\n");
}

TEST(Screen, WhereThereIsNoRoomForWordsLinesStayWhole) {
    Screen screen(false, 20);
    screen.fields({{"label", {"one two three four five six"}}});
    EXPECT_EQ(screen.text(), "label  one two three four five six\n");
}

}  // namespace

}  // namespace sluice::cli
