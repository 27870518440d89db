#include "policy/limit_reader.h"

#include <algorithm>
#include <limits>

#include "base/quantities.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr nanoseconds kLongestWindow{SLUICE_MAX_WINDOW_NS};
// A window lasts up to a tick of the clock longer: 10 ms at the most.
constexpr nanoseconds kShortestWindow = std::chrono::milliseconds(10);

std::string_view rate_example(Dimension dimension) {
    return dimension == Dimension::bytes ? "\"2MB/s\"" : "\"20/s\"";
}

std::string bucket_example(Dimension dimension) {
    return dimension == Dimension::bytes ? "\"2MB/s\" or { rate = \"2MB/s\", burst = \"1MB\" }"
                                         : "\"20/s\" or { rate = \"20/s\", burst = 40 }";
}

std::optional<uint64_t> read_burst(const Field& field, Dimension dimension, Rate rate) {
    const uint64_t most =
        std::min<uint64_t>(count_in(rate, kLongestState), std::numeric_limits<int64_t>::max());
    if (dimension != Dimension::bytes || !field.is_string())
        return field.integer(1, most);
    const auto size = field.parsed(parse_size, "\"1MB\"");
    if (size && (*size == 0 || *size > most)) {
        field.fail("is out of range", "use \"1B\" to \"" + format_size(most) + '"');
        return std::nullopt;
    }
    return size;
}

bool is_window(const TableReader& table) {
    return table.has("limit") || table.has("window");
}

std::optional<StrictWindow> read_window(TableReader table) {
    const auto limit_field = table.require("limit", "10");
    const auto window_field = table.require("window", "\"60s\"");
    table.finish();
    if (!limit_field || !window_field)
        return std::nullopt;
    const auto limit = limit_field->integer(1, SLUICE_MAX_WINDOW_LIMIT);
    const auto window = window_field->parsed(parse_duration, "\"60s\"");
    if (!limit || !window)
        return std::nullopt;
    if (*window < kShortestWindow || *window > kLongestWindow) {
        window_field->fail("is out of range", "use a window of \"" +
                                                  format_duration(kShortestWindow) + "\" to \"" +
                                                  format_duration(kLongestWindow) + '"');
        return std::nullopt;
    }
    return StrictWindow{*limit, *window};
}

// A token bucket whose burst defaults to what the rate yields in `burst_span`, at least 1.
std::optional<TokenBucket> read_bucket(const Field& field, Dimension dimension,
                                       nanoseconds burst_span) {
    std::optional<Rate> rate;
    std::optional<Field> burst_field;
    if (field.is_string()) {
        rate = read_rate(field, dimension);
    } else {
        auto table = field.table(bucket_example(dimension));
        if (!table)
            return std::nullopt;
        if (is_window(*table)) {
            field.fail("is a window, which only per_source.connections can be",
                       "use " + bucket_example(dimension));
            return std::nullopt;
        }
        const auto rate_field = table->require("rate", rate_example(dimension));
        burst_field = table->take("burst");
        table->finish();
        if (rate_field)
            rate = read_rate(*rate_field, dimension);
    }
    if (!rate)
        return std::nullopt;
    if (!burst_field)
        return TokenBucket{*rate, std::max<uint64_t>(1, count_in(*rate, burst_span))};
    const auto burst = read_burst(*burst_field, dimension, *rate);
    if (!burst)
        return std::nullopt;
    return TokenBucket{*rate, *burst};
}

// What the packet path could not compute with is refused here, where its place is known. Whether it
// can does not depend on a clock.
constexpr ClockFacts kAnyClock{};

template <class T>
bool compiles(const Field& field, const Result<T>& compiled) {
    if (!compiled)
        field.fail(compiled.error());
    return compiled.has_value();
}

}  // namespace

// One that the gate can hold: an event must not take longer than its longest state.
std::optional<Rate> read_rate(const Field& field, Dimension dimension) {
    const auto rate = field.parsed(dimension == Dimension::bytes ? parse_byte_rate : parse_rate,
                                   rate_example(dimension));
    if (!rate)
        return std::nullopt;
    if (count_in(*rate, kLongestState) == 0) {
        field.fail("is less than one in " + format_duration(kLongestState), "use a higher rate");
        return std::nullopt;
    }
    return rate;
}

std::optional<Limit> read_limit(const Field& field, Rule rule, ScaleRange scales) {
    if (rule == Rule{Scope::per_source, Dimension::connections} && field.is_table()) {
        if (auto table = field.table(""); is_window(*table)) {
            const auto window = read_window(*std::move(table));
            if (!window || !compiles(field, compile_window(*window, kAnyClock, scales)))
                return std::nullopt;
            return *window;
        }
    }
    const auto bucket = read_bucket(field, rule.dimension, kSourceDefaultBurst);
    if (!bucket || !compiles(field, compile_limit(*bucket, rule.dimension, kAnyClock, scales)))
        return std::nullopt;
    return *bucket;
}

std::optional<TokenBucket> read_budget_limit(const Field& field, Dimension dimension) {
    const auto bucket = read_bucket(field, dimension, kBudgetDefaultBurst);
    if (!bucket || !compiles(field, compile_budget(*bucket, dimension, kAnyClock)))
        return std::nullopt;
    return bucket;
}

}  // namespace sluice
