#include "cli/format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "base/quantities.h"
#include "base/text.h"

namespace sluice::cli {

using std::chrono::nanoseconds;

Result<nanoseconds> parse_time(std::string_view text) {
    const auto time = parse_duration(text);
    if (!time)
        return time;
    if (*time <= nanoseconds::zero())
        return make_error(ErrorCode::usage, in_quotes(text) + " is no time at all",
                          "use a time such as \"10m\"");
    return time;
}

Result<std::optional<nanoseconds>> parse_optional_time(std::string_view option,
                                                       const std::optional<std::string>& text,
                                                       std::chrono::hours most) {
    if (!text)
        return std::optional<nanoseconds>();
    const auto time = parse_time(*text);
    if (!time)
        return time.error().with_context(option);
    if (*time > most)
        return make_error(ErrorCode::usage,
                          std::string(option) + ": " + in_quotes(*text) + " is too long a time",
                          "use at most \"" + format_duration(most) + '"');
    return std::optional(*time);
}

Result<size_t> parse_count(std::string_view option, std::string_view text) {
    size_t count = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, count);
    if (failure != std::errc{} || stop != end)
        return make_error(
            ErrorCode::usage,
            std::string(option) + ": " + in_quotes(text) + " is not a number that fits",
            "use a whole number from 0 on");
    return count;
}

Result<Ttl> parse_ttl(std::string_view text) {
    if (text == "permanent" || text == "-1")
        return Ttl();
    const auto time = parse_time(text);
    if (!time)
        return make_error(ErrorCode::usage, "--ttl: " + time.error().message,
                          "use a time such as \"10m\", or \"permanent\"");
    if (*time > kLongestTtl)
        return make_error(ErrorCode::usage, "--ttl: " + in_quotes(text) + " is too long",
                          "use at most \"" + format_duration(kLongestTtl) + "\", or \"permanent\"");
    return Ttl(*time);
}

std::string format_time(uint64_t seconds_since_1970) {
    const auto time = static_cast<std::time_t>(seconds_since_1970);
    std::tm parts{};
    std::array<char, 32> buffer{};
    if (::gmtime_r(&time, &parts) == nullptr ||
        std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        return "?";
    return buffer.data();
}

std::string format_count(uint64_t number) {
    std::string text = std::to_string(number);
    for (size_t left = text.size(); left > 3; left -= 3)
        text.insert(left - 3, 1, ',');
    return text;
}

std::string format_short(double number) {
    constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
    size_t unit = 0;
    // What would be printed as 1000 is 1.0 of the next.
    for (; number >= 999.5 && unit + 1 < kUnits.size(); ++unit)
        number /= 1000;
    std::array<char, 32> text{};
    const bool fraction = number < 9.95 && (unit > 0 || number != std::floor(number));
    (void)std::snprintf(text.data(), text.size(), fraction ? "%.1f%s" : "%.0f%s", number,
                        kUnits[unit]);
    return text.data();
}

std::string format_span(nanoseconds span) {
    struct Unit {
        int64_t ns;
        const char* name;
    };
    constexpr std::array<Unit, 4> kUnits = {{{86'400'000'000'000, "d"},
                                             {3'600'000'000'000, "h"},
                                             {60'000'000'000, "min"},
                                             {1'000'000'000, "s"}}};
    // To the nearest second, so that 10 minutes that began just now are 10 minutes.
    int64_t left = (span.count() + 500'000'000) / 1'000'000'000 * 1'000'000'000;
    if (left <= 0)
        return "less than 1 s";
    for (size_t i = 0; i < kUnits.size(); ++i) {
        const int64_t whole = left / kUnits[i].ns;
        if (whole == 0)
            continue;
        std::string text = std::to_string(whole) + ' ' + kUnits[i].name;
        if (i + 1 < kUnits.size())
            if (const int64_t rest = left % kUnits[i].ns / kUnits[i + 1].ns; rest != 0)
                text += ' ' + std::to_string(rest) + ' ' + kUnits[i + 1].name;
        return text;
    }
    return "less than 1 s";
}

std::string format_seconds(double seconds) {
    return format_span(nanoseconds(static_cast<int64_t>(seconds * 1e9)));
}

std::string format_bytes(uint64_t bytes) {
    constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < kUnits.size()) {
        value /= 1024;
        ++unit;
    }
    std::array<char, 32> buffer{};
    (void)std::snprintf(buffer.data(), buffer.size(),
                        unit > 0 && value < 10 ? "%.1f %s" : "%.0f %s", value, kUnits[unit]);
    return buffer.data();
}

std::string plural(uint64_t number, std::string_view noun) {
    std::string word(noun);
    if (number != 1 && word.ends_with('y'))
        word.replace(word.size() - 1, 1, "ies");
    else if (number != 1)
        word += word.ends_with('x') ? "es" : "s";
    return format_count(number) + ' ' + word;
}

Json seconds_until(uint64_t until_ns, uint64_t now_ns) {
    if (until_ns == SLUICE_NEVER)
        return nullptr;
    return seconds(nanoseconds(static_cast<int64_t>(until_ns > now_ns ? until_ns - now_ns : 0)));
}

Json seconds(const std::optional<nanoseconds>& span) {
    if (!span)
        return nullptr;
    return std::round(static_cast<double>(span->count()) / 1e6) / 1e3;
}

std::string format_expiry(const Json& seconds) {
    return seconds.is_null() ? "never" : "in " + format_seconds(seconds.get<double>());
}

}  // namespace sluice::cli
