// Limits per source and per prefix: what is counted, for whom, and that a drop changes nothing.
#include <sluice/source.h>

#include "gate_under_test.h"

namespace sluice {

namespace {

class Limits : public GateOfBothFamilies {
  protected:
    static Ip ip_from(std::string_view source) { return from(source).to(of().server); }
    static Packet syn(std::string_view source = of().client) {
        return Ethernet() / ip_from(source) / tcp(40000, 443).syn();
    }
    static Packet segment(size_t payload, std::string_view source = of().client) {
        return Ethernet() / ip_from(source) / tcp(40000, 443).ack().payload(payload);
    }
    static Packet datagram(size_t payload, std::string_view source = of().client) {
        return Ethernet() / ip_from(source) / udp(40000, 443).payload(payload);
    }
};
FOR_BOTH_FAMILIES(Limits);

TEST_P(Limits, ConnectionsAreSynsWithoutAck) {
    install_web("per_source = { connections = { rate = \"1/s\", burst = 2 } }");
    const auto ip = ip_from(of().client);
    EXPECT_EQ(send_many(syn(), 5), 2U);
    EXPECT_EQ(send(syn()), "drop_source_connections");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 443).syn().flag(0xc0)), "drop_source_connections");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 443).syn().payload(500)),
              "drop_source_connections");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 443).syn().ack()), "pass_within");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 443).rst()), "pass_within");
    EXPECT_EQ(send(segment(100)), "pass_within");
    EXPECT_EQ(send(datagram(100)), "pass_within");
}

TEST_P(Limits, DataIsSegmentsWithPayloadAndDatagrams) {
    install_web("per_source = { data = { rate = \"1/s\", burst = 3 } }");
    EXPECT_EQ(send_many(syn(), 9), 9U);
    EXPECT_EQ(send_many(segment(0), 9), 9U);
    EXPECT_EQ(send_many(Ethernet() / ip_from(of().client) / tcp(1, 443).ack().options(10), 9), 9U);
    EXPECT_EQ(send(segment(1)), "pass_within");
    EXPECT_EQ(send(datagram(0)), "pass_within");
    EXPECT_EQ(send(Ethernet() / ip_from(of().client) / tcp(1, 443).syn().payload(4)),
              "pass_within");
    EXPECT_EQ(send(datagram(0)), "drop_source_data");
    EXPECT_EQ(send(segment(1000)), "drop_source_data");
    EXPECT_EQ(send(segment(0)), "pass_within");
    // Padding of a short frame is no payload.
    EXPECT_EQ(send(segment(0).pad_to(90)), "pass_within");
}

TEST_P(Limits, PacketsAreAll) {
    install_web("per_source = { packets = { rate = \"1/s\", burst = 3 } }");
    EXPECT_EQ(send(syn()), "pass_within");
    EXPECT_EQ(send(segment(0)), "pass_within");
    EXPECT_EQ(send(datagram(10)), "pass_within");
    EXPECT_EQ(send(segment(0)), "drop_source_packets");
}

TEST_P(Limits, BytesAreThoseOfTheFrame) {
    install_web("per_source = { bytes = { rate = \"1kB/s\", burst = \"70000B\" } }");
    const Packet packet = segment(1400);
    const auto size = packet.bytes().size();
    EXPECT_EQ(send_many(packet, 100), 70000 / size);
    EXPECT_EQ(send(packet), "drop_source_bytes");
    // The sender's word about the length does not count: padding does.
    advance(60s);
    EXPECT_EQ(send_many(segment(0).pad_to(1500), 100), 60000 / 1500U);
}

TEST_P(Limits, SourcesAndServicesAreApart) {
    install(R"(
[[service]]
name = "web"
match = ["tcp/443"]
per_source = { packets = { rate = "1/s", burst = 3 } }
[[service]]
name = "dns"
match = ["udp/53"]
per_source = { packets = { rate = "1/s", burst = 5 } }
[[service]]
name = "other"
per_source = { packets = { rate = "1/s", burst = 7 } }
)");
    for (const auto source : {of().client, of().same_network, of().other_network}) {
        EXPECT_EQ(send_many(syn(source), 9), 3U);
        EXPECT_EQ(send_many(Ethernet() / ip_from(source) / udp(1, 53), 9), 5U);
        EXPECT_EQ(send_many(Ethernet() / ip_from(source) / udp(1, 54), 9), 7U);
    }
    EXPECT_EQ(send(Ethernet() / ip_from(of().client) / udp(1, 53)).service, "dns");
}

