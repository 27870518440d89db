// Bans under flood: they hold through every replacement, and end when they should.
#include "guarded_edge.h"
#include "sockets.h"

namespace sluice::lab {
namespace {

class BanLab : public GuardedEdge {};

TEST_F(BanLab, HoldsThroughReplacementsAndEndsOnTime) {
    install("");
    attach();
    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan plan = flood_from("198.18.0.1", 10s);
        plan.cpu = cpu;
        floods.start(plan);
    }
    std::this_thread::sleep_for(300ms);
    EXPECT_GT(network().received().ipv4, 0U);

    SourceRules rules(tables());
    const auto banned = rules.ban(Prefix::parse("198.18.0.1").value(), {.ttl = 2s});
    ASSERT_TRUE(banned) << banned.error().message;
    std::this_thread::sleep_for(50ms);
    const uint64_t before = network().received().ipv4;
    const UniqueFd receiver = network().in_edge([] { return bind_udp(80); });

    unsigned replaced = 0;
    uint64_t after = before;
    while (gate_now_ns(tables()) + 300'000'000 < banned->until_ns) {
        const Attachment again = attach();
        EXPECT_NE(again.program_id, 0U);
        install(replaced % 2 == 0 ? "[[service]]\nname = \"web\"\nmatch = [\"udp/80\"]\n" : "");
        after = network().received().ipv4;
        replaced++;
    }
    EXPECT_GT(replaced, 2U);
    EXPECT_EQ(after, before) << "through a ban, while programs and policies were replaced "
                             << replaced << " times";

    const auto first = arrival(receiver, 2s);
    floods.stop();
    ASSERT_TRUE(first);
    const double late_ms =
        (static_cast<double>(*first) - static_cast<double>(banned->until_ns)) / 1e6;
    EXPECT_GE(late_ms, -0.1);  // the two clocks are compared with that precision
    EXPECT_LE(late_ms, 10.0);
    std::cout << "first packet " << late_ms << " ms after the end; " << replaced
              << " replacements; " << floods.sent() << " packets sent\n";
}

}  // namespace
}  // namespace sluice::lab
