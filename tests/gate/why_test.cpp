// What `why` says is what then happens: asked before each packet, compared with its verdict.
#include "gate/why.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

#include "gate/source_parts.h"
#include "gate/switches.h"
#include "gate_under_test.h"

namespace sluice {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view kClient = "192.0.2.10";
constexpr std::string_view kServer = "203.0.113.1";

class WhyTest : public GateUnderTest {
  protected:
    Why ask(const Question& question, std::string_view source = kClient) {
        const auto answer = why(*tables_, IpAddress::parse(source).value(), question);
        EXPECT_TRUE(answer) << (answer ? "" : answer.error().message);
        return answer ? *answer : Why{};
    }
    static Question web(PacketKind kind) {
        return {
            .service = {}, .protocol = IPPROTO_TCP, .port = 443, .destination = {}, .kind = kind};
    }
    static Packet data(std::string_view source = kClient, uint16_t port = 443) {
        return Ethernet() / from(source).to(kServer) / tcp(40000, port).ack().payload(100);
    }
    static Packet syn(std::string_view source = kClient, uint16_t port = 443) {
        return Ethernet() / from(source).to(kServer) / tcp(40000, port).syn();
    }
};

TEST_F(WhyTest, AgreesWithThePacketPathPacketByPacket) {
    install(R"(
[sources]
ipv6_prefix = 64
[[service]]
name = "web"
match = ["tcp/443"]
[service.per_source]
connections = { limit = 3, window = "4s" }
data = { rate = "0.5/s", burst = 2 }
packets = { rate = "3/s", burst = 6 }
[service.per_prefix]
connections = { rate = "0.5/s", burst = 2 }
[[service]]
name = "dns"
match = ["udp/53", "203.0.113.1:tcp/53"]
modes = { "per_source.data" = "observe" }
[service.per_source]
data = { rate = "4/s", burst = 4 }
packets = { rate = "5/s", burst = 8 }
on_excess = { jail = "2s", spoofable = true }
[[service]]
name = "many"
match = ["tcp/1024-65535"]
[service.per_source]
connections = { limit = 20, window = "2s" }
)");
    ban("198.51.100.66", 20s);
    allow("198.51.100.77");
    constexpr std::array<std::string_view, 6> kSources = {"192.0.2.10",      "192.0.2.77",
                                                          "198.51.100.66",   "198.51.100.77",
                                                          "2001:db8:a:1::1", "2001:db8:a:1::2"};
    constexpr std::array<uint16_t, 4> kPorts = {443, 53, 8080, 22};
    std::mt19937 random(7);
    std::map<std::string, int> seen;
    for (int i = 0; i < 6000; ++i) {
        const auto source = kSources.at(random() % kSources.size());
        const bool ipv6 = source.find(':') != std::string_view::npos;
        const std::string_view server = ipv6 ? "2001:db8:c::1" : kServer;
        const uint16_t port = kPorts.at(random() % kPorts.size());
        Question question{.service = {},
                          .protocol = IPPROTO_TCP,
                          .port = port,
                          .destination = IpAddress::parse(server).value(),
                          .kind = PacketKind::data};
        Packet packet = Ethernet();
        switch (random() % 4) {
            case 0:
                packet = Ethernet() / from(source).to(server) / tcp(40000, port).syn();
                question.kind = PacketKind::connection;
                break;
            case 1:
                packet = Ethernet() / from(source).to(server) / tcp(40000, port).ack();
                question.kind = PacketKind::other;
                break;
            case 2:
                packet = Ethernet() / from(source).to(server) / udp(40000, port).payload(50);
                question.protocol = IPPROTO_UDP;
                break;
            default:
                packet = Ethernet() / from(source).to(server) / tcp(40000, port).ack().payload(100);
        }
        const Why expected = ask(question, source);
        const Outcome outcome = send(packet);
        ASSERT_EQ(outcome.verdict, expected.verdict) << "packet " << i << " of " << source;
        if (!outcome.verdict.ends_with("banned")) {
            ASSERT_EQ(outcome.service, expected.service);
        }
        ++seen[outcome.verdict];
        advance(nanoseconds(random() % 20'000'000));
    }
    for (const char* verdict : {"pass_within", "pass_unlimited", "pass_allowed", "drop_banned",
                                "drop_jailed", "drop_source_data", "drop_source_packets",
                                "drop_source_window", "drop_prefix", "would_drop_source_data"})
        EXPECT_GT(seen[verdict], 0) << verdict;
}

TEST_F(WhyTest, SaysHowLongAndThenItPasses) {
    install_web(
        "[service.per_source]\ndata = { rate = \"2/s\", burst = 3 }\n"
        "connections = { limit = 2, window = \"10s\" }\n");
    const Why fresh = ask(web(PacketKind::data));
    EXPECT_EQ(fresh.verdict, "pass_within");
    EXPECT_EQ(fresh.rule, "web.per_source.data");
    ASSERT_TRUE(fresh.bucket);
    EXPECT_EQ(fresh.bucket->rate, "2/s");
    EXPECT_EQ(fresh.bucket->burst, 3U);
    EXPECT_EQ(fresh.bucket->available, 3U);
    EXPECT_EQ(fresh.actor, "policy");
    EXPECT_EQ(fresh.policy_version, 1U);

    EXPECT_EQ(send_many(data(), 10), 3U);
    const Why over = ask(web(PacketKind::data));
    EXPECT_EQ(over.verdict, "drop_source_data");
    EXPECT_EQ(over.bucket->available, 0U);
    ASSERT_TRUE(over.expires_in);
    advance(*over.expires_in - 1ms);
    EXPECT_EQ(send(data()), "drop_source_data");
    advance(2ms);
    EXPECT_EQ(send(data()), "pass_within");

    EXPECT_EQ(send_many(syn(), 5), 2U);
    const Why full = ask(web(PacketKind::automatic));
    EXPECT_EQ(full.verdict, "drop_source_window");
    EXPECT_EQ(full.bucket->rate, "2 per 10s");
    ASSERT_TRUE(full.expires_in);
    advance(*full.expires_in + 1ms);
    EXPECT_EQ(send(syn()), "pass_within");
}

TEST_F(WhyTest, BansNameWhoAndWhy) {
    install_web("");
    ASSERT_TRUE(rules().ban(Prefix::parse("192.0.2.0/24").value(),
                            {.ttl = 10min, .reason = "scans", .actor = "alice"}));
    const Why banned = ask(web(PacketKind::data));
    EXPECT_EQ(banned.verdict, "drop_banned");
    EXPECT_EQ(banned.rule, "bans.operator");
    EXPECT_EQ(banned.actor, "alice");
    ASSERT_TRUE(banned.expires_in);
    EXPECT_LE(*banned.expires_in, 10min + 2ms);
    EXPECT_GT(*banned.expires_in, 9min);
    EXPECT_THAT(banned.notes, Contains("192.0.2.0/24 is banned"));
    EXPECT_THAT(banned.notes, Contains("reason: scans"));

    set_mode(SLUICE_MODE_OBSERVE);
    EXPECT_EQ(ask(web(PacketKind::data)).verdict, "would_drop_banned");
    set_mode(SLUICE_MODE_OFF);
    const Why off = ask(web(PacketKind::data));
    EXPECT_EQ(off.verdict, "pass_mode_off");
    EXPECT_THAT(off.notes, Contains(HasSubstr("would_drop_banned")));
}

TEST_F(WhyTest, NamesTheOperatorBehindAMode) {
    install_web("[service.per_source]\ndata = { rate = \"2/s\", burst = 1 }\n");
    EXPECT_EQ(send_many(data(), 3), 1U);
    ASSERT_TRUE(sluice::set_mode(*tables_, OneService{"web"}, Mode::observe,
                                 {.lasts = 10min, .confirm = {}}));
    const Why answer = ask(web(PacketKind::data));
    EXPECT_EQ(answer.verdict, "would_drop_source_data");
    EXPECT_THAT(answer.notes, Contains(HasSubstr("web is switched to observe by an operator")));
}

TEST_F(WhyTest, ClassesScale) {
    install(R"(
[[service]]
name = "web"
match = ["tcp/443"]
[service.per_source]
data = { rate = "10/s", burst = 20 }
[[class]]
name = "slow"
prefixes = ["192.0.2.0/24"]
scale = 0.5
)");
    ASSERT_TRUE(rules().classify(Prefix::parse("192.0.2.0/24").value(), {.source_class = 1}));
    const Why slow = ask(web(PacketKind::data));
    EXPECT_EQ(slow.source_class, "slow");
    EXPECT_EQ(slow.bucket->burst, 10U);
    EXPECT_EQ(send_many(data(), 30), 10U);
    EXPECT_EQ(ask(web(PacketKind::data), "198.51.100.10").bucket->burst, 20U);
}

TEST_F(WhyTest, BudgetsAndAllowedSources) {
    install_web(
        "[service.per_source]\ndata = \"1000/s\"\n"
        "[service.budget]\ndata = { rate = \"10/s\", burst = 5 }\n");
    allow("198.51.100.10");
    allow("198.51.100.20", true);
    EXPECT_EQ(send_many(data(), 50), 5U);
    const Why dry = ask(web(PacketKind::data));
    EXPECT_EQ(dry.verdict, "drop_budget");
    EXPECT_EQ(dry.rule, "web.budget.data");
    EXPECT_EQ(dry.bucket->burst, 5U);
    EXPECT_EQ(ask(web(PacketKind::data), "198.51.100.10").verdict, "drop_budget");
    EXPECT_EQ(ask(web(PacketKind::data), "198.51.100.20").verdict, "pass_exempt");
    advance(10s);
    EXPECT_EQ(ask(web(PacketKind::data), "198.51.100.10").verdict, "pass_allowed");
}

TEST_F(WhyTest, AnAllowSaysWhoseItIsAndUntilWhen) {
    install_web("[service.budget]\ndata = { rate = \"10/s\", burst = 5 }\n");
    SourceRules rules(*tables_);
    ASSERT_TRUE(rules.allow(Prefix::parse("198.51.100.0/24").value(),
                            {.ttl = 60s, .reason = "office", .actor = "alice"}));
    const Why allowed = ask(web(PacketKind::data), "198.51.100.10");
    EXPECT_EQ(allowed.verdict, "pass_allowed");
    EXPECT_EQ(allowed.actor, "alice");
    EXPECT_EQ(allowed.expires_in, 60s);
    EXPECT_THAT(allowed.notes, Contains("198.51.100.0/24 is allowed by alice, for another 1m: no "
                                        "limits per source, budgets still count"));
    EXPECT_THAT(allowed.notes, Contains("reason: office"));
    // The budget is the policy's word all the same.
    EXPECT_EQ(send_many(data(), 50), 5U);
    const Why dry = ask(web(PacketKind::data), "198.51.100.10");
    EXPECT_EQ(dry.verdict, "drop_budget");
    EXPECT_EQ(dry.actor, "policy");
}

TEST_F(WhyTest, AGraceSaysForHowLong) {
    install_web("[service.per_source]\ndata = \"1000/s\"\n");
    ASSERT_TRUE(SourceRules(*tables_).protect(
        Prefix::parse("198.51.100.10").value(),
        {.ttl = 90s, .list = "grace", .reason = "grace after an unban"}));
    EXPECT_THAT(ask(web(PacketKind::data), "198.51.100.10").notes,
                Contains("198.51.100.10 is protected (grace after an unban, for another "
                         "90s): only --force bans it, limits still hold"));
}

TEST_F(WhyTest, WithoutAServiceTheStrictestAnswerCounts) {
    install(R"(
[[service]]
name = "web"
match = ["tcp/443"]
[service.per_source]
data = { rate = "10/s", burst = 20 }
[[service]]
name = "ssh"
match = ["tcp/22"]
[service.per_source]
data = { rate = "1/s", burst = 2 }
)");
    // A full bucket is stricter than no limit at all.
    EXPECT_EQ(ask({}).verdict, "pass_within");
    EXPECT_NE(ask({}).service, "other");
    send_many(data(kClient, 22), 5);
    const Why strictest = ask({});
    EXPECT_EQ(strictest.service, "ssh");
    EXPECT_EQ(strictest.verdict, "drop_source_data");
    Question unknown;
    unknown.service = "nothing";
    const auto refused = why(*tables_, IpAddress::parse(kClient).value(), unknown);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_found);
}

