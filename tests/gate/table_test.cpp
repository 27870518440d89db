// The table of sources: when a set is full, when nobody has looked at it for days, and when the
// clock's low bits come round again.
#include <algorithm>

#include "gate_under_test.h"

namespace sluice {

namespace {

class SourceTable : public GateOfBothFamilies {
  protected:
    // Seven words for everybody.
    void start_with_one_set(std::string_view on_table_full) {
        auto sizes = usual_sizes();
        sizes.source_sets = 1;
        start(sizes);
        install("[sources]\non_table_full = \"" + std::string(on_table_full) +
                "\"\n[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
                "per_source = { packets = { rate = \"1/s\", burst = 2 } }\n");
    }
    static Packet packet_of(unsigned source) {
        auto bytes = IpAddress::parse(of().client).value().bytes();
        bytes[GetParam() == Family::ipv4 ? 15 : 7] = static_cast<uint8_t>(source);
        return Ethernet() / from(IpAddress::from_bytes(bytes)).to(of().server) / tcp(1, 443).ack();
    }
    static Packet packet() { return packet_of(1); }
};
FOR_BOTH_FAMILIES(SourceTable);

TEST_P(SourceTable, ANewcomerReplacesWhoeverIsNearestToIdle) {
    start_with_one_set("evict");
    for (unsigned source = 0; source < 7; ++source) {
        EXPECT_EQ(send_many(packet_of(source), source == 3 ? 1 : 3), source == 3 ? 1U : 2U);
        advance(1ms);
    }
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 0U);
    EXPECT_EQ(send_many(packet_of(100), 3), 2U);
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 1U);
    EXPECT_EQ(housekeeping(&sluice_cpu::shared_live), 0U);
    for (const unsigned source : {0U, 1U, 2U, 4U, 5U, 6U})
        EXPECT_EQ(send(packet_of(source)), "drop_source_packets") << source;
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 1U);
}

TEST_P(SourceTable, ANewcomerSharesTheDebtWhereThePolicySaysSo) {
    start_with_one_set("share");
    for (unsigned source = 0; source < 7; ++source)
        EXPECT_EQ(send_many(packet_of(source), 1), 1U);
    EXPECT_EQ(send(packet_of(100)), "pass_within");
    EXPECT_EQ(send(packet_of(100)), "drop_source_packets");
    EXPECT_EQ(housekeeping(&sluice_cpu::shared_live), 1U);
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 0U);
}

TEST_P(SourceTable, SharingLeaksNothing) {
    start_with_one_set("share");
    uint64_t passed = 0;
    for (unsigned i = 0; i < 5000; ++i) {
        passed += passes(packet_of(i * 37 % 251).bytes()) ? 1 : 0;
        advance(1ms);
    }
    EXPECT_LE(passed, 7U * (2 + 5));
}

TEST_P(SourceTable, AnIdleEntryIsFreeToTake) {
    start_with_one_set("evict");
    for (unsigned source = 0; source < 200; ++source) {
        EXPECT_EQ(send_many(packet_of(source), 3), 2U);
        if (source % 7 == 6)
            advance(2100ms);
    }
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 0U);
}

TEST_P(SourceTable, DimensionsOfOneSourceFitIntoOneSet) {
    auto sizes = usual_sizes();
    sizes.source_sets = 1;
    start(sizes);
    install_web(
        "per_source = { connections = { rate = \"1/h\", burst = 2 }, data = { rate = \"1/h\", "
        "burst = 2 }, "
        "packets = { rate = \"1/h\", burst = 4 }, bytes = { rate = \"1kB/s\", burst = \"70kB\" } "
        "}");
    const auto ip = from(of().client).to(of().server);
    const Packet both = Ethernet() / ip / tcp(1, 443).syn().payload(10);
    EXPECT_EQ(send_many(both, 9), 2U);
    EXPECT_EQ(send_many(Ethernet() / ip / tcp(1, 443).ack(), 9), 2U);
    EXPECT_EQ(send(both), "drop_source_connections");
    EXPECT_EQ(send(Ethernet() / ip / tcp(1, 443).ack()), "drop_source_packets");
    EXPECT_EQ(housekeeping(&sluice_cpu::evicted_live), 0U);
}

// --- time that comes round ---------------------------------------------------------------------

TEST_P(SourceTable, NobodyIsLockedOutWhenTimeComesRound) {
    const Packet syn = Ethernet() / ip() / tcp(1, 443).syn();
    install_web(
        "per_source = { packets = { rate = \"1/s\", burst = 3 }, "
        "connections = { limit = 3, window = \"10s\" } }\n"
        "per_prefix = { packets = { rate = \"1/s\", burst = 3 } }\n"
        "budget = { packets = { rate = \"1/s\", burst = 3 } }");
    for (const unsigned bits : {37U, 38U, 39U, 40U, 41U})
        for (const int64_t off : {-3'000'000'000LL, -1LL, 0LL, 1LL, 500'000'000LL}) {
            SCOPED_TRACE(testing::Message() << "2^" << bits << " units " << off << " ns");
            advance(1min);
            EXPECT_EQ(send(syn), "pass_within");
            EXPECT_EQ(send_many(packet(), 9), 2U);
            set_clock(now() + (1ULL << (bits + SLUICE_UNIT_SHIFT)) + static_cast<uint64_t>(off));
            EXPECT_EQ(send(syn), "pass_within");
            EXPECT_EQ(send_many(packet(), 9), 2U);
        }
}

TEST_P(SourceTable, ASetThatIsVisitedNeverLosesItsLimits) {
    // Longer than the whole range of the clock, in steps of an hour.
    install_web("per_source = { packets = { rate = \"2/h\", burst = 2 } }");
    EXPECT_EQ(send_many(packet(), 9), 2U);
    for (int hour = 0; hour < 24 * 14; ++hour) {
        advance(1h);
        ASSERT_EQ(send_many(packet(), 9), 2U) << hour;
    }
}

// Another CPU's reading may be a little older than the one that marked the set as visited.
TEST_P(SourceTable, AReadingFromBeforeTheLastVisitClearsNothing) {
    install_web("per_source = { packets = { rate = \"1/h\", burst = 5 } }");
    EXPECT_EQ(send_many(packet(), 9), 5U);
    advance(30min);  // so long that the next visit is marked
    set_clock(now() + 30'000'000'000);
    EXPECT_EQ(send(packet()), "drop_source_packets");
    set_clock(now() - 5'000'000);
    EXPECT_EQ(send(packet()), "drop_source_packets");
    EXPECT_EQ(housekeeping(&sluice_cpu::sets_cleared), 0U);
}

}  // namespace

}  // namespace sluice
