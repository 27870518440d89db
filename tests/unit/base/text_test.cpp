#include "base/text.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Text, WhatATerminalObeysIsShownInstead) {
    EXPECT_EQ(printable("\x1b[31mRED\x1b]0;t\x07"), "\\x1b[31mRED\\x1b]0;t\\x07");
    EXPECT_EQ(printable("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
    EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
    // C1, alone and as UTF-8.
    EXPECT_EQ(printable("\x9b"
                        "1m"),
              "\\x9b1m");
    EXPECT_EQ(printable("\xc2\x9b"
                        "1m"),
              "\\u009b1m");
}

TEST(Text, WhatDeceivesTheEyeIsShownInstead) {
    EXPECT_EQ(printable("\u202egnp\u2066\u200f\u061c\u2028"),
              "\\u202egnp\\u2066\\u200f\\u061c\\u2028");
}

TEST(Text, OtherTextStays) {
    for (const char* text : {"", "plain", "größer \"x\" \\", "日本語", "\U0001f600", "…", "\u200b"})
        EXPECT_EQ(printable(text), text);
}

TEST(Text, BytesThatAreNoUtf8AreShown) {
    EXPECT_EQ(printable("\xff"), "\\xff");
    EXPECT_EQ(printable("\xe2\x80"), "\\xe2\\x80");           // cut short
    EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");           // longer than needed
    EXPECT_EQ(printable("\xe0\x82\x9b"), "\\xe0\\x82\\x9b");  // the same, of a control character
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
    EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Text, LinesStayLinesWhereTheyAreMeant) {
    EXPECT_EQ(printable_lines("a\n\tb\r\nc\rd\x1b"), "a\n\tb\r\nc\\rd\\x1b");
}

TEST(Text, QuotesAreShort) {
    EXPECT_EQ(in_quotes("tcp/443"), "\"tcp/443\"");
    const std::string most(kLongestQuote, 'x');
    EXPECT_EQ(in_quotes(most), '"' + most + '"');
    EXPECT_EQ(in_quotes(most + "yz"), '"' + most + "…\"");
    EXPECT_EQ(shortened("ab\u00e4", 3), "ab…");
    EXPECT_EQ(shortened("\u00e4\u00e4", 2), "\u00e4…");
    EXPECT_EQ(shortened("\x80\x80\x80\x80\x80\x80\x80", 6), "\x80\x80\x80…");
}

}  // namespace
}  // namespace sluice
