#include "fleet/rl_policy.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "policy/limit_reader.h"
#include "policy/rl_reader.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr size_t kLongestNumber = 24;
// A keep-alive GET is about one segment of data where it is one request; the handshake of TLS and
// larger requests are more.
constexpr double kDataPerHeadroom = 2;
// So that what was a whole number is one again.
constexpr double kSlack = 1e-6;
constexpr double kNsPerSecond = 1e9;

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// Neither signs nor exponents nor "nan": whoever writes policies writes 10 or 0.5.
std::optional<double> parse_decimal(std::string_view text) {
    const bool is_plain = !text.empty() && text.size() <= kLongestNumber &&
                          is_digit(text.front()) && is_digit(text.back()) &&
                          std::ranges::all_of(text, [](char c) { return is_digit(c) || c == '.'; });
    double number = 0;
    const auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (!is_plain || failure != std::errc{} || end != text.data() + text.size())
        return std::nullopt;
    return number;
}

std::string number_text(double number) {
    std::array<char, 64> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                   std::chars_format::fixed)
                         .ptr;
    return {buffer.data(), end};
}

std::string range_text(const RlField& field) {
    return std::string(field.is_whole ? "a whole number" : "a number") + " from " +
           number_text(field.least) + " to " + number_text(field.most);
}

std::string span_text(double ms) {
    constexpr double kSecond = 1000;
    const double seconds = ms / kSecond;
    return seconds == std::floor(seconds) ? number_text(seconds) + " s" : number_text(ms) + " ms";
}

std::optional<RlRequests> of_window(const RlNumbers& numbers) {
    if (!numbers.window_ms || !numbers.limit)
        return std::nullopt;
    constexpr double kMillion = 1e6;
    return RlRequests{*numbers.limit * 1000 / *numbers.window_ms, *numbers.limit,
                      nanoseconds(static_cast<int64_t>(*numbers.window_ms * kMillion))};
}

// A bucket without a size holds what comes back in a second.
std::optional<RlRequests> of_bucket(const RlNumbers& numbers) {
    if (!numbers.bucket_rate)
        return std::nullopt;
    return RlRequests{*numbers.bucket_rate,
                      numbers.bucket_cap.value_or(std::max(1.0, *numbers.bucket_rate)),
                      std::nullopt};
}

uint64_t rounded_up(double number) {
    return static_cast<uint64_t>(std::max(1.0, std::ceil(number - kSlack)));
}

// In thousandths; by the hour where that says more.
Rate rate_of(double per_second) {
    constexpr double kThousandths = 1000;
    constexpr double kHour = 3600;
    const auto whole = rounded_up(per_second);
    if (per_second >= 1 && std::abs(per_second - static_cast<double>(whole)) < kSlack)
        return {whole, 1s};
    if (per_second >= 1)
        return {rounded_up(per_second * kThousandths), 1000s};
    return {rounded_up(per_second * kHour * kThousandths), std::chrono::hours(1000)};
}

// Nothing where that takes longer to fill than the gate's state lasts.
std::optional<TokenBucket> bucket_of(double rate, double burst) {
    const TokenBucket bucket{rate_of(rate), rounded_up(burst)};
    return bucket.burst <= count_in(bucket.rate, kLongestState) ? std::optional(bucket)
                                                                : std::nullopt;
}

std::string bucket_text(const TokenBucket& bucket) {
    return format_rate(bucket.rate) + " (burst " + std::to_string(bucket.burst) + ')';
}

// Both may be windows of one length, and are then one such window.
RlRequests together(const RlRequests& a, const RlRequests& b, double (*of)(double, double)) {
    RlRequests both{of(a.rate, b.rate), of(a.burst, b.burst), std::nullopt};
    if (a.window == b.window)
        both.window = a.window;
    return both;
}

// The most lenient of what the route has for anybody.
Result<RlRequests> requests_of(const RlRoute& route, const RlSettings& settings,
                               std::vector<std::string>& notes) {
    const RlNumbers base = inherit(*route.base, settings.local);
    auto all = requests_of(base);
    if (!all)
        return all;
    for (const auto& [asn, numbers] : route.asns) {
        const auto own = requests_of(inherit(numbers, base));
        if (!own)
            return own;
        const RlRequests wider = more_lenient(*all, *own);
        const std::string name = route.route + ", AS " + std::to_string(asn) + ": " +
                                 requests_text(inherit(numbers, base));
        notes.push_back(name + (wider == *all
                                    ? ": held by the gateway alone, as the AS of a source "
                                      "is not known here"
                                    : ": more than others have, so it is everybody's "
                                      "ceiling here"));
        *all = wider;
    }
    return all;
}

}  // namespace

// --- keys ----------------------------------------------------------------------------------------

std::string rl_policy_key(std::string_view route) {
    return "policy:" + std::string(route);
}

std::string rl_asn_key(std::string_view route, uint32_t asn) {
    return rl_policy_key(route) + ":asn:" + std::to_string(asn);
}

std::string rl_dated_key(std::string_view route, std::string_view stamp) {
    return rl_policy_key(route) + ':' + std::string(stamp);
}

bool is_rl_stamp(std::string_view text) {
    constexpr size_t kDigits = 10;
    if (text.size() != kDigits || !std::ranges::all_of(text, is_digit))
        return false;
    const auto part = [&](size_t at) { return (text[at] - '0') * 10 + (text[at + 1] - '0'); };
    const int month = part(4), day = part(6), hour = part(8);
    return month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour <= 23;
}

// --- numbers -------------------------------------------------------------------------------------

