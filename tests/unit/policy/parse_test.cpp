#include "policy/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

Policy parse(std::string_view text) {
    auto policy = parse_policy(text, "sluice.toml");
    EXPECT_TRUE(policy) << policy.error().message;
    return policy ? *std::move(policy) : Policy{};
}

// A policy whose single service has these lines besides name and match.
Service service(const std::string& lines) {
    const Policy policy =
        parse("[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n" + lines + "\n");
    EXPECT_EQ(policy.services.size(), 1U);
    return policy.services.empty() ? Service{} : policy.services.front();
}

Prefix prefix(std::string_view text) {
    return Prefix::parse(text).value();
}

TEST(Parse, AnEmptyFileIsADefaultPolicyThatOnlyObserves) {
    const Policy policy = parse("");
    EXPECT_EQ(policy.mode, Mode::observe);
    EXPECT_EQ(policy.xdp_mode, XdpMode::automatic);
    EXPECT_THAT(policy.interfaces, IsEmpty());
    EXPECT_THAT(policy.services, IsEmpty());
    EXPECT_EQ(policy.sources.capacity, 1'000'000U);
    EXPECT_EQ(policy.sources.ipv4_prefix, 32U);
    EXPECT_EQ(policy.sources.ipv6_prefix, 64U);
    EXPECT_EQ(policy.sources.on_table_full, TableFull::evict);
    EXPECT_DOUBLE_EQ(policy.events_per_second, 1000);
}

