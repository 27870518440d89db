// Values as the command line reads and writes them.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/answer.h"
#include "gate/source_rules.h"

namespace sluice::cli {

// A duration above zero.
Result<std::chrono::nanoseconds> parse_time(std::string_view text);
// The same, at most `most`, for an option that may be absent; the error names it.
Result<std::optional<std::chrono::nanoseconds>> parse_optional_time(
    std::string_view option, const std::optional<std::string>& text, std::chrono::hours most);
// A number of things; the error names the option.
Result<size_t> parse_count(std::string_view option, std::string_view text);
// "10m", "permanent" or "-1".
Result<Ttl> parse_ttl(std::string_view text);

// "2026-11-29T20:05:33Z"
std::string format_time(uint64_t seconds_since_1970);
// "1,234,567"
std::string format_count(uint64_t number);
// "12", "1.2k", "34M": for reading, at most five characters.
std::string format_short(double number);
// "4 min 59 s": for reading, at most two units.
std::string format_span(std::chrono::nanoseconds span);
std::string format_seconds(double seconds);
// "144 MiB", "1.5 GiB": for reading.
std::string format_bytes(uint64_t bytes);
// "3 bans", "1 ban"
std::string plural(uint64_t number, std::string_view noun);

// Seconds with three decimals, or null where there is no end.
Json seconds_until(uint64_t until_ns, uint64_t now_ns);
Json seconds(const std::optional<std::chrono::nanoseconds>& span);
// "in 4 min 59 s", "never": of a value from above.
std::string format_expiry(const Json& seconds);

}  // namespace sluice::cli
