#include "policy/compile_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/quantities.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using Wide = unsigned __int128;

constexpr nanoseconds kLongestSpan{static_cast<int64_t>(SLUICE_MAX_SPAN_NS)};
// Beyond these the steps between two costs would be coarser than 1e-5 of a rate.
constexpr Rate kFastest{1'000'000'000, std::chrono::seconds(1)};
constexpr Rate kFastestBytes{50'000'000'000, std::chrono::seconds(1)};

constexpr unsigned kMostShift = 40;
constexpr unsigned kCostShift = 8;     // sluice_cost() shifts the multiplier up by this much
constexpr uint64_t kCoarseTicks = 8;   // shorter bursts would feel the coarse clock's steps
constexpr uint64_t kMostLagShare = 4;  // of a burst may go to the coarse clock's lag

Error refuse(std::string what, std::string mend) {
    return make_error(ErrorCode::usage, std::move(what), std::move(mend));
}

uint64_t ns(nanoseconds span) {
    return static_cast<uint64_t>(span.count());
}

Wide divide_up(Wide numerator, Wide denominator) {
    return (numerator + denominator - 1) / denominator;
}

std::string format(Rate rate, Dimension dimension) {
    return dimension == Dimension::bytes ? format_byte_rate(rate) : format_rate(rate);
}

std::string amount(uint64_t count, Dimension dimension) {
    return dimension == Dimension::bytes ? std::to_string(count) + " bytes" : std::to_string(count);
}

// The slowest whole rate at which `charge` takes at most the longest span.
Rate slowest(uint64_t charge) {
    const uint64_t hours = ns(kLongestSpan) / ns(std::chrono::hours(1));
    return {(charge + hours - 1) / hours, std::chrono::hours(1)};
}

// The largest packet under the smallest class must be paid off within the longest span, or its
// debt would not fit the word that holds it.
Status check_rate(Rate rate, Dimension dimension, double least_scale) {
    if (rate.count == 0 || rate.per <= nanoseconds::zero())
        return refuse("a rate of 0 would let nothing through", "use a rate such as \"20/s\"");
    const Rate fastest = dimension == Dimension::bytes ? kFastestBytes : kFastest;
    if (Wide{rate.count} * ns(fastest.per) > Wide{fastest.count} * ns(rate.per))
        return refuse(
            "the rate " + format(rate, dimension) + " is above " + format(fastest, dimension),
            "use at most \"" + format(fastest, dimension) + '"');
    const uint64_t charge = least_burst(dimension);
    const auto scaled =
        static_cast<uint64_t>(std::ceil(static_cast<double>(charge) / least_scale - 1e-9));
    if (Wide{scaled} * ns(rate.per) <= Wide{ns(kLongestSpan)} * rate.count)
        return {};
    std::string what = "at the rate " + format(rate, dimension) + " ";
    what += charge == 1 ? "one" : "a packet of " + amount(charge, dimension);
    if (least_scale < 1)
        what += " from the class with the smallest scale";
    return refuse(what + " takes more than " + format_duration(kLongestSpan),
                  "use at least \"" + format(slowest(scaled), dimension) + '"');
}

// A burst of bytes must hold the largest packet, or nothing of that size could ever pass without
// leaving a debt. A default is raised; what somebody wrote is refused.
Result<uint64_t> fitting_burst(const TokenBucket& bucket, Dimension dimension, double least_scale,
                               nanoseconds default_span) {
    uint64_t burst = bucket.burst;
    if (burst == 0)
        return refuse("a burst of 0 would let nothing through", "use a burst of at least 1");
    if (dimension == Dimension::bytes) {
        const auto least = static_cast<uint64_t>(
            std::ceil(static_cast<double>(SLUICE_MIN_BYTES_BURST) / least_scale - 1e-6));
        const bool is_default = burst == std::max<uint64_t>(1, count_in(bucket.rate, default_span));
        if (burst < least && !is_default)
            return refuse("a burst of " + amount(burst, dimension) +
                              " is less than the largest packet" +
                              (least_scale < 1 ? " under the smallest scale of a class" : ""),
                          "use a burst of at least " + amount(least, dimension));
        burst = std::max(burst, least);
    }
    const uint64_t most = count_in(bucket.rate, kLongestSpan);
    if (burst > most)
        return refuse("a burst of " + amount(burst, dimension) + " at " +
                          format(bucket.rate, dimension) + " takes more than " +
                          format_duration(kLongestSpan) + " to come back",
                      "use a burst of at most " + amount(most, dimension) + ", or a higher rate");
    return burst;
}

struct Cost {
    uint32_t multiplier;
    unsigned shift;

    // Units of `count` charges, rounded down and up.
    [[nodiscard]] Wide floor(uint64_t count) const {
        return Wide{count} * multiplier << kCostShift >> shift;
    }
    [[nodiscard]] Wide ceil(uint64_t count) const {
        return divide_up(Wide{count} * multiplier << kCostShift, Wide{1} << shift);
    }
};

// per ÷ count ns as multiplier × 2^8 ÷ 2^shift units of 2^10 ns, rounded up so that the rate never
// exceeds what is written. The largest shift that keeps the multiplier in 32 bits is the most
// exact one: 2^-31 for all rates below 500,000/s and 1.2e-5 at the very fastest.
// Nothing can overflow in sluice_cost(): with a class of 1/64 the multiplier has 38 bits, times
// SLUICE_MAX_CHARGE and 2^8 that makes 63, and the dither has 40.
Cost cost_of_one(Rate rate) {
    static_assert(SLUICE_MAX_CHARGE <= 1u << 17 && SLUICE_MAX_SCALE <= 64);
    const Wide denominator = Wide{rate.count} << (SLUICE_UNIT_SHIFT + kCostShift);
    for (unsigned shift = kMostShift; shift > 0; --shift) {
        const Wide multiplier = divide_up(Wide{ns(rate.per)} << shift, denominator);
        if (multiplier <= std::numeric_limits<uint32_t>::max())
            return {static_cast<uint32_t>(multiplier), shift};
    }
    // Not reached within two days a unit, which is 2^38 units.
    return {std::numeric_limits<uint32_t>::max(), 0};
}

uint64_t square_root(uint64_t value) {
    return static_cast<uint64_t>(std::sqrt(static_cast<double>(value)));
}

// Costs are dithered to whole units, so `burst` of them add up to a little more or less than the
// exact sum. This much above it lets a whole burst through all the same, and a sender that keeps
// exactly to the rate; it is a small part of one more event, never a whole one.
uint64_t dither_slack(const Cost& cost, uint64_t burst) {
    const auto one = static_cast<uint64_t>(cost.ceil(1));
    const Wide worst = Wide{burst} * one - cost.floor(burst);
    const uint64_t likely = 2 * square_root(burst);  // four standard deviations
    const uint64_t of_sum = worst < likely ? static_cast<uint64_t>(worst) : likely;
    constexpr uint64_t kOfClock = 16;
    return std::min(of_sum + std::min(one / 256, kOfClock), one / 2);
}

// The coarse clock is good enough where neither the burst nor a single event is short beside its
// steps; `event_ns` is the time of one.
bool coarse_suffices(Wide burst_ns, Wide event_ns, const ClockFacts& clock) {
    return event_ns <= clock.tick_ns && burst_ns >= Wide{kCoarseTicks} * clock.tick_ns &&
           burst_ns >= Wide{kMostLagShare} * clock.lag_ns;
}

// The best lease within [least, most]: the first whose time rounds up by at most 1e-5.
std::optional<uint32_t> exact_lease(Rate rate, uint64_t least, uint64_t most) {
    constexpr Wide kExactness = 100'000;
    for (uint64_t lease = least; lease <= most; ++lease) {
        const Wide exact = Wide{lease} * ns(rate.per);  // × count
        const Wide rounded = divide_up(exact, rate.count) * rate.count;
        if ((rounded - exact) * kExactness <= exact)
            return static_cast<uint32_t>(lease);
    }
    return std::nullopt;
}

// About 50 µs of the rate, but at most half the burst, so that leases do not hoard it.
Result<uint32_t> choose_lease(Rate rate, uint64_t burst) {
    constexpr uint64_t kSearched = 4;  // times as much makes any rate round well enough
    const Wide nearest = (Wide{rate.count} * SLUICE_LEASE_NS + ns(rate.per) / 2) / ns(rate.per);
    const uint64_t wanted = std::max<uint64_t>(1, static_cast<uint64_t>(nearest));
    const uint64_t most = std::max<uint64_t>(1, burst / 2);
    if (const auto lease =
            exact_lease(rate, std::min(wanted, most), std::min(kSearched * wanted, most)))
        return *lease;
    if (const auto lease = exact_lease(rate, 1, most))
        return *lease;
    const uint64_t needed = exact_lease(rate, most, kSearched * wanted).value_or(wanted);
    return refuse("a burst of " + std::to_string(burst) + " is too small for so high a rate",
                  "use a burst of at least " + std::to_string(2 * needed));
}

// What a CPU may hold back of the demand that shares are steered by: a hundredth of what the rate
// yields between two steerings, so that even many CPUs distort it little.
uint32_t flushed_demand(Rate rate) {
    constexpr nanoseconds kShare{SLUICE_STEER_NS / 100};
    return static_cast<uint32_t>(std::max<uint64_t>(1, count_in(rate, kShare)));
}

}  // namespace

// What one packet may have to be charged with in one go.
uint64_t least_burst(Dimension dimension) {
    return dimension == Dimension::bytes ? SLUICE_MIN_BYTES_BURST : 1;
}

sluice_budget_limit counted_only() {
    sluice_budget_limit limit{};
    limit.lease = limit.flush = 1;
    return limit;
}

TokenBucket share_of(const TokenBucket& whole, Dimension dimension, unsigned parts) {
    return {.rate = {whole.rate.count, whole.rate.per * parts},
            .burst = std::max(whole.burst / parts, least_burst(dimension))};
}

ScaleRange scale_range(const std::vector<SourceClass>& classes) {
    ScaleRange range;
    for (const SourceClass& source_class : classes) {
        range.least = std::min(range.least, source_class.scale);
        range.most = std::max(range.most, source_class.scale);
    }
    return range;
}

Result<sluice_limit> compile_limit(const TokenBucket& bucket, Dimension dimension,
                                   const ClockFacts& clock, ScaleRange scales) {
    if (const Status status = check_rate(bucket.rate, dimension, scales.least); !status)
        return status.error();
    const auto burst = fitting_burst(bucket, dimension, scales.least, kSourceDefaultBurst);
    if (!burst)
        return burst.error();

    const Cost cost = cost_of_one(bucket.rate);
    sluice_limit limit{};
    limit.multiplier = cost.multiplier;
    limit.shift = static_cast<uint8_t>(cost.shift);
    limit.span = static_cast<uint64_t>(cost.floor(*burst)) + dither_slack(cost, *burst);
    const Wide event_ns = divide_up(ns(bucket.rate.per), bucket.rate.count);
    limit.exact = coarse_suffices(Wide{limit.span} << SLUICE_UNIT_SHIFT, event_ns, clock) ? 0 : 1;
    // In any T the coarse clock may advance by T and its lag: without that lag in the burst no
    // more than burst + rate·T passes.
    if (limit.exact == 0)
        limit.span -= static_cast<uint64_t>(divide_up(clock.lag_ns, 1u << SLUICE_UNIT_SHIFT));
    // A burst of less than a unit of time would read as "no limit".
    limit.span = std::max<uint64_t>(limit.span, 1);
    return limit;
}

Result<sluice_budget_limit> compile_budget(const TokenBucket& bucket, Dimension dimension,
                                           const ClockFacts& clock) {
    constexpr double kUnscaled = 1;  // Classes scale the limits of sources, never a budget.
    if (const Status status = check_rate(bucket.rate, dimension, kUnscaled); !status)
        return status.error();
    const auto burst = fitting_burst(bucket, dimension, kUnscaled, kBudgetDefaultBurst);
    if (!burst)
        return burst.error();
    const auto lease = choose_lease(bucket.rate, *burst);
    if (!lease)
        return lease.error();

    sluice_budget_limit limit{};
    limit.lease = *lease;
    limit.lease_ns =
        static_cast<uint64_t>(divide_up(Wide{*lease} * ns(bucket.rate.per), bucket.rate.count));
    // In time as the leases cost it, so that their rounding takes nothing from the burst.
    limit.burst_ns = static_cast<uint64_t>(divide_up(Wide{*burst} * limit.lease_ns, *lease));
    limit.flush = flushed_demand(bucket.rate);
    limit.exact = coarse_suffices(limit.burst_ns, limit.lease_ns, clock) ? 0 : 1;
    if (limit.exact == 0)
        limit.burst_ns -= clock.lag_ns;
    return limit;
}

Result<sluice_window_limit> compile_window(const StrictWindow& window, const ClockFacts& clock,
                                           ScaleRange scales) {
    constexpr nanoseconds kLongest{static_cast<int64_t>(SLUICE_MAX_WINDOW_NS)};
    if (window.limit == 0 || window.limit > SLUICE_MAX_WINDOW_LIMIT)
        return refuse("a limit of " + std::to_string(window.limit) + " in a window is out of range",
                      "use 1 to " + std::to_string(SLUICE_MAX_WINDOW_LIMIT));
    if (window.window <= nanoseconds::zero() || window.window > kLongest)
        return refuse("a window of " + format_duration(window.window) + " is out of range",
                      "use a window above 0 and up to \"" + format_duration(kLongest) + '"');
    const double largest = std::floor(static_cast<double>(window.limit) * scales.most);
    if (largest > SLUICE_MAX_WINDOW_LIMIT)
        return refuse("a limit of " + std::to_string(window.limit) +
                          " in a window, times the largest scale of a class, is above " +
                          std::to_string(SLUICE_MAX_WINDOW_LIMIT),
                      "use at most " + std::to_string(static_cast<uint64_t>(
                                           SLUICE_MAX_WINDOW_LIMIT / scales.most)));
    // Two times read from the coarse clock may seem further apart than they are, by its lag.
    const Wide seen = Wide{ns(window.window)} + clock.lag_ns;
    sluice_window_limit limit{};
    limit.limit = static_cast<uint32_t>(window.limit);
    limit.length = static_cast<uint32_t>(divide_up(seen, Wide{1} << SLUICE_WINDOW_SHIFT)) + 1;
    constexpr uint64_t kWholeCells = 15;  // of the 16: the first one is cut by the window's start
    if (largest > SLUICE_WINDOW_SLOTS)
        limit.cell_ns = static_cast<uint64_t>(divide_up(seen, kWholeCells));
    return limit;
}

}  // namespace sluice