TEST_P(Limits, ASourceIsWhatThePolicySays) {
    constexpr auto kService =
        "\n[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
        "per_source = { packets = { rate = \"1/s\", burst = 3 } }\n";
    install(std::string("[sources]\nipv4_prefix = 24\nipv6_prefix = 48\n") + kService);
    EXPECT_EQ(send_many(syn(of().client), 2), 2U);
    EXPECT_EQ(send_many(syn(of().same_network), 2), 1U);
    EXPECT_EQ(send_many(syn(of().other_network), 9), 3U);
    // Addresses without a lower half are no exception.
    if (GetParam() == Family::ipv6) {
        EXPECT_EQ(send_many(syn("2001:db8:d:1::"), 2), 2U);
        EXPECT_EQ(send_many(syn("2001:db8:d:2::"), 2), 1U);
        EXPECT_EQ(send_many(syn("2001:db8:d:3::1"), 2), 0U);
    }
}

TEST_P(Limits, APrefixIsLimitedToo) {
    install_web(
        "per_source = { connections = { rate = \"1/s\", burst = 3 } }\n"
        "per_prefix = { connections = { rate = \"1/s\", burst = 4 } }\n");
    EXPECT_EQ(send_many(syn(of().client), 9), 3U);
    EXPECT_EQ(send(syn(of().client)), "drop_source_connections");
    EXPECT_EQ(send(syn(of().same_network)), "pass_within");
    EXPECT_EQ(send(syn(of().same_network)), "drop_prefix");
    EXPECT_EQ(send(syn(of().other_network)), "pass_within");
}

TEST_P(Limits, AClassScalesEverySourceLimit) {
    install(R"(
[[class]]
name = "partners"
prefixes = ["198.51.100.0/24", "2001:db8:b::/48"]
scale = 4
[[class]]
name = "suspects"
prefixes = ["192.0.2.0/28", "2001:db8:a:1::/64"]
scale = 0.5
[[service]]
name = "web"
match = ["tcp/443", "udp/443"]
per_source = { connections = { limit = 12, window = "1h" }, data = { rate = "1/s", burst = 10 } }
)");
    classify("198.51.100.0/24", 1);
    classify("2001:db8:b::/48", 1);
    classify("192.0.2.0/28", 2);
    classify("2001:db8:a:1::/64", 2);
    EXPECT_EQ(send_many(datagram(9, of().other_network), 99), 40U);
    EXPECT_EQ(send_many(datagram(9, of().client), 99), 5U);
    EXPECT_EQ(send_many(datagram(9, of().same_network), 99), 10U);
    EXPECT_EQ(send_many(syn(of().other_network), 99), 48U);
    EXPECT_EQ(send_many(syn(of().client), 99), 6U);
    EXPECT_EQ(send_many(syn(of().same_network), 99), 12U);
    advance(10s);
    EXPECT_EQ(send_many(datagram(9, of().other_network), 99), 40U);
    EXPECT_EQ(send_many(datagram(9, of().client), 99), 5U);
}

TEST_P(Limits, AllowSkipsThem) {
    install_web(
        "per_source = { connections = { limit = 2, window = \"10s\" }, packets = { rate = \"1/s\", "
        "burst = 3 } }\n"
        "per_prefix = { packets = { rate = \"1/s\", burst = 4 } }\n");
    allow(of().client);
    EXPECT_EQ(send_many(syn(), 100), 100U);
    EXPECT_EQ(counted("pass_allowed"), 100U);
    EXPECT_EQ(send_many(syn(of().same_network), 100), 2U);
}

// --- many CPUs ---------------------------------------------------------------------------------

TEST_P(Limits, BelowTheLimitNothingIsLostHoweverManyCpus) {
    struct Case {
        const char* limit;
        nanoseconds gap;  // 1 ÷ (0.9 × rate)
    };
    for (const Case& c :
         {Case{R"({ rate = "1/s", burst = 1 })", 1111111112ns},
          Case{R"({ rate = "50/s", burst = 1 })", 22222223ns},
          Case{R"({ rate = "300/s", burst = 40 })", 3703704ns}, Case{R"("1000/s")", 1111112ns},
          Case{R"("20000/s")", 55556ns}, Case{R"({ rate = "1M/s", burst = 20000 })", 1112ns}}) {
        SCOPED_TRACE(c.limit);
        install_web(std::string("per_source = { packets = ") + c.limit + " }");
        advance(10s);
        for (const nanoseconds late : {0ns, 8000000ns}) {
            lag(late);
            const Bytes packet = segment(0).bytes();
            for (uint32_t i = 0; i < 2000; ++i) {
                on_cpu(i * 7 % 64);
                ASSERT_TRUE(passes(packet)) << i;
                advance(c.gap);
            }
        }
        lag(0ns);
    }
}

