// The policy in domain words: what a configuration file says, after validation.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/quantities.h"
#include "net/address.h"

namespace sluice {

// What a verdict means for a packet; the most lenient of gate, service and rule wins.
enum class Mode : uint8_t { off = 0, observe = 1, enforce = 2 };

// A token bucket (GCRA): at most burst + rate·T in any time T.
struct TokenBucket {
    Rate rate;
    uint64_t burst = 0;  // at least 1, in the dimension's unit

    friend bool operator==(const TokenBucket&, const TokenBucket&) = default;
};

// At most `limit` in any `window`.
struct StrictWindow {
    uint64_t limit = 0;
    std::chrono::nanoseconds window{};

    friend bool operator==(const StrictWindow&, const StrictWindow&) = default;
};

using Limit = std::variant<TokenBucket, StrictWindow>;

// What a limit counts. The order is the order of `enum sluice_dimension`.
enum class Dimension : uint8_t { connections, data, packets, bytes };
inline constexpr std::array kDimensions = {Dimension::connections, Dimension::data,
                                           Dimension::packets, Dimension::bytes};
std::string_view dimension_name(Dimension dimension);

// Where a limit applies.
enum class Scope : uint8_t { per_source, per_prefix, budget };
std::string_view scope_name(Scope scope);

// "<scope>.<dimension>", the part of a rule id behind the service's name.
struct Rule {
    Scope scope;
    Dimension dimension;

    friend auto operator<=>(const Rule&, const Rule&) = default;
};

// What a host has of a shared budget once its lease has ended and Redis has not answered.
enum class OnRedisLoss : uint8_t {
    hold,  // the last share for [fleet] hold_for, then as `safe`
    safe,  // the budget divided by [fleet] max_hosts
    open,  // no budget; limits of sources go on
};

using Limits = std::map<Dimension, Limit>;
using Budgets = std::map<Dimension, TokenBucket>;

// Traffic that belongs to a service: [destination:]protocol[/port[-port]].
struct Match {
    std::optional<Prefix> destination;
    uint8_t protocol = 0;                                // IPPROTO_*
    std::optional<std::pair<uint16_t, uint16_t>> ports;  // inclusive; TCP and UDP, and always there

    friend bool operator==(const Match&, const Match&) = default;
};

// A jail drops everything from a source to the service for a time, beyond the excess itself.
struct Jail {
    std::chrono::nanoseconds duration{};
    bool spoofable = false;  // SYN or UDP evidence, which anybody can forge, is enough

    friend bool operator==(const Jail&, const Jail&) = default;
};

// Other numbers for a service at set times. It begins on each of these days.
struct Schedule {
    std::string name;
    std::set<unsigned> weekdays;  // 0 is Sunday
    std::set<std::chrono::year_month_day> dates;
    std::chrono::seconds from{}, to{};  // since midnight; `to` not after `from` is the next day's
    std::string zone = "UTC";           // IANA name
    // Only what the service has as well.
    Limits per_source;
    Limits per_prefix;
    Budgets budget;
    // Those of them that stand in the place of the service's own: it has them already.
    std::set<Rule> in_force;
};

struct Service {
    std::string name;            // [a-z0-9-]{1,32}; "other" is what no match claims
    std::vector<Match> matches;  // empty for "other"
    Limits per_source;
    Limits per_prefix;          // token buckets only
    unsigned prefix_ipv4 = 24;  // length of the wider neighbourhood
    unsigned prefix_ipv6 = 48;
    Budgets budget;
    std::map<Dimension, Rate> capacity;  // what the service behind can take
    bool shared = false;                 // the budget is the fleet's, not this host's
    OnRedisLoss on_redis_loss = OnRedisLoss::hold;
    std::optional<Jail> jail;  // absent: police
    bool reply_exempt = true;  // replies to this host's own connections are not throttled
    std::optional<Mode> mode;  // absent: inherited
    std::map<Rule, Mode> modes;
    std::vector<Schedule> schedules;
};

// Sources that get another share of every per-source limit.
struct SourceClass {
    std::string name;
    std::vector<Prefix> prefixes;
    double scale = 1.0;  // above 0
};

// Sources that skip the per-source limits; exempt ones skip the budgets too.
struct Allow {
    Prefix prefix;
    bool exempt = false;
};

enum class TableFull : uint8_t { evict, share };

struct Sources {
    uint64_t capacity = 1'000'000;  // per-source states kept
    unsigned ipv4_prefix = 32;
    unsigned ipv6_prefix = 64;
    std::vector<Allow> allow;
    TableFull on_table_full = TableFull::evict;
};

enum class XdpMode : uint8_t { automatic, native, generic };

// What the daemon does beside the gate.
struct Surroundings {
    std::string control_group;   // may use the socket, beside root; empty: nobody else
    std::string metrics_listen;  // "127.0.0.1:9617"; empty: nowhere
    std::string events_file;     // a path, "journal" or "stdout"; empty: nowhere

