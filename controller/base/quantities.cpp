#include "base/quantities.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>

#include "base/text.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMaxNanoseconds = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxDecimals = 9;

// A unit is worth factor / divisor of the base unit.
struct Unit {
    std::string_view name;
    uint64_t factor;
    uint64_t divisor = 1;
};

constexpr std::array kDurationUnits = {
    Unit{"ns", 1},
    Unit{"us", 1'000},
    Unit{"ms", 1'000'000},
    Unit{"s", 1'000'000'000},
    Unit{"m", 60'000'000'000},
    Unit{"h", 3'600'000'000'000},
    Unit{"d", 86'400'000'000'000},
};
constexpr std::array kPerUnits = {
    Unit{"/s", 1'000'000'000},
    Unit{"/m", 60'000'000'000},
    Unit{"/h", 3'600'000'000'000},
};
constexpr std::array kCountUnits = {Unit{"", 1}, Unit{"k", 1'000}, Unit{"M", 1'000'000}};
constexpr std::array kSizeUnits = {
    Unit{"B", 1},
    Unit{"kB", 1'000},
    Unit{"MB", 1'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"KiB", 1ULL << 10},
    Unit{"MiB", 1ULL << 20},
    Unit{"GiB", 1ULL << 30},
};
constexpr std::array kBitUnits = {
    Unit{"bit", 1, 8},
    Unit{"kbit", 1'000, 8},
    Unit{"Mbit", 1'000'000, 8},
    Unit{"Gbit", 1'000'000'000, 8},
};

constexpr std::string_view kDurationHint =
    "use a number and a unit (ms, s, m, h, d) such as \"10s\"";
constexpr std::string_view kRateHint = "use a rate above 0 such as \"20/s\", \"20k/s\" or \"3/m\"";
constexpr std::string_view kByteRateHint =
    "use a rate above 0 such as \"2MB/s\", \"64KiB/s\" or \"100Mbit/s\"";
constexpr std::string_view kSizeHint = "use a number and a unit such as \"64kB\" or \"1MiB\"";

Error refuse(std::string_view text, std::string_view what, std::string_view hint) {
    return make_error(ErrorCode::usage, in_quotes(text) + ' ' + std::string(what),
                      std::string(hint));
}

// numerator / denominator in lowest terms.
struct Fraction {
    uint64_t numerator = 0;
    uint64_t denominator = 1;
};

// f · factor / divisor; nothing only where the reduced result itself does not fit.
std::optional<Fraction> scaled(Fraction f, uint64_t factor, uint64_t divisor) {
    const auto cancel = [](uint64_t& above, uint64_t& below) {
        const uint64_t common = std::gcd(above, below);
        above /= common;
        below /= common;
    };
    cancel(f.numerator, f.denominator);
    cancel(factor, divisor);
    cancel(factor, f.denominator);
    cancel(f.numerator, divisor);
    Fraction result;
    if (__builtin_mul_overflow(f.numerator, factor, &result.numerator) ||
        __builtin_mul_overflow(f.denominator, divisor, &result.denominator))
        return std::nullopt;
    return result;
}

struct NumberAndUnit {
    Fraction number;
    std::string_view unit;
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Splits "1.5MB/s" into 15/10 and "MB/s".
Result<NumberAndUnit> split_number(std::string_view text, std::string_view hint) {
    if (text.empty())
        return refuse(text, "is empty", hint);
    if (text.front() == '-')
        return refuse(text, "is negative", hint);
    if (!is_digit(text.front()))
        return refuse(text, "does not start with a number", hint);

    NumberAndUnit result;
    size_t at = 0;
    const auto read_digits = [&] {
        const size_t start = at;
        for (; at < text.size() && is_digit(text[at]); ++at) {
            const auto digit = static_cast<uint64_t>(text[at] - '0');
            if (__builtin_mul_overflow(result.number.numerator, 10U, &result.number.numerator) ||
                __builtin_add_overflow(result.number.numerator, digit, &result.number.numerator))
                return size_t{0};
        }
        return at - start;
    };

    if (read_digits() == 0)
        return refuse(text, "is too large a number", hint);
    if (at < text.size() && text[at] == '.') {
        ++at;
        if (at == text.size() || !is_digit(text[at]))
            return refuse(text, "has no digit behind its decimal point", hint);
        const size_t decimals = read_digits();
        if (decimals == 0 || decimals > kMaxDecimals)
            return refuse(text, "has too many digits", hint);
        for (size_t i = 0; i < decimals; ++i)
            result.number.denominator *= 10;
    }
    result.unit = text.substr(at);
    return result;
}

std::optional<Unit> find_unit(std::span<const Unit> units, std::string_view name) {
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
    return found == units.end() ? std::nullopt : std::optional(*found);
}

// "has no unit" or `has the unknown unit "x"`, where the unit's letter case matters.
std::string unit_problem(std::string_view unit) {
    if (unit.empty())
        return "has no unit";
    return "has the unknown unit " + in_quotes(unit);
}

Result<Rate> parse_rate_in(std::span<const Unit> units, std::span<const Unit> more_units,
                           std::string_view text, std::string_view hint) {
    const auto split = split_number(text, hint);
    if (!split)
        return split.error();
    const std::string_view suffix = split->unit;
    const size_t slash = std::min(suffix.find('/'), suffix.size());
    if (slash == suffix.size())
        return refuse(text, "has no time such as \"/s\" at its end", hint);
    auto unit = find_unit(units, suffix.substr(0, slash));
    if (!unit)
        unit = find_unit(more_units, suffix.substr(0, slash));
    if (!unit)
        return refuse(text, unit_problem(suffix.substr(0, slash)), hint);
    const auto per = find_unit(kPerUnits, suffix.substr(slash));
    if (!per)
        return refuse(text, "is not per second (/s), minute (/m) or hour (/h)", hint);
    if (split->number.numerator == 0)
        return refuse(text, "is zero", hint);

    const auto count = scaled(split->number, unit->factor, unit->divisor);
    if (!count)
        return refuse(text, "is too large", hint);
    uint64_t span = 0;
    if (__builtin_mul_overflow(per->factor, count->denominator, &span) || span > kMaxNanoseconds)
        return refuse(text, "is too slow to count", hint);
    return Rate{count->numerator, nanoseconds(static_cast<int64_t>(span))};
}

// numerator / denominator as a decimal number, where that is exact with so few decimals.
std::optional<std::string> exact_decimal(Wide numerator, Wide denominator, size_t max_decimals) {
    size_t decimals = 0;
    while (numerator % denominator != 0) {
        if (decimals == max_decimals || numerator > std::numeric_limits<Wide>::max() / 10)
            return std::nullopt;
        numerator *= 10;
        ++decimals;
    }
    Wide value = numerator / denominator;
    std::string digits;
    for (; value != 0 || digits.size() <= decimals; value /= 10)
        digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
    if (decimals > 0)
        digits.insert(decimals, 1, '.');
    std::reverse(digits.begin(), digits.end());
    return digits;
}

// The largest unit that shows numerator / denominator exactly; units ascend.
std::optional<std::string> with_unit(Wide numerator, Wide denominator, std::span<const Unit> units,
                                     size_t max_decimals) {
    constexpr size_t kDecimalsOfPrefixed = 2;
    for (size_t i = units.size(); i-- > 0;) {
        const Wide divisor = denominator * units[i].factor;
        if (i > 0 && numerator < divisor)
            continue;
        if (auto number =
                exact_decimal(numerator, divisor, i > 0 ? kDecimalsOfPrefixed : max_decimals))
            return *number + std::string(units[i].name);
    }
    return std::nullopt;
}

std::string format_rate_in(std::span<const Unit> units, Rate rate) {
    const auto per = static_cast<uint64_t>(rate.per.count());
    const auto written = [&](const Unit& time, size_t decimals) -> std::optional<std::string> {
        const auto number = with_unit(Wide{rate.count} * time.factor, per, units, decimals);
        if (!number)
            return std::nullopt;
        return *number + std::string(time.name);
    };
    for (const Unit& time : kPerUnits) {
        if (time.factor == per)
            return written(time, 0).value_or("");
    }
    for (const size_t decimals : {size_t{3}, kMaxDecimals}) {
        for (const Unit& time : kPerUnits) {
            if (auto text = written(time, decimals))
                return *text;
        }
    }
    return with_unit(rate.count, 1, units, 0).value_or("") + " per " + format_duration(rate.per);
}

constexpr std::span<const Unit> decimal_sizes() {
    return std::span(kSizeUnits).first(4);
}

}  // namespace

Result<nanoseconds> parse_duration(std::string_view text) {
    constexpr const char* kLongest = "use at most \"106751d\"";
    uint64_t total = 0, last_factor = std::numeric_limits<uint64_t>::max();
    std::string_view rest = text;
    do {
        const auto split = split_number(rest, kDurationHint);
        if (!split)
            return split.error();
        const std::string_view name =
            split->unit.substr(0, split->unit.find_first_of("0123456789"));
        const auto unit = find_unit(kDurationUnits, name);
        if (!unit)
            return refuse(rest, unit_problem(split->unit), kDurationHint);
        if (unit->factor >= last_factor)
            return refuse(text, "has its units in no order", "write it such as \"1h30m\"");
        const auto value = scaled(split->number, unit->factor, 1);
        if (!value)
            return refuse(text, "is too long", kLongest);
        if (value->denominator != 1)
            return refuse(rest, "is finer than a nanosecond", kDurationHint);
        if (__builtin_add_overflow(total, value->numerator, &total) || total > kMaxNanoseconds)
            return refuse(text, "is too long", kLongest);
        last_factor = unit->factor;
        rest = split->unit.substr(name.size());
    } while (!rest.empty());
    return nanoseconds(static_cast<int64_t>(total));
}

Result<Rate> parse_rate(std::string_view text) {
    return parse_rate_in(kCountUnits, {}, text, kRateHint);
}

Result<Rate> parse_byte_rate(std::string_view text) {
    return parse_rate_in(kSizeUnits, kBitUnits, text, kByteRateHint);
}

Result<uint64_t> parse_size(std::string_view text) {
    const auto split = split_number(text, kSizeHint);
    if (!split)
        return split.error();
    const auto unit = find_unit(kSizeUnits, split->unit);
    if (!unit)
        return refuse(text, unit_problem(split->unit), kSizeHint);
    const auto value = scaled(split->number, unit->factor, 1);
    if (!value)
        return refuse(text, "is too large", kSizeHint);
    if (value->denominator != 1)
        return refuse(text, "is not a whole number of bytes", kSizeHint);
    return value->numerator;
}

std::string format_duration(nanoseconds duration) {
    if (duration == nanoseconds::zero())
        return "0s";
    const bool negative = duration < nanoseconds::zero();
    const auto signed_count = static_cast<uint64_t>(duration.count());
    const uint64_t count = negative ? 0 - signed_count : signed_count;
    size_t unit = kDurationUnits.size() - 1;
    while (count % kDurationUnits[unit].factor != 0)
        --unit;
    return (negative ? "-" : "") + std::to_string(count / kDurationUnits[unit].factor) +
           std::string(kDurationUnits[unit].name);
}

std::string format_rate(Rate rate) {
    return format_rate_in(kCountUnits, rate);
}

std::string format_byte_rate(Rate rate) {
    return format_rate_in(decimal_sizes(), rate);
}

std::string format_size(uint64_t bytes) {
    constexpr auto kBinary = std::span(kSizeUnits).last(3);
    const std::string decimal = with_unit(bytes, 1, decimal_sizes(), 0).value_or("");
    if (bytes == 0)
        return decimal;
    const auto binary = with_unit(bytes, 1, kBinary, 0);
    return binary && binary->size() <= decimal.size() ? *binary : decimal;
}

uint64_t count_in(Rate rate, nanoseconds span) {
    if (span <= nanoseconds::zero())
        return 0;
    const Wide count = Wide{rate.count} * static_cast<uint64_t>(span.count()) /
                       static_cast<uint64_t>(rate.per.count());
    constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
    return count > kMax ? kMax : static_cast<uint64_t>(count);
}

std::optional<nanoseconds> time_for(Rate rate, uint64_t count) {
    const Wide span =
        (Wide{count} * static_cast<uint64_t>(rate.per.count()) + rate.count - 1) / rate.count;
    if (span > kMaxNanoseconds)
        return std::nullopt;
    return nanoseconds(static_cast<int64_t>(span));
}

}  // namespace sluice