TEST_F(WhyTest, SaysWhichPartOfALimitHoldsHere) {
    install_web("per_source = { data = { rate = \"100/s\", burst = 40 } }");
    const SourceParts parts(*tables_, IpAddress::parse(kClient).value(), service_id("web"));
    ASSERT_TRUE(parts.put(Dimension::data, 0.4, now() + count(1500ms)));
    EXPECT_EQ(ask(web(PacketKind::data)).bucket->burst, 40U) << "nobody heeds it";
    heed_parts(*tables_, true);
    const Why half = ask(web(PacketKind::data));
    EXPECT_EQ(half.bucket->burst, 16U);
    EXPECT_THAT(half.notes, Contains(HasSubstr("web.per_source.data: here 40 % of 100/s, as the "
                                               "source is heavy on other hosts of the fleet too; "
                                               "for another 14")));
    EXPECT_EQ(send_many(data(), 99), 16U);
    const Why spent = ask(web(PacketKind::data));
    EXPECT_EQ(spent.verdict, "drop_source_data");
    EXPECT_EQ(spent.bucket->available, 0U);
    EXPECT_NEAR(static_cast<double>(spent.expires_in.value_or(0ns).count()), 25e6, 1e5)
        << "40 a second";
    advance(2s);
    EXPECT_EQ(ask(web(PacketKind::data)).bucket->burst, 40U);
}

TEST_F(WhyTest, ChangesNothing) {
    install_web(
        "[service.per_source]\ndata = { rate = \"2/s\", burst = 1 }\n"
        "connections = { limit = 2, window = \"10s\" }\n"
        "[service.budget]\ndata = \"10/s\"\n");
    send_many(data(), 3);
    send_many(syn(), 3);
    const State before = state();
    ask({});
    ask(web(PacketKind::connection));
    EXPECT_EQ(state(), before);
}

}  // namespace
}  // namespace sluice
