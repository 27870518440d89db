// Policies that change under flood, and modes that let everything through.
#include <iostream>

#include "gate/publish.h"
#include "guarded_edge.h"
#include "sockets.h"

namespace sluice::lab {
namespace {

class PolicyLab : public GuardedEdge {};

// The service of port 80 has a limit in either policy, the other one has none in either: whoever
// saw the ports of one half with the services of the other would find no limit.
constexpr const char* kFirst = R"(
[[service]]
name = "alpha"
match = ["udp/80"]
[service.per_source]
packets = "100000000/s"
[[service]]
name = "beta"
match = ["udp/81"]
)";
constexpr const char* kSecond = R"(
[[service]]
name = "alpha"
match = ["udp/81"]
[[service]]
name = "beta"
match = ["udp/80"]
[service.per_source]
packets = "100000000/s"
)";

TEST_F(PolicyLab, NoPacketSeesHalfAPolicy) {
    install(kFirst);
    attach();
    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan plan = flood_from("198.18.0.1", 10s);
        plan.sources = 100;
        plan.cpu = cpu;
        floods.start(plan);
    }
    const auto begun = std::chrono::steady_clock::now();
    auto next_flip = begun;
    unsigned installs = 0, flips = 0;
    while (std::chrono::steady_clock::now() - begun < 3s) {
        install(++installs % 2 == 0 ? kFirst : kSecond);
        // To the other half and back, a thousand times a second, as an expiring confirmation does.
        __u64& half = tables().settings().policy;
        const uint64_t word = published(half);
        for (unsigned i = 0; i < 50; i++, flips++) {
            publish(half, i % 2 == 0 ? word ^ 1 : word);
            std::this_thread::sleep_until(next_flip += 1ms);
        }
        ASSERT_TRUE(wait_for_packets_in_flight());
    }
    floods.stop();

    EXPECT_GT(counted(SLUICE_pass_within, "alpha"), 0U);
    EXPECT_GT(counted(SLUICE_pass_within, "beta"), 0U);
    EXPECT_EQ(counted(SLUICE_pass_unlimited, "alpha"), 0U);
    EXPECT_EQ(counted(SLUICE_pass_unlimited, "beta"), 0U);
    EXPECT_EQ(counted(SLUICE_pass_within) + network().lost_in_queue(), floods.sent());
    EXPECT_GT(installs, 1U);
    std::cout << installs << " policies and " << flips << " flips in 3 s under "
              << floods.sent() / 3 << " packets a second\n";
}

// One policy only observes, the other's limit is high: neither drops anything, nor does the change
// from one to the other, of many services at once.
TEST_F(PolicyLab, NoPacketSeesTheModeOfOnePolicyWithTheLimitOfAnother) {
    const auto policy = [](const std::string& mode, const std::string& limit) {
        std::string text = "mode = \"" + mode + "\"\n";
        for (int i = 0; i < 50; ++i)
            text += "[[service]]\nname = \"s" + std::to_string(i) + "\"\nmode = \"" + mode +
                    "\"\nmatch = [\"udp/" + std::to_string(80 + i) +
                    "\"]\n[service.per_source]\ndata = " + limit + "\n";
        return text;
    };
    const std::string observes = policy("observe", "\"1/s\"");
    const std::string high = policy("enforce", "{ rate = \"900000/s\", burst = 1800000 }");
    install(observes);
    attach();
    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan plan = flood_from(cpu == 0 ? "198.18.0.1" : "198.18.1.1", 10s);
        plan.sources = 50;
        plan.rate = 50'000;
        plan.cpu = cpu;
        floods.start(plan);
    }
    const auto begun = std::chrono::steady_clock::now();
    unsigned installs = 0;
    while (std::chrono::steady_clock::now() - begun < 3s)
        install(++installs % 2 == 0 ? observes : high);
    floods.stop();
    EXPECT_GT(installs, 10U);
    EXPECT_EQ(counted(SLUICE_drop_source_data), 0U);
    EXPECT_GT(would(SLUICE_drop_source_data), 0U);
    EXPECT_GT(counted(SLUICE_pass_within), 0U);
    std::cout << installs << " policies under " << floods.sent() / 3 << " packets a second\n";
}

TEST_F(PolicyLab, ObserveModeDropsNothing) {
    install(
        "mode = \"observe\"\n[[service]]\nname = \"web\"\nmatch = [\"udp/80\"]\n"
        "[service.per_source]\ndata = \"10/s\"\n[service.budget]\npackets = \"1000/s\"\n");
    attach();
    SourceRules rules(tables());
    ASSERT_TRUE(rules.ban(Prefix::parse("198.18.1.0/24").value(), {}));

    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan plan = flood_from(cpu == 0 ? "198.18.0.1" : "198.18.1.1", 2s);
        plan.sources = 50;
        plan.cpu = cpu;
        floods.start(plan);
    }
    floods.wait();
    EXPECT_EQ(network().received().ipv4 + network().lost_in_queue(), floods.sent());
    EXPECT_GT(would(SLUICE_drop_source_data), 0U);
    EXPECT_GT(would(SLUICE_drop_banned), 0U);
    std::cout << floods.sent() << " packets, " << network().lost_in_queue()
              << " lost before the gate\n";
}

TEST_F(PolicyLab, RepliesToTheHostsOwnConnectionsAreNotThrottled) {
    install(
        "[[service]]\nname = \"other\"\n[service.per_source]\npackets = \"5/s\"\ndata = \"5/s\"\n");
    attach();

    const UniqueFd server = network().in_world([] { return listen_tcp(443); });
    const UniqueFd client = network().in_edge([] { return connect_tcp(kWorld4, 443); });
    ASSERT_TRUE(client);
    const UniqueFd served = accept_tcp(server);
    const auto took = transfer(served, client, 10'000'000);
    ASSERT_TRUE(took) << "the download stood still";
    EXPECT_LT(took->count(), 5.0);
    EXPECT_GT(counted(SLUICE_pass_reply), 100U);

    // A resolver's answers to a connected socket; and what nobody asked for.
    std::this_thread::sleep_for(100ms);  // the download spent the socket look-ups of a moment
    const UniqueFd resolver = network().in_world([] { return bind_udp(53); });
    const UniqueFd asking = network().in_edge([] { return connect_udp(kWorld4, 53); });
    ASSERT_TRUE(asking);
    const uint64_t before = counted(SLUICE_pass_reply);
    send_datagrams(resolver, kEdge4, port_of(asking), 100);
    EXPECT_EQ(take_all(asking), 100U);
    EXPECT_GE(counted(SLUICE_pass_reply), before + 80);

    Floods floods(network());
    FloodPlan unsolicited = flood_from(kWorld4, 2s);
    unsolicited.destination_port = 9999;
    unsolicited.rate = 1000;
    unsolicited.count = 1000;
    const uint64_t received = network().received().ipv4;
    floods.start(unsolicited);
    floods.wait();
    EXPECT_LE(network().received().ipv4 - received, 20U);
    EXPECT_GE(counted(SLUICE_drop_source_packets) + counted(SLUICE_drop_source_data), 980U);
}

}  // namespace
}  // namespace sluice::lab