Result<RlNumbers> parse_rl_numbers(const RlTexts& texts) {
    RlNumbers numbers;
    for (size_t i = 0; i < texts.size(); ++i) {
        if (!texts[i])
            continue;
        const RlField& field = kRlFields[i];
        const auto number = parse_decimal(*texts[i]);
        const bool is_fine = number && *number >= field.least && *number <= field.most &&
                             (!field.is_whole || *number == std::floor(*number));
        if (!is_fine)
            return failed(
                std::string(field.name) + " = " + in_quotes(printable(*texts[i])) + " is not taken",
                "use " + range_text(field));
        numbers.*field.member = number;
    }
    return numbers;
}

std::string format_rl_numbers(const RlNumbers& numbers) {
    std::string text;
    for (const RlField& field : kRlFields)
        if (const auto& number = numbers.*field.member)
            text +=
                (text.empty() ? "" : " ") + std::string(field.name) + '=' + number_text(*number);
    return text.empty() ? "nothing" : text;
}

RlNumbers inherit(const RlNumbers& narrow, const RlNumbers& wide) {
    RlNumbers numbers = narrow;
    for (const RlField& field : kRlFields)
        if (!(numbers.*field.member))
            numbers.*field.member = wide.*field.member;
    return numbers;
}

std::string requests_text(const RlNumbers& numbers) {
    std::string text;
    if (numbers.window_ms && numbers.limit)
        text = number_text(*numbers.limit) + " requests/" + span_text(*numbers.window_ms);
    if (const auto bucket = of_bucket(numbers))
        text += (text.empty() ? "" : " and ") + number_text(bucket->rate) + " requests/s (burst " +
                number_text(bucket->burst) + ')';
    return text;
}

// --- their meaning here --------------------------------------------------------------------------

Result<RlRequests> requests_of(const RlNumbers& numbers) {
    const auto window = of_window(numbers), bucket = of_bucket(numbers);
    if (!window && !bucket)
        return failed("it says neither limit with window_ms nor bucket_rate",
                      "add what is missing there, or to [rl.local]");
    if (window && (!bucket || window->rate <= bucket->rate))
        return *window;
    return *bucket;
}

RlRequests sum(const RlRequests& a, const RlRequests& b) {
    return together(a, b, [](double x, double y) { return x + y; });
}

RlRequests more_lenient(const RlRequests& a, const RlRequests& b) {
    return together(a, b, [](double x, double y) { return std::max(x, y); });
}

Result<RlCeiling> ceiling_of(const RlRequests& requests, const RlSettings& settings) {
    const double connections = settings.headroom * settings.users_per_source.value_or(1);
    const double data = kDataPerHeadroom * connections;
    const auto bucket = bucket_of(connections * requests.rate, connections * requests.burst);
    const auto of_data = bucket_of(data * requests.rate, data * requests.burst);
    const double most = connections * requests.burst;
    if (!bucket || !of_data || most > 1e15 || data * requests.rate * kNsPerSecond > 1e18)
        return failed("it is more, or over a longer time, than the gate can hold");
    RlCeiling ceiling{*bucket, *of_data};
    // A longer window, or a larger one, is held as the bucket that lets as much through.
    if (requests.window && *requests.window <= nanoseconds(SLUICE_MAX_WINDOW_NS) &&
        rounded_up(most) <= SLUICE_MAX_WINDOW_LIMIT)
        ceiling.connections = StrictWindow{rounded_up(most), *requests.window};
    return ceiling;
}

std::string ceiling_text(const RlCeiling& ceiling) {
    std::string text;
    if (const auto* window = std::get_if<StrictWindow>(&ceiling.connections)) {
        const auto ms = std::chrono::duration<double, std::milli>(window->window).count();
        text = std::to_string(window->limit) + " new connections/" + span_text(ms);
    } else {
        text = "new connections " + bucket_text(std::get<TokenBucket>(ceiling.connections));
    }
    return text + " per address, data " + bucket_text(ceiling.data);
}

std::string limit_toml(const Limit& limit) {
    if (const auto* window = std::get_if<StrictWindow>(&limit))
        return "{ limit = " + std::to_string(window->limit) + ", window = \"" +
               format_duration(window->window) + "\" }";
    const auto& bucket = std::get<TokenBucket>(limit);
    return "{ rate = \"" + format_rate(bucket.rate) +
           "\", burst = " + std::to_string(bucket.burst) + " }";
}

// --- a service -----------------------------------------------------------------------------------

RlService translate(std::string service, std::vector<RlRoute> routes, const RlSettings& settings) {
    RlService made{.service = std::move(service), .routes = std::move(routes)};
    std::optional<RlRequests> all;
    bool is_whole = true;
    for (const RlRoute& route : made.routes) {
        if (!route.base) {
            is_whole = false;
            continue;
        }
        const auto requests = requests_of(route, settings, made.notes);
        if (!requests) {
            made.notes.push_back(route.route + ": " + requests.error().message + "; " +
                                 requests.error().hint);
            is_whole = false;
            continue;
        }
        made.there +=
            (made.there.empty() ? "" : " + ") + requests_text(inherit(*route.base, settings.local));
        all = all ? sum(*all, *requests) : *requests;
    }
    if (!all)
        return made;
    made.there += " per user";
    if (!is_whole) {
        made.notes.emplace_back(
            "not all of its routes have a policy in Redis, so nothing is known of what it may get");
        return made;
    }
    if (made.routes.size() > 1)
        made.notes.push_back("its " + std::to_string(made.routes.size()) +
                             " routes share a destination, so their ceilings add up; to limit each "
                             "alone give it an address or a port of its own");
    auto ceiling = ceiling_of(*all, settings);
    if (ceiling)
        made.ceiling = *std::move(ceiling);
    else
        made.notes.push_back(ceiling.error().message);
    return made;
}

}  // namespace sluice
