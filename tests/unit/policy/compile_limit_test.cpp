// Compiled limits, run by the packet path's own arithmetic over invented time.
#include "policy/compile_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <vector>

#include "base/quantities.h"
#include "policy/gcra_bucket.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr ClockFacts kClock{4'000'000, 8'000'000};  // 250 Hz
constexpr uint64_t kStartNs = 5'000'000'000'123;
constexpr uint64_t kSecondNs = 1'000'000'000;

TokenBucket bucket(uint64_t count, std::chrono::nanoseconds per, uint64_t burst) {
    return {{count, per}, burst};
}

sluice_limit compiled(const TokenBucket& b, Dimension dimension = Dimension::packets,
                      ScaleRange scales = {}) {
    const auto limit = compile_limit(b, dimension, kClock, scales);
    EXPECT_TRUE(limit) << (limit ? "" : limit.error().message);
    return limit ? *limit : sluice_limit{};
}

double exactly(const TokenBucket& b, uint64_t elapsed_ns) {
    return static_cast<double>(b.burst) + static_cast<double>(b.rate.count) *
                                              static_cast<double>(elapsed_ns) /
                                              static_cast<double>(b.rate.per.count());
}

// --- admitted is burst + rate·T ----------------------------------------------------------------

struct RateCase {
    const char* name;
    TokenBucket bucket;
    Dimension dimension;
    uint64_t elapsed_ns;
    uint64_t packet = 1;
};
void PrintTo(const RateCase& c, std::ostream* out) {
    *out << c.name;
}

class CompiledRates : public ::testing::TestWithParam<RateCase> {};

TEST_P(CompiledRates, AdmitsBurstAndRateUnderAFlood) {
    const RateCase& c = GetParam();
    const sluice_limit limit = compiled(c.bucket, c.dimension);
    GcraBucket source(limit);
    const double per_packet = static_cast<double>(c.bucket.rate.per.count()) *
                              static_cast<double>(c.packet) /
                              static_cast<double>(c.bucket.rate.count);
    const auto step = std::max<uint64_t>(1, static_cast<uint64_t>(per_packet / 3));
    uint64_t admitted = 0;
    for (uint64_t i = 0; i < c.bucket.burst / c.packet; ++i)
        admitted += source.admit(kStartNs, c.packet) ? c.packet : 0;
    for (uint64_t t = step; t <= c.elapsed_ns; t += step)
        admitted += source.admit(kStartNs + t, c.packet) ? c.packet : 0;
    admitted += source.admit(kStartNs + c.elapsed_ns, c.packet) ? c.packet : 0;
    const double allowed = std::floor(exactly(c.bucket, c.elapsed_ns));
    EXPECT_LE(static_cast<double>(admitted), 1.001 * allowed);
    // Where the coarse clock decides, its lag is taken from the burst.
    const double lag = limit.exact == 1 ? 0 : kClock.lag_ns * static_cast<double>(c.packet);
    EXPECT_GE(static_cast<double>(admitted + c.packet - 1), 0.98 * (allowed - lag / per_packet));
}