TEST_P(Limits, ASmallBurstIsOneBurstForAllCpus) {
    for (const unsigned burst : {1U, 2U, 10U, 63U}) {
        install_web("per_source = { packets = { rate = \"1/s\", burst = " + std::to_string(burst) +
                    " } }");
        advance(100s);
        unsigned passed = 0;
        for (uint32_t cpu = 0; cpu < 64; ++cpu) {
            on_cpu(cpu);
            passed += passes(segment(0).bytes()) ? 1 : 0;
        }
        EXPECT_EQ(passed, burst);
    }
}

// --- super-packets -----------------------------------------------------------------------------

TEST_P(Limits, ASuperPacketCountsItsSegments) {
    install_web("per_source = { packets = { rate = \"1/s\", burst = 50 } }");
    const size_t headers = GetParam() == Family::ipv4 ? 20 + 20 : 40 + 20;
    const size_t mss = 1500 - headers;
    EXPECT_EQ(send(segment(10 * mss)), "pass_within");
    EXPECT_EQ(send(segment(30 * mss)), "pass_within");
    EXPECT_EQ(send(segment(9 * mss + 1)), "pass_within");
    EXPECT_EQ(send(segment(0)), "drop_source_packets");
}

TEST_P(Limits, ASuperPacketLargerThanTheBurstLeavesADebt) {
    install_web("per_source = { data = { rate = \"10/s\", burst = 2 } }");
    const size_t mss = 1500 - (GetParam() == Family::ipv4 ? 40 : 60);
    EXPECT_EQ(send(segment(20 * mss)), "pass_within");
    EXPECT_EQ(send(segment(20 * mss)), "drop_source_data");
    EXPECT_EQ(send(segment(1)), "drop_source_data");
    advance(1850ms);
    EXPECT_EQ(send(segment(1)), "drop_source_data");
    advance(100ms);
    EXPECT_EQ(send(segment(1)), "pass_within");
}

// --- state -------------------------------------------------------------------------------------

TEST_P(Limits, ADropLeavesTheStateAsItWas) {
    const std::string rest = "packets = { rate = \"1/s\", burst = 90 }";
    const auto tight = [](const std::string& name) {
        return name + " = { rate = \"1/h\", burst = 3 }";
    };
    const std::vector<std::tuple<std::string, std::string, Packet>> cases = {
        {"per_source = { " + tight("connections") + ", " + rest + " }", "drop_source_connections",
         syn()},
        {"per_source = { " + tight("data") + ", " + rest + " }", "drop_source_data", segment(50)},
        {"per_source = { " + tight("packets") + ", data = \"90/s\" }", "drop_source_packets",
         segment(50)},
        {"per_source = { bytes = { rate = \"1B/s\", burst = \"66kB\" }, " + rest + " }",
         "drop_source_bytes", segment(22000)},
        {"per_source = { connections = { limit = 3, window = \"1h\" }, " + rest + " }",
         "drop_source_window", syn()},
        {"per_source = { connections = { limit = 20, window = \"1h\" }, " + rest + " }",
         "drop_source_window", syn()},
        {"per_source = { " + rest + " }\nper_prefix = { " + tight("packets") + " }", "drop_prefix",
         syn()},
        {"per_source = { " + rest + " }\nper_prefix = { " + tight("data") + ", " + rest + " }",
         "drop_prefix", segment(50)},
        {"per_source = { connections = { limit = 9, window = \"1h\" } }\nper_prefix = { " +
             tight("connections") + " }",
         "drop_prefix", syn()},
        {"per_source = { connections = { limit = 9, window = \"1h\" }, " + rest +
             " }\nbudget = { " + tight("connections") + " }",
         "drop_budget", syn()},
        {"per_source = { " + rest + " }\nper_prefix = { " + rest + " }\nbudget = { " +
             tight("data") + " }",
         "drop_budget", segment(50)},
    };
    for (const auto& [limits, verdict, packet] : cases) {
        SCOPED_TRACE(limits);
        start(usual_sizes());
        install_web(limits);
        while (send(packet) == "pass_within")
            continue;
        const State before = state();
        for (const Mode mode : {Mode::enforce, Mode::observe, Mode::enforce}) {
            set_mode("gate", mode);
            for (int i = 0; i < 20; ++i)
                EXPECT_EQ(send(packet), (mode == Mode::observe ? "would_" : "") + verdict);
            const State after = state();
            EXPECT_TRUE(after.sources == before.sources);
            EXPECT_TRUE(after.windows == before.windows);
            for (uint32_t id = 0; id < tables_->sizes.services; ++id)
                for (int d = 0; d < SLUICE_DIMENSIONS; ++d)
                    EXPECT_EQ(tables_->budgets[id].tat_ns[d],
                              reinterpret_cast<const sluice_budget*>(before.budgets.data())[id]
                                  .tat_ns[d]);
        }
    }
}

