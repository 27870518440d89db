// Every verdict there is, each from a packet that deserves it.
#include <functional>
#include <set>

#include "gate_under_test.h"

namespace sluice {

namespace {

constexpr auto kPolicy = R"(mode = "enforce"
[[service]]
name = "connections"
match = ["tcp/1001"]
per_source = { connections = { rate = "1/h", burst = 1 } }
[[service]]
name = "data"
match = ["tcp/1002"]
per_source = { data = { rate = "1/h", burst = 1 } }
[[service]]
name = "packets"
match = ["tcp/1003"]
per_source = { packets = { rate = "1/h", burst = 1 } }
[[service]]
name = "bytes"
match = ["tcp/1004"]
per_source = { bytes = { rate = "1kB/s", burst = "66kB" } }
[[service]]
name = "window"
match = ["tcp/1005"]
per_source = { connections = { limit = 1, window = "1h" } }
[[service]]
name = "prefix"
match = ["tcp/1006"]
per_prefix = { packets = { rate = "1/h", burst = 1 } }
[[service]]
name = "budget"
match = ["tcp/1007"]
budget = { packets = { rate = "100/s", burst = 10 } }
[[service]]
name = "spent"
match = ["tcp/1009"]
budget = { packets = { rate = "1/h", burst = 1 } }
[[service]]
name = "jail"
match = ["tcp/1008"]
per_source = { packets = { rate = "1/h", burst = 1 }, on_excess = { jail = "1h", spoofable = true } }
)";

class Verdicts : public GateOfBothFamilies {
  protected:
    static Packet to_port(uint16_t port, std::string_view source = of().client) {
        return Ethernet() / from(source).to(of().server) / tcp(1, port).syn().payload(1000);
    }
    // Ten times the budget, from so many sources that some have to wait.
    void flood_budget() {
        auto bytes = IpAddress::parse(of().client).value().bytes();
        for (unsigned i = 0; i < 400; ++i) {
            bytes[GetParam() == Family::ipv4 ? 15 : 7] = static_cast<uint8_t>(i % 32);
            send(Ethernet() / from(IpAddress::from_bytes(bytes)).to(of().server) /
                 tcp(1, 1007).ack());
            advance(1ms);
        }
    }
};
FOR_BOTH_FAMILIES(Verdicts);

TEST_P(Verdicts, EachIsReachedInEveryMode) {
    auto sizes = usual_sizes();
    sizes.services = 16;
    start(sizes);
    install(kPolicy);
    ban(GetParam() == Family::ipv4 ? "198.51.100.0/25" : "2001:db8:b::/64");
    allow(of().same_network);
    const auto other_error = GetParam() == Family::ipv4 ? icmp(3, 4, 28) : icmp6(2, 0, 48);
    const auto banned = GetParam() == Family::ipv4 ? "198.51.100.1" : "2001:db8:b::1";
    struct Case {
        std::string verdict;
        Packet packet;
    };
    const Case cases[] = {
        {"pass_not_ip", Ethernet() / arp("192.0.2.10", "192.0.2.1")},
        {"pass_essential", Ethernet() / ip() / other_error},
        {"pass_allowed", to_port(1003, of().same_network)},
        {"pass_within", to_port(1001)},
        {"pass_unlimited", to_port(80)},
        {"drop_malformed", Ethernet() / ip() / raw(IPPROTO_TCP, {1})},
        {"drop_banned", to_port(80, banned)},
        {"drop_source_connections", to_port(1001)},
        {"drop_source_data", to_port(1002)},
        {"drop_source_packets", to_port(1003)},
        {"drop_source_bytes", to_port(1004)},
        {"drop_source_window", to_port(1005)},
        {"drop_prefix", to_port(1006)},
        {"drop_budget", to_port(1009)},
        {"drop_jailed", to_port(1008)},
    };
    for (const Mode mode : {Mode::enforce, Mode::observe}) {
        set_mode("gate", mode);
        for (const auto& [verdict, packet] : cases) {
            const bool is_drop = verdict.starts_with("drop_");
            if (!is_drop && mode == Mode::observe)
                continue;
            const auto wanted = mode == Mode::observe ? "would_" + verdict : verdict;
            int tries = 0;
            while (!(send(packet) == wanted))
                ASSERT_LT(++tries, 99) << wanted;
        }
        flood_budget();
    }
    EXPECT_GT(counted("drop_shed"), 0U);
    set_mode("gate", Mode::off);
    EXPECT_EQ(send(to_port(80, banned)), "pass_mode_off");
    set_mode("gate", Mode::enforce);
    allow(of().same_network, /*exempt=*/true);
    EXPECT_EQ(send(to_port(1003, of().same_network)), "pass_exempt");

    // pass_reply takes a socket, see jail_test.cpp; pass_internal must never happen.
    const std::set<std::string> elsewhere = {"pass_reply", "pass_internal"};
    const Counts reached = counts();
    for (const std::string& verdict : counter_names())
        EXPECT_NE(reached.contains(verdict), elsewhere.contains(verdict)) << verdict;
}

TEST_P(Verdicts, CountTheirServiceAndInterface) {
    auto sizes = usual_sizes();
    sizes.interfaces = 1;
    start(sizes);
    install_web("per_source = { packets = { rate = \"1/h\", burst = 5 } }");
    on_cpu(17);
    send_many(to_port(443), 9);
    const auto& row = tables_->counters[17 * sizes.services + service_id("web")];
    EXPECT_EQ(row.by_verdict[SLUICE_pass_within].packets, 5U);
    EXPECT_EQ(row.by_verdict[SLUICE_drop_source_packets].packets, 4U);
    EXPECT_EQ(row.by_verdict[SLUICE_drop_source_packets].bytes, 4 * to_port(443).bytes().size());
}

TEST_P(Verdicts, CountEveryPacketOnce) {
    install_web("per_source = { packets = { rate = \"1/h\", burst = 5 } }");
    send_many(to_port(443), 1000);
    uint64_t sum = 0;
    for (const auto& [verdict, packets] : counts())
        sum += packets;
    EXPECT_EQ(sum, 1000U);
}

}  // namespace

}  // namespace sluice
