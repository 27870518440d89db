// The bound: however a source spreads its flood over CPUs and flows, burst + rate·T get through.
#include <cstdlib>
#include <iostream>
#include <ostream>

#include "guarded_edge.h"

namespace sluice::lab {
namespace {

struct Bound {
    uint64_t limit;  // a second; the burst is one second of it
    uint32_t flows;
    const char* dimension;

    friend std::ostream& operator<<(std::ostream& out, const Bound& bound) {
        return out << bound.limit << " " << bound.dimension << "/s, " << bound.flows << " flows";
    }
};

std::string name_of(const ::testing::TestParamInfo<Bound>& info) {
    return std::string(info.param.dimension) + std::to_string(info.param.limit) + "flows" +
           std::to_string(info.param.flows);
}

class BoundTest : public GuardedEdge, public ::testing::WithParamInterface<Bound> {
  protected:
    void check(std::chrono::milliseconds duration);
};

void BoundTest::check(std::chrono::milliseconds duration) {
    const auto [limit, flows, dimension] = GetParam();
    install("[[service]]\nname = \"web\"\nmatch = [\"udp/80\"]\n[service.per_source]\n" +
            std::string(dimension) + " = \"" + std::to_string(limit) + "/s\"\n");
    attach();

    // The greedy one speaks IPv4 and the polite one IPv6, so that the receiver tells them apart.
    Floods floods(network());
    for (const unsigned cpu : {0U, 1U}) {
        FloodPlan greedy = flood_from("198.18.0.1", duration);
        greedy.flows = flows;
        greedy.cpu = cpu;
        floods.start(greedy);
    }
    FloodPlan polite = flood_from("2001:db8:f::1", duration);
    polite.rate = limit * 9 / 10;
    polite.count = polite.rate * static_cast<uint64_t>(duration.count()) / 1000;
    if (polite.count != 0)
        floods.start(polite);
    floods.wait();

    const double allowed = static_cast<double>(limit) * (1 + floods.seconds());
    const double due = static_cast<double>(limit) * (1 + floods.seconds_together(2));
    const UdpReceived received = network().received();
    const auto admitted = static_cast<double>(received.ipv4);
    EXPECT_LE(admitted, 1.001 * allowed + 2);
    EXPECT_EQ(counted(SLUICE_pass_within, "web"), received.ipv4 + received.ipv6);
    if (polite.count != 0) {
        // What a queue lost before the gate saw it is not the gate's doing.
        EXPECT_GE(received.ipv6 + network().lost_in_queue(), floods.sent(2));
        EXPECT_LE(received.ipv6, floods.sent(2));
    }
    std::cout << GetParam() << ": admitted " << admitted << " of " << allowed << " ("
              << admitted / allowed << "), sent " << floods.sent(0) + floods.sent(1)
              << "; polite: " << received.ipv6 << " of " << floods.sent(2) << "\n";
    if (static_cast<double>(floods.sent(0) + floods.sent(1)) < 1.2 * allowed)
        GTEST_SKIP() << "this machine cannot send more than that limit now: only the upper bound "
                        "was tested";
    EXPECT_GE(admitted, 0.98 * due - 1);
}

TEST_P(BoundTest, HoldsFromTwoCpus) {
    check(3100ms);
}

INSTANTIATE_TEST_SUITE_P(Some, BoundTest,
                         ::testing::Values(Bound{300, 1, "packets"}, Bound{300, 64, "data"},
                                           Bound{20'000, 1, "data"}, Bound{20'000, 64, "packets"}),
                         name_of);

class LongBoundTest : public BoundTest {};

TEST_P(LongBoundTest, HoldsFromTwoCpus) {
    if (std::getenv("SLUICE_LAB_LONG") == nullptr)
        GTEST_SKIP() << "takes minutes: ctest -L lab-long with SLUICE_LAB_LONG=1";
    check(10'100ms);
}

std::vector<Bound> all_bounds() {
    std::vector<Bound> bounds;
    for (const uint64_t limit : {1U, 300U, 20'000U, 1'000'000U})
        for (const uint32_t flows : {1U, 2U, 64U})
            for (const char* dimension : {"packets", "data"})
                bounds.push_back({limit, flows, dimension});
    return bounds;
}
INSTANTIATE_TEST_SUITE_P(All, LongBoundTest, ::testing::ValuesIn(all_bounds()), name_of);

}  // namespace
}  // namespace sluice::lab