TEST_P(Limits, ARefusalByOneChargesNoOther) {
    // The prefix is spent by others; the source has its whole burst left afterwards.
    install_web(
        "per_source = { packets = { rate = \"1/h\", burst = 5 } }\n"
        "per_prefix = { packets = { rate = \"1/s\", burst = 4 } }\n");
    EXPECT_EQ(send_many(segment(0, of().same_network), 9), 4U);
    EXPECT_EQ(send_many(segment(0), 100), 0U);
    for (int i = 0; i < 5; ++i) {
        advance(1s);
        EXPECT_EQ(send(segment(0)), "pass_within");
    }
    advance(1s);
    EXPECT_EQ(send(segment(0)), "drop_source_packets");
}

TEST_P(Limits, StateStaysWhenServicesAreReordered) {
    const std::string web =
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
        "per_source = { packets = { rate = \"1/h\", burst = 5 } }\n"
        "budget = { packets = { rate = \"1/h\", burst = 9 } }\n";
    const std::string mail =
        "[[service]]\nname = \"mail\"\nmatch = [\"tcp/25\"]\n"
        "per_source = { packets = { rate = \"1/h\", burst = 5 } }\n";
    const std::string dns =
        "[[service]]\nname = \"dns\"\nmatch = [\"udp/53\"]\n"
        "per_source = { packets = { rate = \"1/h\", burst = 5 } }\n";
    const Packet to_mail = Ethernet() / ip_from(of().client) / tcp(1, 25).syn();
    const Packet to_dns = Ethernet() / ip_from(of().client) / udp(1, 53);
    install(web + mail);
    EXPECT_EQ(send_many(segment(0), 9), 5U);
    EXPECT_EQ(send_many(to_mail, 2), 2U);
    install(dns + mail + web);
    EXPECT_EQ(send_many(segment(0), 9), 0U);
    EXPECT_EQ(send_many(to_mail, 9), 3U);
    EXPECT_EQ(send_many(to_dns, 9), 5U);
    install(web + dns);
    EXPECT_EQ(send_many(segment(0, of().other_network), 9), 4U);
    EXPECT_EQ(send_many(to_dns, 9), 0U);
    EXPECT_EQ(send_many(to_mail, 9), 9U);
    // The id of what was removed does not go to another service while its state lives.
    install(web + dns +
            "[[service]]\nname = \"mail2\"\nmatch = [\"tcp/25\"]\n"
            "per_source = { packets = { rate = \"1/h\", burst = 5 } }\n");
    EXPECT_EQ(send_many(to_mail, 9), 5U);
}

TEST_P(Limits, TheLongestPrefixAndTheExactPortChooseTheService) {
    const bool ipv4 = GetParam() == Family::ipv4;
    const auto at = [&](std::string_view text) {
        return ipv4 ? std::string(text) : "[" + std::string(text) + "]";
    };
    const auto network = ipv4 ? "203.0.113.0/24" : "[2001:db8:c::/48]";
    install(
        "[[service]]\nname = \"all\"\nmatch = [\"tcp/1-65535\"]\n"
        "[[service]]\nname = \"exact\"\nmatch = [\"tcp/443\"]\n"
        "[[service]]\nname = \"net\"\nmatch = [\"" +
        std::string(network) +
        ":tcp/443\"]\n"
        "[[service]]\nname = \"host\"\nmatch = [\"" +
        at(of().server) + ":tcp/443\"]\n");
    const auto service = [&](std::string_view server, uint16_t port) {
        return send(Ethernet() / from(of().client).to(server) / tcp(1, port).syn()).service;
    };
    EXPECT_EQ(service(of().server, 443), "host");
    EXPECT_EQ(service(of().other_server, 443), "net");
    EXPECT_EQ(service(of().other_network, 443), "exact");
    EXPECT_EQ(service(of().other_network, 80), "all");
    EXPECT_EQ(send(Ethernet() / ip_from(of().client) / udp(1, 443)).service, "other");
}

}  // namespace

}  // namespace sluice