    friend bool operator==(const Surroundings&, const Surroundings&) = default;
};

// Where Redis is. Files are read when a connection is made.
struct RedisSettings {
    std::string url;
    std::string username;
    std::string password_file;
    std::string ca_file, cert_file, key_file;
    std::chrono::milliseconds connect_timeout{250};
    std::chrono::milliseconds command_timeout{100};

    friend bool operator==(const RedisSettings&, const RedisSettings&) = default;
};

// The hosts that share budgets.
struct FleetSettings {
    std::string name = "sluice";  // in every key
    unsigned max_hosts = 0;       // what a host alone divides by; 0: not said
    std::chrono::nanoseconds hold_for = std::chrono::seconds(30);

    friend bool operator==(const FleetSettings&, const FleetSettings&) = default;
};

// How the queues of the host's cards are set up: for short waits, for floods, or between.
enum class TuneProfile : uint8_t { latency, balanced, flood };
std::string_view tune_profile_name(TuneProfile profile);

struct TuneSettings {
    TuneProfile profile = TuneProfile::balanced;
    unsigned reserve_cores = 0;  // near each card, kept free of its queues
    bool reapply = false;        // what drifted is set again, not only told

    friend bool operator==(const TuneSettings&, const TuneSettings&) = default;
};

// What another limiter says of one route: requests of one of its users. In the units of its keys in
// Redis, whose names these are.
struct RlNumbers {
    std::optional<double> window_ms, limit;         // at most so many in any window
    std::optional<double> bucket_cap, bucket_rate;  // tokens, and how many come back in a second

    friend bool operator==(const RlNumbers&, const RlNumbers&) = default;
};

// How the limits of such a limiter (Lua in a gateway, with its policies in Redis) are followed.
struct RlSettings {
    std::string prefix = "rl:";              // of its keys
    std::optional<double> users_per_source;  // not said: what comes of its limits only observes
    double headroom = 2;                     // so many connections for each request
    // Of services whose traffic is that of other routes than the one of their name.
    std::map<std::string, std::vector<std::string>> routes;
    std::vector<uint32_t> asns;  // that have policies of their own there
    RlNumbers local;             // what the gateway itself has where Redis says nothing
    std::chrono::nanoseconds base_after = std::chrono::minutes(10);
    bool whitelist = true;  // its whitelist is allowed here

    friend bool operator==(const RlSettings&, const RlSettings&) = default;
};

// Scores of sources, and the bans that follow from them.
struct RiskSettings {
    std::string zset = "rl:risk";  // in Redis, where there is one; empty: none
    double weight = 1;             // of what its scores rise by
    double max_step = 100;         // most that a member counts in one pass; `enter` if not said
    bool drain = false;            // the set is taken away as it is read
    double over_limit = 0;         // of a packet dropped over a limit; 0: those do not count
    std::chrono::nanoseconds half_life = std::chrono::minutes(10);
    double enter = 100;
    double leave = 50;
    std::chrono::nanoseconds ban = std::chrono::minutes(5);
    std::optional<std::chrono::nanoseconds> max_ban = std::chrono::minutes(30);  // absent: for good
    std::chrono::nanoseconds memory = std::chrono::hours(24);
    unsigned max_bans_per_minute = 60;
    unsigned max_bans_per_hour = 1'000;
    double max_share = 0.01;  // of the sources that are verified, within an hour
    std::vector<Prefix> never;

    friend bool operator==(const RiskSettings&, const RiskSettings&) = default;
};

struct Policy {
    Mode mode = Mode::observe;
    std::vector<std::string> interfaces;
    XdpMode xdp_mode = XdpMode::automatic;
    Sources sources;
    double events_per_second = 1000;  // budget of sampled events of the whole host
    std::vector<Service> services;    // in the order of the file; "other" only where configured
    std::vector<SourceClass> classes;
    std::optional<RedisSettings> redis;  // absent: this host is on its own
    FleetSettings fleet;
    std::optional<TuneSettings> tune;  // absent: the host is left as it is
    std::optional<RlSettings> rl;      // absent: no other limiter is followed
    std::optional<RiskSettings> risk;  // absent: nobody is scored
    Surroundings surroundings;
    std::vector<std::string> warnings;  // what was mended in the reading, for people
};

}  // namespace sluice