INSTANTIATE_TEST_SUITE_P(
    All, CompiledRates,
    ::testing::Values(
        RateCase{"one_in_two_days", bucket(1, 48h, 1), Dimension::connections,
                 200ULL * 86400 * kSecondNs},
        RateCase{"one_an_hour", bucket(1, 1h, 1), Dimension::connections,
                 1000ULL * 3600 * kSecondNs},
        RateCase{"seven_an_hour", bucket(7, 1h, 3), Dimension::data, 100ULL * 3600 * kSecondNs},
        RateCase{"one_a_second", bucket(1, 1s, 1), Dimension::data, 1000 * kSecondNs},
        RateCase{"three_a_second", bucket(3, 1s, 3), Dimension::data, 1000 * kSecondNs},
        RateCase{"twenty_a_second", bucket(20, 1s, 20), Dimension::data, 1000 * kSecondNs},
        RateCase{"thousand", bucket(1000, 1s, 1000), Dimension::packets, 60 * kSecondNs},
        RateCase{"twenty_thousand", bucket(20'000, 1s, 20'000), Dimension::packets, 10 * kSecondNs},
        RateCase{"odd_333_333", bucket(333'333, 1s, 1000), Dimension::packets, 3 * kSecondNs},
        RateCase{"million", bucket(1'000'000, 1s, 10'000), Dimension::packets, kSecondNs},
        RateCase{"seventy_five_million", bucket(75'000'000, 1s, 200'000), Dimension::packets,
                 kSecondNs / 50},
        RateCase{"hundred_million", bucket(100'000'000, 1s, 200'000), Dimension::packets,
                 kSecondNs / 50},
        RateCase{"hundred_kbit", bucket(12'500, 1s, 65'550), Dimension::bytes, 600 * kSecondNs,
                 150},
        RateCase{"two_megabytes", bucket(2'000'000, 1s, 2'000'000), Dimension::bytes,
                 100 * kSecondNs, 1500},
        RateCase{"ten_gbit", bucket(1'250'000'000, 1s, 12'500'000), Dimension::bytes, kSecondNs,
                 1500},
        RateCase{"four_hundred_gbit", bucket(50'000'000'000, 1s, 2'500'000'000), Dimension::bytes,
                 kSecondNs / 20, 1500}),
    [](const auto& of) { return of.param.name; });

// --- cost --------------------------------------------------------------------------------------

TEST(CompileLimit, CostIsNeverBelowTheWrittenRateAndAtMost2e5Above) {
    for (double rate = 1e-5; rate < 5e10; rate *= 1.37) {
        const uint64_t count = rate < 1 ? 1 : static_cast<uint64_t>(rate);
        const auto per = rate < 1 ? std::chrono::nanoseconds(static_cast<int64_t>(1e9 / rate))
                                  : std::chrono::nanoseconds(1s);
        const auto limit = compile_limit(bucket(count, per, std::max<uint64_t>(65'550, count)),
                                         Dimension::bytes, kClock);
        if (!limit)
            continue;  // so slow that 64 KiB take more than two days
        const long double cost = std::ldexp(static_cast<long double>(limit->multiplier), 8) /
                                 std::ldexp(1.0L, limit->shift);
        const long double exact =
            static_cast<long double>(per.count()) / static_cast<long double>(count) / 1024;
        EXPECT_GE(cost / exact, 1.0L - 1e-15L) << count;
        EXPECT_LE(cost / exact, 1.0L + 2e-5L) << count;
        EXPECT_LE(limit->shift, 40);
    }
}

TEST(CompileLimit, LargestChargeOfTheSmallestClassDoesNotOverflow) {
    sluice_limit limit{};
    limit.multiplier = ~0U;
    limit.shift = 40;
    const uint32_t inverse_scale = SLUICE_MAX_SCALE << 16;
    const uint64_t cost = sluice_cost(&limit, SLUICE_MAX_CHARGE, inverse_scale, ~0ULL);
    const auto exact = static_cast<unsigned __int128>(limit.multiplier) * SLUICE_MAX_SCALE *
                           SLUICE_MAX_CHARGE * 256 +
                       (1ULL << 40) - 1;
    EXPECT_EQ(cost, static_cast<uint64_t>(exact >> 40));
}

TEST(CompileLimit, BurstIsExactAtOrdinaryRates) {
    for (const uint64_t rate : {1, 3, 7, 20, 60, 300, 999})
        for (const uint64_t burst : {1, 2, 5, 30, 100}) {
            GcraBucket source(compiled(bucket(rate, 1s, burst)));
            const bool coarse = compiled(bucket(rate, 1s, burst)).exact == 0;
            const uint64_t passed = source.admit_of(kStartNs, 2 * burst);
            EXPECT_LE(passed, burst) << rate;
            // With the coarse clock its lag is taken from the burst.
            const uint64_t lag = coarse ? rate * kClock.lag_ns / kSecondNs + 1 : 0;
            EXPECT_GE(passed + lag, burst) << rate;
        }
}

TEST(CompileLimit, SenderAtExactlyTheRateLosesAlmostNothing) {
    for (const uint64_t rate : {3, 7, 30, 150}) {
        GcraBucket source(compiled(bucket(rate, 1s, 1)));
        constexpr uint64_t kTries = 20'000;
        uint64_t passed = 0;
        for (uint64_t i = 0; i < kTries; ++i)
            passed += source.admit(kStartNs + i * kSecondNs / rate) ? 1 : 0;
        EXPECT_GE(passed, kTries * 99 / 100) << rate;
    }
}

// --- classes -----------------------------------------------------------------------------------

TEST(CompileLimit, ScaleMultipliesTheRate) {
    for (const double scale : {1.0 / 64, 0.5, 1.0, 2.0, 64.0}) {
        const TokenBucket b = bucket(1000, 1s, 1000);
        const auto inverse = static_cast<uint32_t>(std::ceil(SLUICE_SCALE_ONE / scale));
        GcraBucket source(compiled(b, Dimension::packets, {1.0 / 64, 64}), inverse);
        (void)source.admit_of(kStartNs, 200'000);  // the burst
        uint64_t admitted = 0;
        for (uint64_t t = 1; t <= 20 * kSecondNs; t += 5'000)
            admitted += source.admit(kStartNs + t) ? 1 : 0;
        EXPECT_NEAR(static_cast<double>(admitted), 20'000 * scale, 20'000 * scale * 0.005 + 1);
    }
}

TEST(CompileLimit, SmallestClassMustBeAbleToPassTheLargestPacket) {
    const auto refused =
        compile_limit(bucket(1'000'000, 1s, 100'000), Dimension::bytes, kClock, {0.5, 1});
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().hint, HasSubstr("131100"));
    EXPECT_TRUE(compile_limit(bucket(1'000'000, 1s, 131'100), Dimension::bytes, kClock, {0.5, 1}));
    EXPECT_FALSE(compile_limit(bucket(1, 1h, 1), Dimension::data, kClock, {1.0 / 64, 1}));
    EXPECT_TRUE(compile_limit(bucket(2, 1h, 1), Dimension::data, kClock, {1.0 / 64, 1}));
}

// --- clocks ------------------------------------------------------------------------------------

TEST(CompileLimit, ChoosesTheClock) {
    EXPECT_EQ(compiled(bucket(1000, 1s, 1000)).exact, 0);
    EXPECT_EQ(compiled(bucket(1000, 1s, 31)).exact, 1) << "a burst of less than 8 ticks";
    EXPECT_EQ(compiled(bucket(1000, 1s, 40)).exact, 0);
    EXPECT_EQ(compiled(bucket(20, 1s, 100)).exact, 1) << "one takes longer than a tick";
    const uint64_t lag_units = (kClock.lag_ns + 1023) / 1024;
    const auto fine = compile_limit(bucket(1000, 1s, 1000), Dimension::data, {0, 0});
    EXPECT_EQ(compiled(bucket(1000, 1s, 1000)).span, fine->span - lag_units);
}

// A coarse clock that stands still, and is up to `lag` behind, for as long as it can.
uint64_t coarse(uint64_t fine_ns, uint64_t phase_ns) {
    const uint64_t step = kClock.lag_ns;
    return (fine_ns + phase_ns) / step * step - phase_ns;
}

TEST(CompileLimit, LaggingClockNeverAdmitsMoreThanBurstAndRate) {
    const TokenBucket b = bucket(5000, 1s, 200);
    const sluice_limit limit = compiled(b);
    ASSERT_EQ(limit.exact, 0);
    for (uint64_t phase = 0; phase < kClock.lag_ns; phase += 777'777) {
        GcraBucket source(limit);
        std::vector<uint64_t> admitted;
        for (uint64_t t = 0; t < kSecondNs; t += 20'000)
            if (t % 300'000'000 < 150'000'000 &&  // pauses, in which the bucket fills
                source.admit(coarse(kStartNs + t, phase)))
                admitted.push_back(t);
        for (size_t first = 0; first < admitted.size(); first += 7)
            for (size_t last = first; last < admitted.size(); last += 3)
                ASSERT_LE(static_cast<double>(last - first + 1),
                          exactly(b, admitted[last] - admitted[first]) + 1);
        EXPECT_GE(static_cast<double>(admitted.size()), 0.9 * (200 * 3 + 5000 * 0.5));
    }
}

// --- ranges ------------------------------------------------------------------------------------

TEST(CompileLimit, RefusesWhatDoesNotFitAndNamesWhatDoes) {
    const auto refusal = [](const TokenBucket& b, Dimension dimension) {
        const auto limit = compile_limit(b, dimension, kClock);
        return limit ? std::string("accepted") : limit.error().message + "; " + limit.error().hint;
    };
    EXPECT_THAT(refusal(bucket(1, 49h, 1), Dimension::data), HasSubstr("takes more than 2d"));
    EXPECT_THAT(refusal(bucket(1, 1h, 49), Dimension::data), HasSubstr("at most 48"));
    EXPECT_THAT(refusal(bucket(2'000'000'000, 1s, 1), Dimension::packets),
                HasSubstr("is above 1000M/s"));
    EXPECT_THAT(refusal(bucket(60'000'000'000, 1s, 100'000'000), Dimension::bytes),
                HasSubstr("50GB/s"));
    EXPECT_THAT(refusal(bucket(2'000'000, 1s, 1000), Dimension::bytes), HasSubstr("65550 bytes"));
    EXPECT_THAT(refusal(bucket(1, 1h, 1), Dimension::bytes), HasSubstr("use at least"));
    EXPECT_THAT(refusal(bucket(1, 1s, 0), Dimension::data), HasSubstr("burst of 0"));
    EXPECT_THAT(refusal(bucket(0, 1s, 1), Dimension::data), HasSubstr("rate of 0"));
}

TEST(CompileLimit, SlowestByteRateItNamesWorks) {
    const auto refused = compile_limit(bucket(1, 1h, 1), Dimension::bytes, kClock);
    ASSERT_FALSE(refused);
    const auto quoted = refused.error().hint.substr(refused.error().hint.find('"') + 1);
    const auto rate = parse_byte_rate(quoted.substr(0, quoted.find('"')));
    ASSERT_TRUE(rate) << quoted;
    const uint64_t burst = std::max<uint64_t>(1, count_in(*rate, 1s));
    EXPECT_TRUE(compile_limit({*rate, burst}, Dimension::bytes, kClock));
}

TEST(CompileLimit, RaisesADefaultBurstOfBytesToTheLargestPacket) {
    const auto slow = compiled(bucket(1000, 1s, 1000), Dimension::bytes);
    GcraBucket source(slow);
    EXPECT_TRUE(source.admit(kStartNs, SLUICE_MIN_BYTES_BURST));
    EXPECT_FALSE(source.admit(kStartNs, 60));
    EXPECT_TRUE(source.admit(kStartNs + kSecondNs, 60)) << "no debt is left";
}

// --- budgets -----------------------------------------------------------------------------------

TEST(CompileBudget, LeasesHoldTheRateWithin1e5AndNeverExceedIt) {
    for (double rate = 0.01; rate < 1e9; rate *= 1.173) {
        const uint64_t count = rate < 1 ? 1 : static_cast<uint64_t>(rate);
        const auto per = rate < 1 ? std::chrono::nanoseconds(static_cast<int64_t>(1e9 / rate))
                                  : std::chrono::nanoseconds(1s);
        const TokenBucket b = bucket(count, per, std::max<uint64_t>(1, count / 20));
        const auto budget = compile_budget(b, Dimension::data, kClock);
        ASSERT_TRUE(budget) << count;
        const long double exact = static_cast<long double>(budget->lease) *
                                  static_cast<long double>(per.count()) /
                                  static_cast<long double>(count);
        const auto charged = static_cast<long double>(budget->lease_ns);
        EXPECT_GE(charged, exact - 1e-6L) << count;
        EXPECT_LE(charged, exact * (1 + 1e-5L)) << count;
        EXPECT_GE(budget->lease, 1U);
        EXPECT_TRUE(budget->lease == 1 || budget->lease <= b.burst / 2) << count;
        EXPECT_GE(budget->burst_ns, budget->lease_ns) << count;
        EXPECT_GE(budget->flush, 1U);
    }
}

TEST(CompileBudget, LeaseIsAboutFiftyMicroseconds) {
    const auto budget = compile_budget(bucket(1'000'000, 1s, 50'000), Dimension::data, kClock);
    ASSERT_TRUE(budget);
    EXPECT_EQ(budget->lease, 50U);
    EXPECT_EQ(budget->lease_ns, 50'000U);
    EXPECT_EQ(budget->exact, 0U);
    EXPECT_EQ(budget->burst_ns, 50'000'000 - kClock.lag_ns);
}

TEST(CompileBudget, SlowBudgetsKeepTheirWholeBurst) {
    const auto budget = compile_budget(bucket(20, 1s, 20), Dimension::data, kClock);
    ASSERT_TRUE(budget);
    EXPECT_EQ(budget->lease, 1U);
    EXPECT_EQ(budget->exact, 1U) << "one takes longer than a tick";
    EXPECT_EQ(budget->burst_ns, kSecondNs);
}

TEST(CompileBudget, TooSmallABurstForAHighRateIsRefusedWithOneThatWorks) {
    const auto refused = compile_budget(bucket(3'333'333, 1s, 1), Dimension::data, kClock);
    ASSERT_FALSE(refused);
    const auto digits = refused.error().hint.find_last_of(' ') + 1;
    const uint64_t burst = std::stoull(refused.error().hint.substr(digits));
    EXPECT_TRUE(compile_budget(bucket(3'333'333, 1s, burst), Dimension::data, kClock));
}

// --- windows -----------------------------------------------------------------------------------

TEST(CompileWindow, LogsSmallLimitsAndCountsLargeOnesInCells) {
    const auto log = compile_window({10, 60s}, kClock);
    ASSERT_TRUE(log);
    EXPECT_EQ(log->limit, 10U);
    EXPECT_EQ(log->cell_ns, 0U);
    // The difference of two rounded times says that more than the window lies between them.
    EXPECT_GE((uint64_t{log->length} - 1) << SLUICE_WINDOW_SHIFT, 60 * kSecondNs + kClock.lag_ns);
    EXPECT_LE((uint64_t{log->length} - 3) << SLUICE_WINDOW_SHIFT, 60 * kSecondNs + kClock.lag_ns);

    EXPECT_EQ(compile_window({16, 60s}, kClock)->cell_ns, 0U);
    const auto cells = compile_window({17, 60s}, kClock);
    ASSERT_TRUE(cells);
    EXPECT_GE(cells->cell_ns * 15, 60 * kSecondNs + kClock.lag_ns);
    EXPECT_NE(compile_window({16, 60s}, kClock, {1, 2})->cell_ns, 0U)
        << "a class may log twice as many";
}

TEST(CompileWindow, RefusesWhatItCannotCount) {
    EXPECT_FALSE(compile_window({0, 60s}, kClock));
    EXPECT_FALSE(compile_window({65'536, 60s}, kClock));
    EXPECT_FALSE(compile_window({40'000, 60s}, kClock, {1, 2}));
    EXPECT_FALSE(compile_window({10, 2h}, kClock));
    EXPECT_FALSE(compile_window({10, 0s}, kClock));
}

}  // namespace
}  // namespace sluice
