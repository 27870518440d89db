// What the policy of another limiter, which counts requests of users, can mean where packets of
// sources are counted: a ceiling above that limiter's own limits, no replacement for them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// --- keys ----------------------------------------------------------------------------------------

// Behind the prefix: "policy:login", "policy:login:asn:64496", "policy:login:2026120118".
std::string rl_policy_key(std::string_view route);
std::string rl_asn_key(std::string_view route, uint32_t asn);
std::string rl_dated_key(std::string_view route, std::string_view stamp);
inline constexpr std::string_view kRlWhitelist = "whitelist";
// YYYYMMDDHH
bool is_rl_stamp(std::string_view text);

// --- numbers -------------------------------------------------------------------------------------

// The fields of such a hash in the order of kRlFields; nothing where it has none of that name.
using RlTexts = std::array<std::optional<std::string>, 4>;
// Plain decimal numbers within the ranges of kRlFields; whatever else is an error that names field
// and value. One that says nothing is fine.
Result<RlNumbers> parse_rl_numbers(const RlTexts& texts);
// "window_ms=60000 limit=10"; "nothing" where there is nothing.
std::string format_rl_numbers(const RlNumbers& numbers);
// The first that says something of each number.
RlNumbers inherit(const RlNumbers& narrow, const RlNumbers& wide);
// "10 requests/60 s"
std::string requests_text(const RlNumbers& numbers);

// --- their meaning here --------------------------------------------------------------------------

// What one user may ask for at most: so many at once, so many a second in the long run.
struct RlRequests {
    double rate = 0;
    double burst = 0;
    std::optional<std::chrono::nanoseconds> window;  // in any of which they are at most the burst

    friend bool operator==(const RlRequests&, const RlRequests&) = default;
};
// Where both a window and a bucket limit them, the one that is stricter in the long run: either is
// a ceiling, and a source's connections have one limit. An error where there is neither.
Result<RlRequests> requests_of(const RlNumbers& numbers);
// What the ceiling of both together, or of whichever is more lenient, is.
RlRequests sum(const RlRequests& a, const RlRequests& b);
RlRequests more_lenient(const RlRequests& a, const RlRequests& b);

struct RlCeiling {
    Limit connections;
    TokenBucket data;

    friend bool operator==(const RlCeiling&, const RlCeiling&) = default;
};
// Of a source: headroom new connections and twice as many of data for each request, times its
// users. Rounded up. An error where the gate could not hold it.
Result<RlCeiling> ceiling_of(const RlRequests& requests, const RlSettings& settings);
// "20 new connections/60 s per address, data 40/m (burst 40)"
std::string ceiling_text(const RlCeiling& ceiling);
// As a configuration has them: "{ limit = 20, window = \"1m\" }".
std::string limit_toml(const Limit& limit);

// --- a service -----------------------------------------------------------------------------------

// What is known of one route.
struct RlRoute {
    std::string route;
    std::optional<RlNumbers> base{};  // nothing: Redis has no policy for it
    std::vector<std::pair<uint32_t, RlNumbers>> asns{};
    std::optional<std::chrono::milliseconds> ends_in{};  // it is temporary
    std::string error{};  // why what Redis has now is not taken; empty where it is

    friend bool operator==(const RlRoute&, const RlRoute&) = default;
};

struct RlService {
    std::string service;
    std::vector<RlRoute> routes;
    std::optional<RlCeiling> ceiling{};  // nothing: its own policy is all that it has
    std::string there{};                 // "10 requests/60 s per user"
    std::vector<std::string> notes{};    // for people

    friend bool operator==(const RlService&, const RlService&) = default;
};
// A source's AS is not known here, so the most lenient of a route's policies is everybody's
// ceiling. Routes of one service add up; where one of them has no policy there is no ceiling.
RlService translate(std::string service, std::vector<RlRoute> routes, const RlSettings& settings);

}  // namespace sluice
