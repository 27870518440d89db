// Durations, rates and sizes as people write them, exact in both directions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

// How often per span of time, kept exactly as written: 3/h is {3, 1 h}, not a rounded frequency.
struct Rate {
    uint64_t count = 0;  // at least 1
    std::chrono::nanoseconds per{};

    friend bool operator==(const Rate&, const Rate&) = default;
};

// "250ms", "10s", "1.5h", "1h30m", "2d"; also us and ns. Zero is a duration, a bare number is not.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);
// "20/s", "3/m", "1/h", "20k/s", "1.5M/s", "0.5/s" (which is {1, 2 s}). Zero is refused.
Result<Rate> parse_rate(std::string_view text);
// Bytes per time: "2MB/s" (decimal), "64KiB/s" (binary), "100Mbit/s" (bits, a byte has 8).
Result<Rate> parse_byte_rate(std::string_view text);
// Bytes: "1500B", "64kB", "1.5MB", "64MiB".
Result<uint64_t> parse_size(std::string_view text);

// The shortest exact form, which the parser of the same kind reads back.
std::string format_duration(std::chrono::nanoseconds duration);
std::string format_rate(Rate rate);
std::string format_byte_rate(Rate rate);
std::string format_size(uint64_t bytes);

// How many whole events `rate` yields in `span`; saturates instead of wrapping.
uint64_t count_in(Rate rate, std::chrono::nanoseconds span);
// How long `rate` takes for `count` events, rounded up; nothing where that is beyond 292 years.
std::optional<std::chrono::nanoseconds> time_for(Rate rate, uint64_t count);

}  // namespace sluice