TEST(Parse, ReadsTheWholeOfACompleteFile) {
    const Policy policy = parse(R"(
mode = "enforce"
interfaces = ["eth0", "eth1"]
xdp_mode = "native"

[sources]
capacity = 2_000_000
ipv4_prefix = 31
ipv6_prefix = 56
allow = ["192.0.2.0/24", { prefix = "2001:db8::/32", exempt = true }, { prefix = "192.0.2.1" }]
on_table_full = "share"

[[service]]
name = "login"
match = ["tcp/443", "203.0.113.10:tcp/8443"]
mode = "observe"
modes = { "per_source.data" = "enforce", "budget.connections" = "off" }
reply_exempt = false
[service.per_source]
connections = { limit = 10, window = "60s" }
data = { rate = "60/s", burst = 120 }
packets = "20000/s"
bytes = "2MB/s"
on_excess = { jail = "30s", spoofable = true }
[service.per_prefix]
ipv4 = 20
ipv6 = 40
connections = "500/s"
[service.budget]
connections = "3000/s"
data = { rate = "20k/s", burst = 400 }
shared = false
fair = false

[[service]]
name = "other"
per_source = { packets = "1000/s" }

[[class]]
name = "partners"
prefixes = ["198.51.100.0/24"]
scale = 4

[events]
rate = "30/m"
)");
    EXPECT_EQ(policy.mode, Mode::enforce);
    EXPECT_THAT(policy.interfaces, ElementsAre("eth0", "eth1"));
    EXPECT_EQ(policy.xdp_mode, XdpMode::native);
    EXPECT_DOUBLE_EQ(policy.events_per_second, 0.5);
    EXPECT_THAT(policy.warnings, IsEmpty());

    EXPECT_EQ(policy.sources.capacity, 2'000'000U);
    EXPECT_EQ(policy.sources.ipv4_prefix, 31U);
    EXPECT_EQ(policy.sources.ipv6_prefix, 56U);
    EXPECT_EQ(policy.sources.on_table_full, TableFull::share);
    ASSERT_EQ(policy.sources.allow.size(), 3U);
    EXPECT_EQ(policy.sources.allow[0].prefix, prefix("192.0.2.0/24"));
    EXPECT_FALSE(policy.sources.allow[0].exempt);
    EXPECT_EQ(policy.sources.allow[1].prefix, prefix("2001:db8::/32"));
    EXPECT_TRUE(policy.sources.allow[1].exempt);
    EXPECT_FALSE(policy.sources.allow[2].exempt);

    ASSERT_EQ(policy.services.size(), 2U);
    const Service& login = policy.services[0];
    EXPECT_EQ(login.name, "login");
    ASSERT_EQ(login.matches.size(), 2U);
    EXPECT_EQ(login.matches[1].destination, prefix("203.0.113.10"));
    EXPECT_EQ(login.mode, Mode::observe);
    EXPECT_THAT(login.modes,
                ElementsAre(std::pair(Rule{Scope::per_source, Dimension::data}, Mode::enforce),
                            std::pair(Rule{Scope::budget, Dimension::connections}, Mode::off)));
    EXPECT_FALSE(login.reply_exempt);
    EXPECT_EQ(login.per_source.at(Dimension::connections), Limit(StrictWindow{10, 60s}));
    EXPECT_EQ(login.per_source.at(Dimension::data), Limit(TokenBucket{{60, 1s}, 120}));
    EXPECT_EQ(login.per_source.at(Dimension::packets), Limit(TokenBucket{{20'000, 1s}, 20'000}));
    EXPECT_EQ(login.per_source.at(Dimension::bytes),
              Limit(TokenBucket{{2'000'000, 1s}, 2'000'000}));
    EXPECT_EQ(login.jail, (Jail{30s, true}));
    EXPECT_EQ(login.prefix_ipv4, 20U);
    EXPECT_EQ(login.prefix_ipv6, 40U);
    EXPECT_EQ(login.per_prefix.at(Dimension::connections), Limit(TokenBucket{{500, 1s}, 500}));
    EXPECT_EQ(login.budget.at(Dimension::connections), (TokenBucket{{3'000, 1s}, 150}));
    EXPECT_EQ(login.budget.at(Dimension::data), (TokenBucket{{20'000, 1s}, 400}));

    const Service& other = policy.services[1];
    EXPECT_EQ(other.name, "other");
    EXPECT_THAT(other.matches, IsEmpty());
    EXPECT_EQ(other.mode, std::nullopt);
    EXPECT_TRUE(other.reply_exempt);

    ASSERT_EQ(policy.classes.size(), 1U);
    EXPECT_EQ(policy.classes[0].name, "partners");
    EXPECT_THAT(policy.classes[0].prefixes, ElementsAre(prefix("198.51.100.0/24")));
    EXPECT_DOUBLE_EQ(policy.classes[0].scale, 4.0);
}

struct BurstCase {
    const char* table;
    const char* limit;
    Dimension dimension;
    TokenBucket bucket;
};

class Bursts : public testing::TestWithParam<BurstCase> {};

TEST_P(Bursts, DefaultToATimeOfTheRateAndAtLeastOne) {
    const BurstCase& c = GetParam();
    const Service web = service("[service." + std::string(c.table) + "]\n" + c.limit);
    if (std::string_view(c.table) == "budget")
        EXPECT_EQ(web.budget.at(c.dimension), c.bucket);
    else if (std::string_view(c.table) == "per_prefix")
        EXPECT_EQ(web.per_prefix.at(c.dimension), Limit(c.bucket));
    else
        EXPECT_EQ(web.per_source.at(c.dimension), Limit(c.bucket));
}

INSTANTIATE_TEST_SUITE_P(
    Limits, Bursts,
    testing::Values(
        BurstCase{"per_source", "data = '20/s'", Dimension::data, {{20, 1s}, 20}},
        BurstCase{"per_source", "data = '3/h'", Dimension::data, {{3, 1h}, 1}},
        BurstCase{"per_source", "data = '90/m'", Dimension::data, {{90, 1min}, 1}},
        BurstCase{"per_source", "data = { rate = '20/s' }", Dimension::data, {{20, 1s}, 20}},
        BurstCase{"per_source",
                  "connections = { rate = '20/s', burst = 1 }",
                  Dimension::connections,
                  {{20, 1s}, 1}},
        BurstCase{
            "per_source", "bytes = '100Mbit/s'", Dimension::bytes, {{12'500'000, 1s}, 12'500'000}},
        BurstCase{"per_source",
                  "bytes = { rate = '1MB/s', burst = '128KiB' }",
                  Dimension::bytes,
                  {{1'000'000, 1s}, 131'072}},
        BurstCase{"per_source",
                  "bytes = { rate = '1MB/s', burst = 70000 }",
                  Dimension::bytes,
                  {{1'000'000, 1s}, 70'000}},
        BurstCase{"per_prefix", "data = '500/s'", Dimension::data, {{500, 1s}, 500}},
        BurstCase{"budget", "data = '3000/s'", Dimension::data, {{3'000, 1s}, 150}},
        BurstCase{"budget", "data = '10/s'", Dimension::data, {{10, 1s}, 1}},
        BurstCase{"budget",
                  "bytes = '400Gbit/s'",
                  Dimension::bytes,
                  {{50'000'000'000, 1s}, 2'500'000'000}}));

TEST(Parse, BudgetsAreTheFleetsWhereThereIsRedis) {
    const std::string shop =
        "[redis]\nurl = 'redis+sentinel://a,b/shop'\nusername = 'sluice'\n"
        "password_file = '/etc/sluice/redis.pass'\ncommand_timeout = '50ms'\n"
        "[fleet]\nname = 'shop'\nmax_hosts = 16\nhold_for = '10s'\n"
        "[[service]]\nname = 'login'\nmatch = ['tcp/443']\nbudget = { data = '1k/s' }\n"
        "[[service]]\nname = 'own'\nmatch = ['tcp/80']\n"
        "budget = { data = '1k/s', shared = false }\n"
        "[[service]]\nname = 'lax'\nmatch = ['tcp/22']\n"
        "budget = { data = '1k/s', on_redis_loss = 'open' }\n";
    const auto policy = parse_policy(shop, "shop.toml");
    ASSERT_TRUE(policy) << policy.error().message;
    ASSERT_TRUE(policy->redis);
    EXPECT_EQ(policy->redis->url, "redis+sentinel://a,b/shop");
    EXPECT_EQ(policy->redis->password_file, "/etc/sluice/redis.pass");
    EXPECT_EQ(policy->redis->command_timeout, 50ms);
    EXPECT_EQ(policy->redis->connect_timeout, 250ms);
    EXPECT_EQ(policy->fleet, (FleetSettings{"shop", 16, 10s}));
    ASSERT_EQ(policy->services.size(), 3U);
    EXPECT_TRUE(policy->services[0].shared);
    EXPECT_EQ(policy->services[0].on_redis_loss, OnRedisLoss::hold);
    EXPECT_FALSE(policy->services[1].shared);
    EXPECT_EQ(policy->services[2].on_redis_loss, OnRedisLoss::open);
    EXPECT_FALSE(service("budget = { data = '1k/s' }").shared);
}

TEST(Parse, ExcessIsPolicedUnlessAJailIsAskedFor) {
    EXPECT_EQ(service("per_source = { data = '1/s' }").jail, std::nullopt);
    EXPECT_EQ(service("per_source = { data = '1/s', on_excess = 'police' }").jail, std::nullopt);
    EXPECT_EQ(service("per_source = { data = '1/s', on_excess = { jail = '2d' } }").jail,
              (Jail{48h, false}));
}

TEST(Parse, MappedPrefixesAreIpv4AndHostBitsAWarning) {
    const Policy policy =
        parse("[sources]\nallow = [\"::ffff:192.0.2.1/120\", \"198.51.100.7\"]\n");
    ASSERT_EQ(policy.sources.allow.size(), 2U);
    EXPECT_EQ(policy.sources.allow[0].prefix, prefix("192.0.2.0/24"));
    ASSERT_EQ(policy.warnings.size(), 1U);
    EXPECT_EQ(policy.warnings[0],
              "sluice.toml:2:10: sources.allow[1]: \"::ffff:192.0.2.1/120\" has host bits set; "
              "taken as \"192.0.2.0/24\"");
}

TEST(Parse, TheSamePrefixTwiceIsOneEntryAndAWarning) {
    const Policy policy = parse(R"(
[sources]
allow = ["192.0.2.4/24", "192.0.2.5/24"]
[[class]]
name = "partners"
prefixes = ["198.51.100.0/24", "198.51.100.0/24"]
scale = 2
)");
    EXPECT_EQ(policy.sources.allow.size(), 1U);
    EXPECT_EQ(policy.classes[0].prefixes.size(), 1U);
    EXPECT_THAT(policy.warnings,
                ElementsAre(HasSubstr("\"192.0.2.4/24\" has host bits set"),
                            HasSubstr("\"192.0.2.5/24\" has host bits set"),
                            "sluice.toml:3:26: sources.allow[2]: \"192.0.2.0/24\" stands twice; "
                            "taken once",
                            HasSubstr("prefixes[2]: \"198.51.100.0/24\" stands twice")));
}

TEST(Parse, ClearedHostBitsOfAMatchAreAWarning) {
    const Policy policy = parse("[[service]]\nname = 'web'\nmatch = ['203.0.113.7/24:tcp/443']\n");
    ASSERT_EQ(policy.warnings.size(), 1U);
    EXPECT_THAT(policy.warnings[0], HasSubstr("taken as \"203.0.113.0/24:tcp/443\""));
}

TEST(Parse, MoreSpecificMatchesOfOtherServicesAreNoTie) {
    const Policy policy = parse(R"(
service = [
    { name = "web", match = ["tcp/443", "tcp/8000-8100"] },
    { name = "api", match = ["203.0.113.10:tcp/443", "tcp/8080"] },
    { name = "dns", match = ["udp/443", "udp/8000-8100"] },
]
)");
    EXPECT_EQ(policy.services.size(), 3U);
}

TEST(Parse, AServiceMayMatchTheSamePortTwiceInDifferentRanges) {
    EXPECT_EQ(parse("[[service]]\nname = 'a'\nmatch = ['tcp/1-10', 'tcp/5-14', 'tcp/7']\n")
                  .services.front()
                  .matches.size(),
              3U);
}

TEST(Parse, TakesAsManyServicesAsTheGateHolds) {
    std::string text;
    for (int i = 1; i <= 1024; ++i)
        text += "[[service]]\nname = 's" + std::to_string(i) + "'\nmatch = ['tcp/" +
                std::to_string(i) + "']\n";
    EXPECT_EQ(parse(text).services.size(), 1024U);
    const auto policy =
        parse_policy(text + "[[service]]\nname = 'more'\nmatch = ['udp/1']\n", "sluice.toml");
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().message,
              "sluice.toml:3073:1: service[1025]: is one service too many; use at most 1024");
}

TEST(Parse, RiskHasDefaultsThatFollowEachOther) {
    EXPECT_FALSE(parse("").risk);
    EXPECT_EQ(parse("[risk]").risk, RiskSettings());
    const auto scaled = parse("[risk]\nenter = 40\nban = '2h'\n").risk;
    ASSERT_TRUE(scaled);
    EXPECT_EQ(scaled->leave, 20);
    EXPECT_EQ(scaled->max_step, 40);
    EXPECT_EQ(scaled->max_ban, std::chrono::hours(2));
    const auto all = parse(R"([risk]
zset = "abuse"
weight = 0.5
max_step = 10
drain = true
over_limit = 0.01
half_life = "1h"
enter = 200
leave = 20
ban = "1m"
max_ban = "permanent"
memory = "7d"
max_bans_per_minute = 5
max_bans_per_hour = 0
max_share = 0.5
never = ["198.51.100.0/24", "2001:db8::1"]
)")
                         .risk;
    ASSERT_TRUE(all);
    EXPECT_EQ(all->zset, "abuse");
    EXPECT_EQ(all->weight, 0.5);
    EXPECT_EQ(all->max_step, 10);
    EXPECT_TRUE(all->drain);
    EXPECT_EQ(all->over_limit, 0.01);
    EXPECT_EQ(all->half_life, std::chrono::hours(1));
    EXPECT_EQ(all->leave, 20);
    EXPECT_FALSE(all->max_ban);
    EXPECT_EQ(all->memory, std::chrono::hours(7 * 24));
    EXPECT_EQ(all->max_bans_per_hour, 0U);
    EXPECT_EQ(all->never.size(), 2U);
}

}  // namespace
}  // namespace sluice
