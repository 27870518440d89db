// Every way in which a configuration can be wrong, and the message that its author gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "policy/parse.h"

namespace sluice {
namespace {

struct Wrong {
    std::string text;
    std::string message;
};

void PrintTo(const Wrong& wrong, std::ostream* out) {
    *out << wrong.text;
}

class Refusals : public testing::TestWithParam<Wrong> {};

TEST_P(Refusals, NamePlaceFieldFaultAndMend) {
    const auto policy = parse_policy(GetParam().text, "sluice.toml");
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().message, "sluice.toml:" + GetParam().message);
    EXPECT_EQ(policy.error().code, ErrorCode::failed);
}

INSTANTIATE_TEST_SUITE_P(
    TopLevel, Refusals,
    testing::Values(
        Wrong{"mode = 'enforced'",
              "1:8: mode: \"enforced\" is not a mode; use one of: off observe enforce"},
        Wrong{"mode = true", "1:8: mode: is a boolean; use \"observe\""},
        Wrong{"\n\n  mod = 'observe'", "3:3: mod: unknown key; did you mean \"mode\"?"},
        Wrong{"colour = 1",
              "1:1: colour: unknown key; known here: mode, interfaces, xdp_mode, sources, "
              "service, class, events, control, metrics, redis, fleet, tune, rl, risk, feeds"},
        Wrong{"xdp_mode = 'fast'",
              "1:12: xdp_mode: \"fast\" is not an XDP mode; use one of: auto native generic"},
        Wrong{"interfaces = 'eth0'", "1:14: interfaces: is a string; use [\"eth0\"]"},
        Wrong{"interfaces = ['eth0', 1]", "1:23: interfaces[2]: is an integer; use \"eth0\""},
        Wrong{"interfaces = ['eth0', 'eth0']",
              "1:23: interfaces[2]: \"eth0\" stands twice; remove one"},
        Wrong{"interfaces = ['a-name-too-long-for-linux']",
              "1:15: interfaces[1]: is no interface name; use a name as in \"ip link\", such as "
              "\"eth0\""},
        Wrong{"interfaces = ['a','b','c','d','e','f','g','h','i']",
              "1:14: interfaces: has too many interfaces; use at most 8"},
        Wrong{"sources = 5", "1:11: sources: is an integer; use [sources]"},
        Wrong{"service = 5", "1:11: service: is an integer; use [[service]]"},
        Wrong{"[service]\nname = 'a'", "1:1: service: is one table; did you mean [[service]]?"},
        Wrong{"\n[service.per_source]\ndata = '1/s'",
              "2:1: service: is one table; did you mean [[service]]?"},
        Wrong{"\n[[services]]\nname = 'a'\n[service.per_source]\ndata = '1/s'",
              "2:3: services: unknown key; did you mean [[service]]?"},
        Wrong{"[[clas]]\nname = 'a'", "1:3: clas: unknown key; did you mean [[class]]?"},
        Wrong{"service = [5]", "1:12: service[1]: is an integer; use [[service]]"},
        Wrong{"mode = 2026-11-11", "1:8: mode: is a date; use \"observe\""}));

TEST(Refusal, SyntaxErrorsNameThePlace) {
    for (const char* text :
         {"\nmode = 'observe", "\nmode", "\n[sources", "\n[[[a]]]", "\n[[=", "\n[[",
          "\nmode = 'off'\nmode = 1", "\nmode = \"\xff\"", "\nmode \u00e9= 1"}) {
        const auto policy = parse_policy(text, "sluice.toml");
        ASSERT_FALSE(policy) << text;
        EXPECT_THAT(policy.error().message, testing::StartsWith("sluice.toml:")) << text;
        EXPECT_THAT(policy.error().message, testing::Not(testing::HasSubstr(":0:"))) << text;
    }
}

TEST(Refusal, TextWithoutQuotesIsToldSo) {
    for (const char* text : {"\nmode = observe", "\nmode = observe # for now\n",
                             "\ninterfaces = [observe]\n", "\r\nmode=observe\r\n"}) {
        const auto policy = parse_policy(text, "sluice.toml");
        ASSERT_FALSE(policy) << text;
        EXPECT_THAT(policy.error().message, testing::StartsWith("sluice.toml:2:")) << text;
        EXPECT_THAT(policy.error().message, testing::EndsWith("; text needs quotes: \"observe\""));
    }
    const auto twice = parse_policy("[control]\n[control]\n", "sluice.toml");
    ASSERT_FALSE(twice);
    EXPECT_THAT(twice.error().message, testing::Not(testing::HasSubstr("quotes")));
}

TEST(Refusal, SyntaxErrorsSayWhatIsMissing) {
    const auto mend = [](const char* text) {
        const auto policy = parse_policy(text, "sluice.toml");
        return policy ? "" : policy.error().message.substr(policy.error().message.rfind("; "));
    };
    EXPECT_EQ(mend("mode = 'observe"), "; is a closing quote missing?");
    EXPECT_EQ(mend("interfaces = ['eth0'\n"), "; is a closing ] missing?");
    EXPECT_EQ(mend("[[service]\n"), "; a heading is [name] or [[name]]");
    EXPECT_EQ(mend("mode = 'off'\nservices"), "; a line is: key = value");
}

TEST(Refusal, ControlNeedsNoGroup) {
    EXPECT_TRUE(parse_policy("[control]\n", "sluice.toml"));
}

INSTANTIATE_TEST_SUITE_P(
    Sources, Refusals,
    testing::Values(
        Wrong{"[sources]\ncapacity = 0",
              "2:12: sources.capacity: 0 is out of range; use a whole number from 1 to 1000000000"},
        Wrong{"[sources]\ncapacity = -1",
              "2:12: sources.capacity: -1 is out of range; use a whole number from 1 to "
              "1000000000"},
        Wrong{"[sources]\ncapacity = 1.5",
              "2:12: sources.capacity: is a number; use a whole number from 1 to 1000000000"},
        Wrong{"[sources]\nipv4_prefix = 33",
              "2:15: sources.ipv4_prefix: 33 is out of range; use a whole number from 1 to 32"},
        Wrong{"[sources]\nipv6_prefix = 129",
              "2:15: sources.ipv6_prefix: 129 is out of range; use a whole number from 1 to 128"},
        Wrong{"[sources]\non_table_full = 'drop'",
              "2:17: sources.on_table_full: \"drop\" is unknown; use \"evict\" or \"share\""},
        Wrong{"[sources]\nallow = ['64.0.0.0/8', '64.0.0.0/7']",
              "2:24: sources.allow[2]: \"64.0.0.0/7\" is too wide to be allowed by mistake; use /8 "
              "or longer"},
        Wrong{"[sources]\nallow = [{ prefix = '::/0', exempt = true }]",
              "2:10: sources.allow[1]: \"::/0\" is too wide to be allowed by mistake; use /19 or "
              "longer"},
        Wrong{"[sources]\nallow = ['192.0.2.0/33']",
              "2:10: sources.allow[1]: \"192.0.2.0/33\" has a bad prefix length; use a whole "
              "number from 0 to 32 behind the slash"},
        Wrong{"[sources]\nallow = ['2001:db8::/129']",
              "2:10: sources.allow[1]: \"2001:db8::/129\" has a bad prefix length; use a whole "
              "number from 0 to 128 behind the slash"},
        Wrong{"[sources]\nallow = ['::ffff:192.0.2.0/24']",
              "2:10: sources.allow[1]: \"::ffff:192.0.2.0/24\" cuts through the IPv4-mapped range "
              "::ffff:0:0/96; use the IPv4 prefix itself, such as 192.0.2.0/24"},
        Wrong{"[sources]\nallow = ['192.0.2.0/24', { prefix = '192.0.2.0/24', exempt = true }]",
              "2:26: sources.allow[2]: \"192.0.2.0/24\" stands twice, once exempt and once not; "
              "remove one"},
        Wrong{"[sources]\nallow = [1]",
              "2:10: sources.allow[1]: is an integer; use \"192.0.2.0/24\" or { prefix = "
              "\"192.0.2.0/24\", exempt = true }"},
        Wrong{"[sources]\nallow = [{ exempt = true }]",
              "2:10: sources.allow[1].prefix: is missing; add prefix = \"192.0.2.0/24\""},
        Wrong{"[sources]\nallow = [{ prefix = '192.0.2.1', exempt = 1 }]",
              "2:43: sources.allow[1].exempt: is an integer; use true or false"},
        Wrong{"[sources]\nallow = [{ prefix = '192.0.2.1', exmpt = true }]",
              "2:34: sources.allow[1].exmpt: unknown key; did you mean \"exempt\"?"}));

// A service that is right but for the lines given, which start on line 4.
Wrong in_service(const std::string& lines, const std::string& message) {
    return {"[[service]]\nname = 'login'\nmatch = ['tcp/443']\n" + lines, message};
}

INSTANTIATE_TEST_SUITE_P(
    Services, Refusals,
    testing::Values(
        Wrong{"[[service]]\nmatch = ['tcp/443']",
              "1:1: service[1].name: is missing; add name = \"login\""},
        Wrong{"[[service]]\nname = 7", "2:8: service[1].name: is an integer; use \"login\""},
        Wrong{"[[service]]\nname = 'Log in'\nmatch = ['tcp/443']",
              "2:8: service \"Log in\": name: is no valid name; use 1 to 32 of a-z, 0-9 and \"-\", "
              "such as \"login\""},
        Wrong{"[[service]]\nname = 'bans'\nmatch = ['tcp/443']",
              "2:1: service \"bans\": name: is reserved; use another one such as \"login\""},
        in_service("[[service]]\nname = 'login'\nmatch = ['tcp/80']",
                   "5:8: service \"login\": name: stands twice; give each one a name of its own"),
        Wrong{"[[service]]\nname = 'login'",
              "1:1: service \"login\": match: is missing; add match = [\"tcp/443\"]"},
        Wrong{"[[service]]\nname = 'login'\nmatch = []",
              "3:9: service \"login\": match: is empty; use [\"tcp/443\"]"},
        Wrong{"[[service]]\nname = 'login'\nmatch = 'tcp/443'",
              "3:9: service \"login\": match: is a string; use [\"tcp/443\"]"},
        Wrong{"[[service]]\nname = 'login'\nmatch = ['tcp/443', 'tcp/0']",
              "3:21: service \"login\": match[2]: \"tcp/0\" has a bad port; use a port from 1 to "
              "65535 or a range such as \"tcp/8000-8100\""},
        Wrong{"[[service]]\nname = 'login'\nmatch = ['tcp/443', 'tcp/443']",
              "3:21: service \"login\": match[2]: \"tcp/443\" stands twice; remove one"},
        Wrong{"[[service]]\nname = 'other'\nmatch = ['tcp/443']",
              "3:1: service \"other\": match: is not for the service \"other\", which gets the "
              "rest; remove it, or choose another name"},
        in_service("[[service]]\nname = 'web'\nmatch = ['udp/1', 'tcp/443']",
                   "6:19: service \"web\": match[2]: \"tcp/443\" ties with \"tcp/443\" of service "
                   "\"login\"; make one of them more specific, or remove it"),
        in_service(
            "[[service]]\nname = 'web'\nmatch = ['0.0.0.0/0:tcp/443']",
            "6:10: service \"web\": match[1]: \"0.0.0.0/0:tcp/443\" ties with \"tcp/443\" of "
            "service \"login\"; make one of them more specific, or remove it"),
        in_service("mode = 'on'",
                   "4:8: service \"login\": mode: \"on\" is not a mode; use one of: off observe "
                   "enforce"),
        in_service("reply_exempt = 'no'",
                   "4:16: service \"login\": reply_exempt: is a string; use true or false"),
        in_service("limit = 1",
                   "4:1: service \"login\": limit: unknown key; known here: name, match, mode, "
                   "reply_exempt, per_source, per_prefix, budget, modes, schedule"),
        in_service("[service.per_sorce]\ndata = '1/s'",
                   "4:10: service \"login\": per_sorce: unknown key; did you mean "
                   "\"per_source\"?"),
        in_service("per_source = 5",
                   "4:14: service \"login\": per_source: is an integer; use "
                   "[service.per_source]")));

INSTANTIATE_TEST_SUITE_P(
    Modes, Refusals,
    testing::Values(
        in_service("modes = { 'per_source.data' = 'off' }\nper_sorce = { data = '1/s' }",
                   "5:1: service \"login\": per_sorce: unknown key; did you mean \"per_source\"?"),
        in_service("modes = { 'per_source.data' = 'off' }",
                   "4:11: service \"login\": modes.per_source.data: is no rule of this service; "
                   "give the service a limit first"),
        in_service("modes = { 'per_source.dta' = 'off' }\nper_source = { data = '1/s' }\n"
                   "budget = { data = '1/s' }",
                   "4:11: service \"login\": modes.per_source.dta: is no rule of this service; use "
                   "one of: \"per_source.data\" \"budget.data\""),
        in_service("modes = { per_source.data = 'off' }\nper_source = { data = '1/s' }",
                   "4:11: service \"login\": modes.per_source: is a table; write the rule in "
                   "quotes: { \"per_source.data\" = \"observe\" }"),
        in_service("modes = { 'per_source.data' = 1 }\nper_source = { data = '1/s' }",
                   "4:31: service \"login\": modes.per_source.data: is an integer; use "
                   "\"observe\""),
        in_service("modes = 'off'",
                   "4:9: service \"login\": modes: is a string; use { \"per_source.data\" = "
                   "\"observe\" }")));

// The same, but for one limit in [service.per_source], on line 5.
Wrong in_source(const std::string& line, const std::string& message) {
    const size_t first_space = message.find(' ');
    return in_service("[service.per_source]\n" + line, message.substr(0, first_space) +
                                                           " service \"login\": per_source." +
                                                           message.substr(first_space + 1));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, Refusals,
    testing::Values(
        in_source("data = '0/s'",
                  "5:8: data: \"0/s\" is zero; use a rate above 0 such as \"20/s\", \"20k/s\" or "
                  "\"3/m\""),
        in_source("data = { rate = '0/s' }",
                  "5:17: data.rate: \"0/s\" is zero; use a rate above 0 such as \"20/s\", "
                  "\"20k/s\" or \"3/m\""),
        in_source("data = '20'",
                  "5:8: data: \"20\" has no time such as \"/s\" at its end; use a rate above 0 "
                  "such as \"20/s\", \"20k/s\" or \"3/m\""),
        in_source("data = 20",
                  "5:8: data: is an integer; use \"20/s\" or { rate = \"20/s\", burst = 40 }"),
        in_source("data = { burst = 5 }", "5:8: data.rate: is missing; add rate = \"20/s\""),
        in_source("data = { rate = 20 }", "5:17: data.rate: is an integer; use \"20/s\""),
        in_source("data = { rate = '1/s', burst = 0 }",
                  "5:32: data.burst: 0 is out of range; use a whole number from 1 to 172800"),
        in_source("data = { rate = '1/s', burst = -1 }",
                  "5:32: data.burst: -1 is out of range; use a whole number from 1 to 172800"),
        in_source("data = { rate = '1/s', burst = 172801 }",
                  "5:32: data.burst: 172801 is out of range; use a whole number from 1 to 172800"),
        in_source("data = { rate = '1/s', burst = '5' }",
                  "5:32: data.burst: is a string; use a whole number from 1 to 172800"),
        in_source("data = { rate = '1/s', brust = 5 }",
                  "5:24: data.brust: unknown key; did you mean \"burst\"?"),
        in_source("data = '0.01/h'", "5:8: data: is less than one in 2d; use a higher rate"),
        in_source("data = { limit = 10, window = '60s' }",
                  "5:8: data: is a window, which only per_source.connections can be; use \"20/s\" "
                  "or { rate = \"20/s\", burst = 40 }"),
        in_source("connections = { limit = 10 }",
                  "5:15: connections.window: is missing; add window = \"60s\""),
        in_source("connections = { window = '60s' }",
                  "5:15: connections.limit: is missing; add limit = 10"),
        in_source("connections = { limit = 0, window = '60s' }",
                  "5:25: connections.limit: 0 is out of range; use a whole number from 1 to 65535"),
        in_source("connections = { limit = 65536, window = '60s' }",
                  "5:25: connections.limit: 65536 is out of range; use a whole number from 1 to "
                  "65535"),
        in_source("connections = { limit = 10, window = '61m' }",
                  "5:38: connections.window: is out of range; use a window of \"10ms\" to "
                  "\"1h\""),
        in_source("connections = { limit = 10, window = '0s' }",
                  "5:38: connections.window: is out of range; use a window of \"10ms\" to "
                  "\"1h\""),
        in_source("connections = { limit = 10, window = '9ms' }",
                  "5:38: connections.window: is out of range; use a window of \"10ms\" to "
                  "\"1h\""),
        in_source("connections = { limit = 10, window = '60' }",
                  "5:38: connections.window: \"60\" has no unit; use a number and a unit (ms, s, "
                  "m, h, d) such as \"10s\""),
        in_source("connections = { limit = 10, window = 60 }",
                  "5:38: connections.window: is an integer; use \"60s\""),
        in_source("connections = { limit = 10, window = '60s', rate = '1/s' }",
                  "5:45: connections.rate: unknown key; known here: limit, window"),
        in_source("bytes = '2M/s'",
                  "5:9: bytes: \"2M/s\" has the unknown unit \"M\"; use a rate above 0 such as "
                  "\"2MB/s\", \"64KiB/s\" or \"100Mbit/s\""),
        in_source("bytes = { rate = '1kB/s', burst = '0B' }",
                  "5:35: bytes.burst: is out of range; use \"1B\" to \"172.8MB\""),
        in_source("bytes = { rate = '1kB/s', burst = '5' }",
                  "5:35: bytes.burst: \"5\" has no unit; use a number and a unit such as \"64kB\" "
                  "or \"1MiB\"")));

INSTANTIATE_TEST_SUITE_P(
    Jails, Refusals,
    testing::Values(
        in_source("data = '1/s'\non_excess = 'drop'",
                  "6:13: on_excess: \"drop\" is unknown; use \"police\" or { jail = \"30s\", "
                  "spoofable = false }"),
        in_source("data = '1/s'\non_excess = { spoofable = true }",
                  "6:13: on_excess.jail: is missing; add jail = \"30s\""),
        in_source("data = '1/s'\non_excess = { jail = '3d' }",
                  "6:22: on_excess.jail: is out of range; use a time of \"10ms\" to \"2d\""),
        in_source("data = '1/s'\non_excess = { jail = '0s' }",
                  "6:22: on_excess.jail: is out of range; use a time of \"10ms\" to \"2d\""),
        in_source("data = '1/s'\non_excess = { jail = '-5s' }",
                  "6:22: on_excess.jail: \"-5s\" is negative; use a number and a unit (ms, s, m, "
                  "h, d) such as \"10s\""),
        in_source("data = '1/s'\non_excess = { jail = '5s', spoofable = 'no' }",
                  "6:40: on_excess.spoofable: is a string; use true or false"),
        in_source("on_excess = { jail = '5s' }",
                  "5:13: on_excess: jails for excess, but per_source has no limit; add one such as "
                  "connections = \"20/s\"")));

INSTANTIATE_TEST_SUITE_P(
    PerPrefix, Refusals,
    testing::Values(
        in_service("[service.per_prefix]\nipv4 = 0",
                   "5:8: service \"login\": per_prefix.ipv4: 0 is out of range; use a whole number "
                   "from 1 to 32"),
        in_service("[service.per_prefix]\nipv6 = 129",
                   "5:8: service \"login\": per_prefix.ipv6: 129 is out of range; use a whole "
                   "number from 1 to 128"),
        in_service("[service.per_prefix]\nipv6 = 96",
                   "5:1: service \"login\": per_prefix.ipv6: 96 is longer than "
                   "sources.ipv6_prefix = 64; use at most 64"),
        in_service("[service.per_prefix]\nconnections = { limit = 10, window = '60s' }",
                   "5:15: service \"login\": per_prefix.connections: is a window, which only "
                   "per_source.connections can be; use \"20/s\" or { rate = \"20/s\", burst = 40 "
                   "}"),
        in_service("[service.per_prefix]\non_excess = 'police'",
                   "5:1: service \"login\": per_prefix.on_excess: unknown key; known here: ipv4, "
                   "ipv6, connections, data, packets, bytes")));

INSTANTIATE_TEST_SUITE_P(
    Budgets, Refusals,
    testing::Values(
        in_service("[service.budget]\ndata = { rate = '0/s' }",
                   "5:17: service \"login\": budget.data.rate: \"0/s\" is zero; use a rate above 0 "
                   "such as \"20/s\", \"20k/s\" or \"3/m\""),
        in_service("[service.budget]\nconnections = { limit = 1, window = '1s' }",
                   "5:15: service \"login\": budget.connections: is a window, which only "
                   "per_source.connections can be; use \"20/s\" or { rate = \"20/s\", burst = 40 "
                   "}"),
        in_service("[service.budget]\nshared = 1",
                   "5:10: service \"login\": budget.shared: is an integer; use true or false"),
        in_service("[service.budget]\nshared = true",
                   "5:10: service \"login\": budget.shared: true needs Redis; add [redis] url = "
                   "\"redis://127.0.0.1:6379\""),
        in_service("[service.budget]\nfair = true",
                   "5:8: service \"login\": budget.fair: true is not available in this version; "
                   "use false"),
        in_service("[service.budget]\non_redis_loss = 'hold'",
                   "5:17: service \"login\": budget.on_redis_loss: is for a budget that the fleet "
                   "shares; remove it, or share the budget"),
        in_service("[service.budget]\ncapacity = { dat = '1/s' }",
                   "5:14: service \"login\": budget.capacity.dat: unknown key; did you mean "
                   "\"data\"?"),
        in_service("[service.budget]\nfairness = true",
                   "5:1: service \"login\": budget.fairness: unknown key; known here: "
                   "connections, data, packets, bytes, shared, on_redis_loss, fair, capacity")));

// The budget of a service in a fleet; the line is the sixth.
Wrong in_fleet(const std::string& line, const std::string& message) {
    return {"[redis]\nurl = 'unix:///redis'\n" + line +
                "\n[[service]]\nname = 'login'\nmatch = ['tcp/443']\nbudget = { data = '1k/s' }",
            message};
}

INSTANTIATE_TEST_SUITE_P(
    Fleet, Refusals,
    testing::Values(
        in_fleet("",
                 "7:10: service \"login\": budget.on_redis_loss: without Redis each host gets "
                 "its part of the budget, but of how many is not said; add [fleet] max_hosts = "
                 "16, or use on_redis_loss = \"open\""),
        in_fleet("password_file = 'redis.pass'\n[fleet]\nmax_hosts = 4",
                 "3:17: redis.password_file: is no absolute path; use one such as "
                 "\"/etc/sluice/password_file\""),
        in_fleet("command_timeout = '6s'\n[fleet]\nmax_hosts = 4",
                 "3:19: redis.command_timeout: is out of range; use a time of \"1ms\" to \"5s\""),
        in_fleet("[fleet]\nmax_hosts = 0",
                 "4:13: fleet.max_hosts: 0 is out of range; use a whole number from 1 to 100000"),
        in_fleet("[fleet]\nname = 'Shop'\nmax_hosts = 4",
                 "4:8: fleet.name: \"Shop\" is no name; use up to 32 of a-z, 0-9 and -"),
        in_fleet("[fleet]\nmax_hosts = 4\nhold_for = '2h'",
                 "5:12: fleet.hold_for: is out of range; use a time of up to \"1h\""),
        Wrong{"[redis]\nusername = 'sluice'",
              "1:1: redis.url: is missing; add url = \"redis://127.0.0.1:6379\""},
        Wrong{"[fleet]\nmax_hosts = 4",
              "1:1: fleet: is of no use without Redis; add [redis] url = "
              "\"redis://127.0.0.1:6379\""}));

// A class that is right but for the line given, the fourth.
Wrong in_class(const std::string& line, const std::string& message) {
    return {"[[class]]\nname = 'partners'\nprefixes = ['192.0.2.0/24']\n" + line, message};
}

INSTANTIATE_TEST_SUITE_P(
    Classes, Refusals,
    testing::Values(
        in_class("scale = 0",
                 "4:9: class \"partners\": scale: 0 is out of range; use a number from 0.015625 to "
                 "64"),
        in_class("scale = -0.5",
                 "4:9: class \"partners\": scale: -0.5 is out of range; use a number from 0.015625 "
                 "to 64"),
        in_class("scale = nan",
                 "4:9: class \"partners\": scale: this is out of range; use a number from 0.015625 "
                 "to 64"),
        in_class("scale = inf",
                 "4:9: class \"partners\": scale: this is out of range; use a number from 0.015625 "
                 "to 64"),
        in_class("scale = 'half'",
                 "4:9: class \"partners\": scale: is a string; use a number from 0.015625 to 64"),
        in_class("", "1:1: class \"partners\": scale: is missing; add scale = 0.5"),
        in_class("scale = 1\nasn = [64496]",
                 "5:1: class \"partners\": asn: not available in this version; remove it"),
        in_class("scale = 1\nfactor = 1",
                 "5:1: class \"partners\": factor: unknown key; known here: name, prefixes, "
                 "scale"),
        in_class("scale = 1\n[[class]]\nname = 'partners'\nprefixes = ['192.0.2.1']\nscale = 1",
                 "6:8: class \"partners\": name: stands twice; give each one a name of its own"),
        in_class("scale = 1\n[[class]]\nname = 'b'\nprefixes = ['192.0.2.0/24']\nscale = 1",
                 "7:13: class \"b\": prefixes[1]: \"192.0.2.0/24\" is already in class "
                 "\"partners\"; remove one"),
        Wrong{"[[class]]\nname = 'a'\nprefixes = []\nscale = 1",
              "3:12: class \"a\": prefixes: is empty; use [\"192.0.2.0/24\"]"},
        Wrong{"[[class]]\nname = 'a'\nscale = 1",
              "1:1: class \"a\": prefixes: is missing; add prefixes = [\"192.0.2.0/24\"]"},
        Wrong{"[[class]]\nname = 'a.b'\nprefixes = ['192.0.2.0/24']\nscale = 1",
              "2:8: class \"a.b\": name: is no valid name; use 1 to 32 of a-z, 0-9 and \"-\", such "
              "as \"partners\""}));

INSTANTIATE_TEST_SUITE_P(
    Events, Refusals,
    testing::Values(Wrong{"[events]\nrate = '0/s'",
                          "2:8: events.rate: \"0/s\" is zero; use a rate above 0 such as \"20/s\", "
                          "\"20k/s\" or \"3/m\""},
                    Wrong{"[events]\nrate = 1000",
                          "2:8: events.rate: is an integer; use "
                          "\"1000/s\""},
                    Wrong{"[events]\nfile = 'events.jsonl'",
                          "2:8: events.file: is no absolute path; use a path, \"journal\" or "
                          "\"stdout\""},
                    Wrong{"[metrics]\nlisten = '9617'",
                          "2:10: metrics.listen: is no address with a port; use "
                          "\"127.0.0.1:9617\""},
                    Wrong{"[metrics]\nlisten = '127.0.0.1:70000'",
                          "2:10: metrics.listen: is no address with a port; use "
                          "\"127.0.0.1:9617\""},
                    Wrong{"[metrics]\nlisten = '::1:9617'",
                          "2:10: metrics.listen: is no address with a port; use "
                          "\"127.0.0.1:9617\""},
                    Wrong{"[control]\ngroups = ['sluice']",
                          "2:1: control.groups: unknown key; did you mean \"group\"?"},
                    Wrong{"[control]\ngroup = ''",
                          "2:9: control.group: names no group; use \"sluice\""}));

INSTANTIATE_TEST_SUITE_P(
    Tune, Refusals,
    testing::Values(
        Wrong{"[tune]\nprofile = 'fast'",
              "2:11: tune.profile: \"fast\" is no profile; use \"latency\", "
              "\"balanced\" or \"flood\""},
        Wrong{"[tune]\nreserve_cores = -1",
              "2:17: tune.reserve_cores: -1 is out of range; use a whole number from 0 to 1024"},
        Wrong{"[tune]\non_drift = 'mend'",
              "2:12: tune.on_drift: \"mend\" is unknown; use \"alarm\" or \"apply\""}));

INSTANTIATE_TEST_SUITE_P(
    Risk, Refusals,
    testing::Values(
        Wrong{"risk = 1", "1:8: risk: is an integer; use [risk]"},
        Wrong{"[risk]\nzset = 'sluice:x'",
              "2:8: risk.zset: is no key that others write; use one such as \"rl:risk\""},
        Wrong{"[risk]\nenter = 0",
              "2:9: risk.enter: 0 is out of range; use a number from 0.001 to 1000000000000"},
        Wrong{"[risk]\nenter = nan",
              "2:9: risk.enter: this is out of range; use a number from 0.001 to 1000000000000"},
        Wrong{"[risk]\nleave = 100",
              "2:9: risk.leave: is no threshold below enter; use a number above 0 and below it"},
        Wrong{"[risk]\nban = '1h'\nmax_ban = '30m'",
              "3:11: risk.max_ban: is shorter than the first ban; use at least \"1h\""},
        Wrong{"[risk]\nban = '10ms'",
              "2:7: risk.ban: is out of range; use a time of \"1s\" to \"365d\""},
        Wrong{"[risk]\nmax_share = 2",
              "2:13: risk.max_share: 2 is out of range; use a number from 0 to 1"},
        Wrong{"[risk]\nnever = ['cdn']",
              "2:10: risk.never[1]: \"cdn\" is not an IP address or prefix; use one such as "
              "192.0.2.1, "
              "192.0.2.0/24 or 2001:db8::/32"},
        Wrong{"[risk]\nhalflife = '1m'",
              "2:1: risk.halflife: unknown key; did you mean \"half_life\"?"}));

INSTANTIATE_TEST_SUITE_P(
    LaterVersions, Refusals,
    testing::Values(Wrong{"[asn]\ndatabase = 'x'",
                          "1:2: asn: not available in this version; remove it"},
                    Wrong{"[[forwarder]]\nname = 'cdn'",
                          "1:3: forwarder: not available in this version; remove it"},
                    Wrong{"[honeypot]\nports = [23]",
                          "1:2: honeypot: not available in this version; remove it"}));

// From the fourth line on, with days, times and what is more.
Wrong in_schedule(const std::string& text, const std::string& message) {
    return in_service(
        "[service.budget]\ndata = '10/s'\n[[service.schedule]]\nname = 'sale'\n" + text, message);
}

constexpr const char* kTimes = "days = ['fri']\nfrom = '19:55'\nto = '20:30'\n";

INSTANTIATE_TEST_SUITE_P(
    Schedules, Refusals,
    testing::Values(
        in_schedule("from = '19:55'\nto = '20:30'",
                    "6:1: service \"login\": schedule \"sale\": days: is missing; add days = "
                    "[\"fri\", \"2026-11-11\"]"),
        in_schedule("days = ['freitag']",
                    "8:9: service \"login\": schedule \"sale\": days[1]: \"freitag\" is no day; "
                    "use mon, tue, wed, thu, fri, sat, sun, or a date such as \"2026-11-11\""),
        in_schedule("days = ['2026-02-29']",
                    "8:9: service \"login\": schedule \"sale\": days[1]: \"2026-02-29\" is no "
                    "day; use mon, tue, wed, thu, fri, sat, sun, or a date such as "
                    "\"2026-11-11\""),
        in_schedule("days = [2026-11-11]",
                    "8:9: service \"login\": schedule \"sale\": days[1]: is a date; use "
                    "\"fri\""),
        in_schedule("days = ['fri', 'fri']",
                    "8:16: service \"login\": schedule \"sale\": days[2]: \"fri\" stands twice; "
                    "remove one"),
        in_schedule("days = ['fri']\nfrom = '24:00'",
                    "9:8: service \"login\": schedule \"sale\": from: \"24:00\" is no time of "
                    "day; use one from \"00:00\" to \"23:59\", or with seconds, \"23:59:59\""),
        in_schedule("days = ['fri']\nfrom = '7:00'",
                    "9:8: service \"login\": schedule \"sale\": from: \"7:00\" is no time of "
                    "day; use one from \"00:00\" to \"23:59\", or with seconds, \"23:59:59\""),
        in_schedule(std::string(kTimes) + "zone = 'Europe/Berlim'",
                    "11:8: service \"login\": schedule \"sale\": zone: \"Europe/Berlim\" is no "
                    "time zone; use one of /usr/share/zoneinfo, such as \"Europe/Berlin\""),
        in_schedule(
            kTimes,
            "6:1: service \"login\": schedule[1]: changes nothing; give it such as budget = { "
            "data = \"60000/s\" }"),
        in_schedule(std::string(kTimes) + "budget = { bytes = '1MB/s' }",
                    "11:20: service \"login\": schedule \"sale\": budget.bytes: the service "
                    "itself has no such limit; give it one in [service.budget], or remove this"),
        in_schedule(std::string(kTimes) + "budget = { shared = false }",
                    "11:12: service \"login\": schedule \"sale\": budget.shared: unknown key; "
                    "known here: connections, data, packets, bytes"),
        in_schedule(std::string(kTimes) + "budget = { data = '1/s' }\nzones = 'UTC'",
                    "12:1: service \"login\": schedule \"sale\": zones: unknown key; did you mean "
                    "\"zone\"?"),
        in_schedule(std::string(kTimes) + "budget = { data = '1/s' }\nin_force = ['budget.bytes']",
                    "12:13: service \"login\": schedule \"sale\": in_force[1]: is nothing that "
                    "this schedule changes; remove it"),
        in_schedule(
            std::string(kTimes) + "budget = { data = '1/s' }\n[[service.schedule]]\n" +
                "name = 'more'\ndays = ['2026-11-13']\nfrom = '20:29'\nto = '01:00'\n" +
                "budget = { data = '2/s' }",
            "12:1: service \"login\": schedule[2]: \"more\" and \"sale\" change budget.data at the "
            "same time; let one end before the other begins, or change it in one of them"),
        in_schedule(
            std::string(kTimes) + "budget = { data = '1/s' }\n[[service.schedule]]\n" +
                "name = 'more'\ndays = ['fri']\nfrom = '13:00'\nto = '14:00'\n" +
                "zone = 'America/New_York'\nbudget = { data = '2/s' }\n"
                "[[service.schedule]]\nname = 'most'\ndays = ['2026-07-10']\n"
                "from = '19:59'\nto = '20:00'\nzone = 'Europe/Berlin'\n"
                "budget = { data = '3/s' }",
            "19:1: service \"login\": schedule[3]: \"most\" and \"more\" change budget.data at the "
            "same time; let one end before the other begins, or change it in one of them"),
        in_schedule(std::string(kTimes) + "budget = { data = '1/s' }\n[[service.schedule]]\n" +
                        "name = 'sale'",
                    "13:8: service \"login\": schedule \"sale\": name: stands twice; give each "
                    "one a name of its own"),
        in_service("[service.per_source]\nconnections = { limit = 5, window = '60s' }\n"
                   "[[service.schedule]]\nname = 'sale'\ndays = ['fri']\nfrom = '19:55'\n"
                   "to = '20:30'\nper_source = { connections = '5/s' }",
                   "11:30: service \"login\": schedule \"sale\": per_source.connections: is a "
                   "rate, and the service's own limit is a window; write both in the same way")));

INSTANTIATE_TEST_SUITE_P(
    WhatThePacketPathCannotHold, Refusals,
    testing::Values(
        in_service("[service.per_source]\nbytes = { rate = '1MB/s', burst = 65549 }",
                   "5:9: service \"login\": per_source.bytes: a burst of 65549 bytes is less than "
                   "the largest packet; use a burst of at least 65550 bytes"),
        in_service("[service.per_source]\nbytes = { rate = '1MB/s', burst = '70kB' }\n"
                   "[[class]]\nname = 'a'\nprefixes = ['192.0.2.0/24']\nscale = 0.5",
                   "5:9: service \"login\": per_source.bytes: a burst of 70000 bytes is less than "
                   "the largest packet under the smallest scale of a class; use a burst of at "
                   "least 131100 bytes"),
        in_service("[service.per_source]\nconnections = { limit = 40000, window = '1m' }\n"
                   "[[class]]\nname = 'a'\nprefixes = ['192.0.2.0/24']\nscale = 2",
                   "5:15: service \"login\": per_source.connections: a limit of 40000 in a "
                   "window, times the largest scale of a class, is above 65535; use at most "
                   "32767")));

// A list of `count` values, each made from its number.
template <class Make>
std::string list_of(unsigned count, const Make& make) {
    std::string list;
    for (unsigned i = 0; i < count; ++i)
        list += (list.empty() ? "['" : ", '") + make(i) + '\'';
    return list + ']';
}

std::string address(unsigned number) {
    return "10.0." + std::to_string(number / 256) + '.' + std::to_string(number % 256);
}

std::string refusal(const std::string& text) {
    const auto policy = parse_policy(text, "sluice.toml");
    return policy ? "" : policy.error().message;
}

TEST(Refusal, OneLengthOfSourcesTooManyHasAPlace) {
    const auto allows = [](unsigned lengths) {
        return "[sources]\nallow = " +
               list_of(lengths, [](unsigned i) { return "2001:db8::/" + std::to_string(60 + i); });
    };
    EXPECT_EQ(refusal(allows(31)), "");  // and that of single addresses
    EXPECT_THAT(refusal(allows(32)),
                testing::MatchesRegex("sluice.toml:2:[0-9]+: sources.allow.32.: is IPv6 prefix "
                                      "length number 33 .*"));
    // Classes count with them.
    EXPECT_THAT(
        refusal(allows(31) + "\n[[class]]\nname = 'a'\nprefixes = ['2001:db8::/48']\nscale = 1"),
        testing::HasSubstr(":5:13: class \"a\": prefixes[1]: is IPv6 prefix length"));
}

TEST(Refusal, OneDestinationTooManyHasAPlace) {
    const auto matches = [](unsigned count) {
        return "[[service]]\nname = 'a'\nmatch = " +
               list_of(count, [](unsigned i) { return address(i) + ":tcp/80"; });
    };
    EXPECT_EQ(refusal(matches(4096)), "");
    EXPECT_THAT(refusal(matches(4097)),
                testing::MatchesRegex("sluice.toml:3:[0-9]+: service \"a\": match.4097.: is "
                                      "destination number 4097; the gate holds 4096; .*"));
}

TEST(Refusal, TooManyCellsHaveAPlace) {
    std::string text;
    for (unsigned i = 0; i < 600; ++i)
        text += "[[service]]\nname = 's" + std::to_string(i) + "'\nmatch = ['" + address(i) +
                ":tcp/" + std::to_string(i + 1) + "']\n";
    EXPECT_THAT(refusal(text), testing::MatchesRegex("sluice.toml:1:.*cells; the gate holds.*"));
}

TEST(Refusal, TiesAreFoundAmongRangesOfAnyService) {
    const auto tie = [](const std::string& first, const std::string& second) {
        return refusal("[[service]]\nname = 'a'\nmatch = [" + first +
                       "]\n[[service]]\nname = 'b'\nmatch = [" + second + ']');
    };
    EXPECT_THAT(tie("'tcp/1-100', 'tcp/90-189'", "'tcp/120-219'"),
                testing::HasSubstr("\"tcp/120-219\" ties with \"tcp/90-189\""));
    EXPECT_THAT(tie("'tcp/1-100'", "'tcp/101-200', 'tcp/100-199'"),
                testing::HasSubstr("match[2]: \"tcp/100-199\" ties with \"tcp/1-100\""));
    EXPECT_THAT(tie("'tcp/80'", "'[::/0]:tcp/80'"), testing::HasSubstr("ties with"));
    EXPECT_THAT(tie("'0.0.0.0/0:icmp'", "'icmp'"), testing::HasSubstr("ties with"));
    EXPECT_EQ(tie("'0.0.0.0/0:tcp/80'", "'[::/0]:tcp/80'"), "");
    EXPECT_EQ(tie("'tcp/80', '0.0.0.0/0:tcp/80'", "'192.0.2.0/24:tcp/80'"), "");
    EXPECT_EQ(tie("'tcp/1-100'", "'tcp/101-200'"), "");
    EXPECT_THAT(refusal("[[service]]\nname = 'a'\n"
                        "match = ['tcp/80', '0.0.0.0/0:tcp/80', 'tcp/80']"),
                testing::HasSubstr("match[3]: \"tcp/80\" stands twice"));
}

TEST(Refusal, DeepKeysAreRefusedBeforeTheyAreFollowed) {
    std::string deep;
    for (int i = 0; i < 200'000; ++i)
        deep += "a.";
    for (const std::string& text :
         {deep + "b = 1", '[' + deep + "b]", "[[" + deep + "b]]", "a = { " + deep + "b = 1 }",
          "a = \"\"\"x\"\"\"\"\nb = { x = '''y'''', " + deep + "b = 1 }",
          std::string("a.'b'.\"c.d\" . e.f.g.h.i.j = 1"), "# it's\n" + deep + "b = 1"})
        EXPECT_THAT(refusal(text), testing::HasSubstr("a key of more than 8 parts")) << text.size();
    EXPECT_THAT(refusal("\n  " + deep + "b = 1"), testing::StartsWith("sluice.toml:2:18: "));
    // Dots elsewhere are none of a key.
    EXPECT_EQ(refusal("# ..........................\nmode = \"observe\" # a.b.c.d.e.f.g.h.i.j\n"
                      "[sources]\nallow = ['1.1.1.1', \"2.2.2.2\",\n '3.3.3.3', '4.4.4.4']"),
              "");
    EXPECT_THAT(refusal("a.b.c.d.e.f.g.h = 1"),
                testing::StartsWith("sluice.toml:1:1: a: unknown key"));
}

TEST(Refusal, LongValuesAndKeysAreNotRepeatedWhole) {
    const std::string lots(100'000, 'x');
    for (const std::string& text :
         {"mode = '" + lots + "'", lots + " = 1", "[[service]]\nname = '" + lots + "'",
          "[[service]]\nname = 'a'\nmatch = ['" + lots + "']",
          "[sources]\nallow = ['" + lots + "']", "[events]\nrate = '" + lots + "'"})
        EXPECT_LT(refusal(text).size(), 600U) << text.substr(0, 40);
}

TEST(Refusal, TheFirstProblemOfManyIsTheOneReported) {
    const auto policy = parse_policy("mode = 'x'\nxdp_mode = 'y'\ncolour = 1\n", "sluice.toml");
    ASSERT_FALSE(policy);
    EXPECT_THAT(policy.error().message, testing::StartsWith("sluice.toml:1:8: mode:"));
}

TEST(Refusal, AFileOfAnotherNameIsNamed) {
    EXPECT_THAT(parse_policy("mode = 'x'", "/etc/sluice/edge.toml").error().message,
                testing::StartsWith("/etc/sluice/edge.toml:1:8: "));
}

}  // namespace
}  // namespace sluice
