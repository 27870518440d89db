#include "policy/fleet_reader.h"

#include "base/quantities.h"
#include "base/text.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds;

constexpr std::string_view kUrlExample = "\"redis://127.0.0.1:6379\"";

// Below it no network answers; above it a lease would end before its renewal is given up.
constexpr milliseconds kShortestTimeout{1};
constexpr milliseconds kLongestTimeout{5'000};
// Beyond it each host's part of any budget is too small to be of use.
constexpr uint64_t kMostHosts = 100'000;
constexpr nanoseconds kLongestHold = std::chrono::hours(1);

void read_path(TableReader& table, std::string_view key, std::string& path) {
    const std::string example = "\"/etc/sluice/" + std::string(key) + '"';
    const auto field = table.take(key);
    if (!field)
        return;
    path = field->string(example).value_or("");
    if (!path.starts_with('/') || path.find('\0') != std::string::npos)
        field->fail("is no absolute path", "use one such as " + example);
}

void read_timeout(TableReader& table, std::string_view key, milliseconds& timeout) {
    const auto field = table.take(key);
    if (!field)
        return;
    const auto span = field->parsed(parse_duration, "\"100ms\"").value_or(timeout);
    if (span < kShortestTimeout || span > kLongestTimeout)
        field->fail("is out of range", "use a time of \"" + format_duration(kShortestTimeout) +
                                           "\" to \"" + format_duration(kLongestTimeout) + '"');
    timeout = std::chrono::duration_cast<milliseconds>(span);
}

}  // namespace

void read_redis(const Field& field, Policy& policy) {
    auto table = field.table("[redis]");
    if (!table)
        return;
    RedisSettings redis;
    if (const auto url = table->require("url", kUrlExample))
        redis.url = url->string(kUrlExample).value_or("");
    if (const auto username = table->take("username"))
        redis.username = username->string("\"sluice\"").value_or("");
    read_path(*table, "password_file", redis.password_file);
    read_path(*table, "ca_file", redis.ca_file);
    read_path(*table, "cert_file", redis.cert_file);
    read_path(*table, "key_file", redis.key_file);
    read_timeout(*table, "connect_timeout", redis.connect_timeout);
    read_timeout(*table, "command_timeout", redis.command_timeout);
    table->finish();
    policy.redis = std::move(redis);
}

void read_fleet(const Field& field, Policy& policy) {
    auto table = field.table("[fleet]");
    if (!table)
        return;
    FleetSettings& fleet = policy.fleet;
    if (const auto name = table->take("name")) {
        fleet.name = name->string("\"shop\"").value_or(fleet.name);
        if (!is_valid_name(fleet.name))
            name->fail(in_quotes(fleet.name) + " is no name", "use up to 32 of a-z, 0-9 and -");
    }
    if (const auto hosts = table->take("max_hosts"))
        fleet.max_hosts = static_cast<unsigned>(hosts->integer(1, kMostHosts).value_or(1));
    if (const auto hold = table->take("hold_for")) {
        fleet.hold_for = hold->parsed(parse_duration, "\"30s\"").value_or(fleet.hold_for);
        if (fleet.hold_for > kLongestHold)
            hold->fail("is out of range",
                       "use a time of up to \"" + format_duration(kLongestHold) + '"');
    }
    table->finish();
    if (!policy.redis)
        field.fail("is of no use without Redis", "add [redis] url = " + std::string(kUrlExample));
}

}  // namespace sluice
