#include "base/quantities.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace sluice {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

template <class T>
struct Reading {
    const char* text;
    T value;
    const char* shown = nullptr;  // where it differs from `text`

    [[nodiscard]] std::string expected_text() const { return shown == nullptr ? text : shown; }
};

struct Refusal {
    const char* text;
    const char* reason;
};

class Durations : public testing::TestWithParam<Reading<nanoseconds>> {};

TEST_P(Durations, AreReadExactlyAndShownBack) {
    const auto duration = parse_duration(GetParam().text);
    ASSERT_TRUE(duration) << duration.error().message;
    EXPECT_EQ(*duration, GetParam().value);
    EXPECT_EQ(format_duration(*duration), GetParam().expected_text());
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Durations,
    testing::Values(Reading<nanoseconds>{"250ms", 250ms}, Reading<nanoseconds>{"10s", 10s},
                    Reading<nanoseconds>{"90s", 90s}, Reading<nanoseconds>{"5m", 5min},
                    Reading<nanoseconds>{"1h", 1h}, Reading<nanoseconds>{"2d", 48h},
                    Reading<nanoseconds>{"1.5h", 90min, "90m"},
                    Reading<nanoseconds>{"0.25s", 250ms, "250ms"},
                    Reading<nanoseconds>{"1.000000000h", 1h, "1h"}, Reading<nanoseconds>{"0s", 0s},
                    Reading<nanoseconds>{"1h30m", 90min, "90m"},
                    Reading<nanoseconds>{"1d2h3m4s5ms", 26h + 3min + 4s + 5ms, "93784005ms"},
                    Reading<nanoseconds>{"7us", 7us}, Reading<nanoseconds>{"1ns", 1ns},
                    // Beyond 2^31 and 2^32 milliseconds.
                    Reading<nanoseconds>{"2419200s", 28 * 24h, "28d"},
                    Reading<nanoseconds>{"31536000s", 365 * 24h, "365d"},
                    Reading<nanoseconds>{"106751d", 106'751 * 24h}));

class BadDurations : public testing::TestWithParam<Refusal> {};

TEST_P(BadDurations, AreRefusedWithReasonAndExample) {
    const auto duration = parse_duration(GetParam().text);
    ASSERT_FALSE(duration) << format_duration(*duration);
    EXPECT_EQ(duration.error().message,
              '"' + std::string(GetParam().text) + "\" " + GetParam().reason);
    EXPECT_NE(duration.error().hint.find("such as \"10s\""), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadDurations,
    testing::Values(Refusal{"", "is empty"}, Refusal{"10", "has no unit"},
                    Refusal{"s", "does not start with a number"}, Refusal{"-5s", "is negative"},
                    Refusal{"-55m9s", "is negative"},
                    Refusal{"+5s", "does not start with a number"},
                    Refusal{" 5s", "does not start with a number"},
                    Refusal{"5 s", "has the unknown unit \" s\""},
                    Refusal{"5s ", "has the unknown unit \"s \""},
                    Refusal{"5S", "has the unknown unit \"S\""},
                    Refusal{"5w", "has the unknown unit \"w\""},
                    Refusal{"1e3s", "has the unknown unit \"e3s\""},
                    Refusal{"1.s", "has no digit behind its decimal point"},
                    Refusal{".5s", "does not start with a number"},
                    Refusal{"1.0000000000s", "has too many digits"},
                    Refusal{"0.1ns", "is finer than a nanosecond"},
                    Refusal{"99999999999999999999s", "is too large a number"}));

TEST(Duration, TooLongOnesNameTheLongest) {
    for (const char* text : {"106752d", "9223372036855ms.", "18446744073709551615d"}) {
        const auto duration = parse_duration(text);
        ASSERT_FALSE(duration) << text;
    }
    EXPECT_EQ(parse_duration("106752d").error().message, "\"106752d\" is too long");
    EXPECT_EQ(parse_duration("106752d").error().hint, "use at most \"106751d\"");
}

TEST(Duration, APartIsRefusedByItself) {
    EXPECT_EQ(parse_duration("1h30x").error().message, "\"30x\" has the unknown unit \"x\"");
    EXPECT_EQ(parse_duration("1h30").error().message, "\"30\" has no unit");
}

TEST(Duration, UnitsComeLargestFirst) {
    for (const char* text : {"30m1h", "1h1h", "1s1m30s"})
        EXPECT_EQ(parse_duration(text).error().message,
                  '"' + std::string(text) + "\" has its units in no order");
    EXPECT_EQ(parse_duration("106751d24h").error().message, "\"106751d24h\" is too long");
}

TEST(Duration, NegativeOnesAreShownWithTheirSign) {
    EXPECT_EQ(format_duration(-90s), "-90s");
    EXPECT_EQ(format_duration(nanoseconds::min()), "-9223372036854775808ns");
}

class Rates : public testing::TestWithParam<Reading<Rate>> {};

TEST_P(Rates, AreReadExactlyAndShownBack) {
    const auto rate = parse_rate(GetParam().text);
    ASSERT_TRUE(rate) << rate.error().message;
    EXPECT_EQ(*rate, GetParam().value);
    EXPECT_EQ(format_rate(*rate), GetParam().expected_text());
    EXPECT_EQ(*parse_rate(format_rate(*rate)), *rate);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Rates,
    testing::Values(
        Reading<Rate>{"20/s", {20, 1s}}, Reading<Rate>{"3/m", {3, 1min}},
        Reading<Rate>{"60/m", {60, 1min}}, Reading<Rate>{"1/h", {1, 1h}},
        Reading<Rate>{"20k/s", {20'000, 1s}}, Reading<Rate>{"20000/s", {20'000, 1s}, "20k/s"},
        Reading<Rate>{"1.5M/s", {1'500'000, 1s}}, Reading<Rate>{"1.5k/m", {1'500, 1min}},
        Reading<Rate>{"1234567/s", {1'234'567, 1s}}, Reading<Rate>{"0.5/s", {1, 2s}},
        Reading<Rate>{"0.125/s", {1, 8s}}, Reading<Rate>{"0.001k/s", {1, 1s}, "1/s"},
        Reading<Rate>{"18446744073709551615/s", {std::numeric_limits<uint64_t>::max(), 1s}}));

class BadRates : public testing::TestWithParam<Refusal> {};

TEST_P(BadRates, AreRefusedWithReasonAndExample) {
    const auto rate = parse_rate(GetParam().text);
    ASSERT_FALSE(rate) << format_rate(*rate);
    EXPECT_EQ(rate.error().message, '"' + std::string(GetParam().text) + "\" " + GetParam().reason);
    EXPECT_NE(rate.error().hint.find("\"20/s\""), std::string::npos);
    EXPECT_EQ(rate.error().code, ErrorCode::usage);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, BadRates,
    testing::Values(Refusal{"", "is empty"}, Refusal{"0/s", "is zero"},
                    Refusal{"0.0k/h", "is zero"},
                    Refusal{"20", "has no time such as \"/s\" at its end"},
                    Refusal{"20/", "is not per second (/s), minute (/m) or hour (/h)"},
                    Refusal{"20/d", "is not per second (/s), minute (/m) or hour (/h)"},
                    Refusal{"20/10s", "is not per second (/s), minute (/m) or hour (/h)"},
                    Refusal{"20K/s", "has the unknown unit \"K\""},
                    Refusal{"20 /s", "has the unknown unit \" \""},
                    Refusal{"2MB/s", "has the unknown unit \"MB\""}, Refusal{"-1/s", "is negative"},
                    Refusal{"/s", "does not start with a number"},
                    Refusal{"inf/s", "does not start with a number"},
                    Refusal{"1e9/s", "has the unknown unit \"e9\""},
                    Refusal{"18446744073709551616/s", "is too large a number"},
                    Refusal{"18446744073709551615k/s", "is too large"},
                    Refusal{"0.000000001/h", "is too slow to count"}));

class ByteRates : public testing::TestWithParam<Reading<Rate>> {};

TEST_P(ByteRates, AreReadExactlyAndShownBack) {
    const auto rate = parse_byte_rate(GetParam().text);
    ASSERT_TRUE(rate) << rate.error().message;
    EXPECT_EQ(*rate, GetParam().value);
    EXPECT_EQ(format_byte_rate(*rate), GetParam().expected_text());
    EXPECT_EQ(*parse_byte_rate(format_byte_rate(*rate)), *rate);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, ByteRates,
    testing::Values(Reading<Rate>{"2MB/s", {2'000'000, 1s}}, Reading<Rate>{"500B/s", {500, 1s}},
                    Reading<Rate>{"1.5kB/m", {1'500, 1min}},
                    Reading<Rate>{"10GB/h", {10'000'000'000, 1h}},
                    Reading<Rate>{"64KiB/s", {65'536, 1s}, "65536B/s"},
                    Reading<Rate>{"1MiB/s", {1'048'576, 1s}, "1048576B/s"},
                    Reading<Rate>{"2GiB/s", {2'147'483'648, 1s}, "2147483648B/s"},
                    Reading<Rate>{"100Mbit/s", {12'500'000, 1s}, "12.5MB/s"},
                    Reading<Rate>{"10Gbit/s", {1'250'000'000, 1s}, "1.25GB/s"},
                    Reading<Rate>{"400Gbit/s", {50'000'000'000, 1s}, "50GB/s"},
                    Reading<Rate>{"8kbit/s", {1'000, 1s}, "1kB/s"},
                    Reading<Rate>{"1bit/s", {1, 8s}, "0.125B/s"}));

TEST(ByteRate, NeedAUnitOfBytes) {
    for (const char* text : {"2000/s", "2M/s", "2mb/s", "2MB", "0B/s", "2Mbps", "2MB/s/s"})
        EXPECT_FALSE(parse_byte_rate(text)) << text;
    EXPECT_EQ(parse_byte_rate("2000/s").error().message, "\"2000/s\" has no unit");
    EXPECT_NE(parse_byte_rate("2000/s").error().hint.find("\"2MB/s\""), std::string::npos);
}

class Sizes : public testing::TestWithParam<Reading<uint64_t>> {};

TEST_P(Sizes, AreReadExactlyAndShownBack) {
    const auto size = parse_size(GetParam().text);
    ASSERT_TRUE(size) << size.error().message;
    EXPECT_EQ(*size, GetParam().value);
    EXPECT_EQ(format_size(*size), GetParam().expected_text());
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Sizes,
    testing::Values(Reading<uint64_t>{"0B", 0}, Reading<uint64_t>{"1500B", 1'500, "1.5kB"},
                    Reading<uint64_t>{"64kB", 64'000}, Reading<uint64_t>{"1MB", 1'000'000},
                    Reading<uint64_t>{"1.5MB", 1'500'000}, Reading<uint64_t>{"64KiB", 65'536},
                    Reading<uint64_t>{"1MiB", 1'048'576},
                    Reading<uint64_t>{"1234567B", 1'234'567}));

TEST(Size, RefuseWhatIsNoWholeNumberOfBytes) {
    for (const char* text : {"", "1", "1k", "0.5B", "-1B", "1Mbit", "99999999999GiB"})
        EXPECT_FALSE(parse_size(text)) << text;
}

TEST(CountIn, RoundsDownAndSaturates) {
    EXPECT_EQ(count_in({20, 1s}, 1s), 20U);
    EXPECT_EQ(count_in({3, 1h}, 1s), 0U);
    EXPECT_EQ(count_in({3'000, 1s}, 50ms), 150U);
    EXPECT_EQ(count_in({19, 1s}, 100ms), 1U);
    EXPECT_EQ(count_in({20, 1s}, -1s), 0U);
    constexpr auto kMost = std::numeric_limits<uint64_t>::max();
    EXPECT_EQ(count_in({kMost, 1ns}, 1s), kMost);
}

TEST(TimeFor, RoundsUpAndKnowsWhatDoesNotFit) {
    EXPECT_EQ(time_for({3, 1s}, 1), 333'333'334ns);
    EXPECT_EQ(time_for({3, 1h}, 3), 1h);
    EXPECT_EQ(time_for({20, 1s}, 0), 0ns);
    EXPECT_EQ(time_for({1, 1h}, std::numeric_limits<uint64_t>::max()), std::nullopt);
}

}  // namespace
}  // namespace sluice
