// What one family alone has: lengths of prefixes in real lists, mapped addresses, neighbour
// discovery, and control traffic in small measure.
#include "gate_under_test.h"

namespace sluice {

namespace {

class SenderOfOneFamily : public GateUnderTest {
  protected:
    Outcome send_from(std::string_view source) {
        const bool ipv4 = source.find('.') != std::string_view::npos;
        const auto& server = addresses(ipv4 ? Family::ipv4 : Family::ipv6).server;
        return send(Ethernet() / from(source).to(server) / tcp(40000, 443).syn());
    }
};

TEST_F(SenderOfOneFamily, ARangeIsBannedAsARange) {
    ban("2001:db8:aa00::/40", 90 * 24h);
    EXPECT_EQ(send_from("2001:db8:aa00::"), "drop_banned");
    EXPECT_EQ(send_from("2001:db8:aabb::1"), "drop_banned");
    EXPECT_EQ(send_from("2001:db8:aaff:ffff::1"), "drop_banned");
    EXPECT_EQ(send_from("2001:db8:ab00::1"), "pass_unlimited");
    EXPECT_EQ(send_from("2001:db8:a900::1"), "pass_unlimited");
    ban("198.51.100.0/25");
    EXPECT_EQ(send_from("198.51.100.77"), "drop_banned");
    EXPECT_EQ(send_from("198.51.100.127"), "drop_banned");
    EXPECT_EQ(send_from("198.51.100.128"), "pass_unlimited");
    EXPECT_EQ(send_from("198.51.100.200"), "pass_unlimited");
}

TEST_F(SenderOfOneFamily, AMappedAddressIsTheIpv4Address) {
    ban("::ffff:192.0.2.7");
    EXPECT_EQ(send_from("192.0.2.7"), "drop_banned");
    EXPECT_EQ(send_from("192.0.2.8"), "pass_unlimited");
    ASSERT_TRUE(rules().unban(Prefix::parse("192.0.2.7").value()));
    EXPECT_EQ(send_from("192.0.2.7"), "pass_unlimited");
}

TEST_F(SenderOfOneFamily, ManyBansOfManyLengths) {
    std::vector<RuleEntry> entries;
    for (unsigned i = 0; i < 2000; ++i)
        entries.push_back(
            {.prefix = Prefix::host(IpAddress::from_ipv4(0xc6120000U + i * 7))});  // 198.18.0.0/15
    const auto done = rules().import("list", entries, {});
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_EQ(done->added, entries.size());
    for (const RuleEntry& entry : entries) {
        const auto& source = entry.prefix.address();
        const auto next = IpAddress::from_ipv4(source.ipv4_host_order() + 1);
        ASSERT_FALSE(
            passes((Ethernet() / from(source).to("203.0.113.1") / tcp(1, 2).syn()).bytes()));
        ASSERT_TRUE(passes((Ethernet() / from(next).to("203.0.113.1") / tcp(1, 2).syn()).bytes()));
    }
}

// --- neighbour discovery -----------------------------------------------------------------------

class Discovery : public GateUnderTest {
  protected:
    static Ip ip(unsigned hop_limit) {
        return from("2001:db8:a:1::10").to("ff02::1:ff00:2").hop_limit(hop_limit);
    }
};

TEST_F(Discovery, PassesEvenFromABannedNeighbour) {
    install(
        "[[service]]\nname = \"other\"\nper_source = { packets = { rate = \"1/h\", burst = 1 } "
        "}\n");
    ban("2001:db8:a::/48");
    for (uint8_t type = 133; type <= 137; ++type)
        for (int i = 0; i < 3; ++i)
            EXPECT_EQ(send(Ethernet() / ip(255) / icmp6(type, 0, 24)), "pass_essential");
    EXPECT_EQ(send(Ethernet() / arp("192.0.2.10", "192.0.2.1")), "pass_not_ip");
    EXPECT_EQ(send(Ethernet() / ip(255) / icmp6(128)), "drop_banned");
}

TEST_F(Discovery, FromAfarIsLikeAnythingElse) {
    install(
        "[[service]]\nname = \"other\"\nper_source = { packets = { rate = \"1/h\", burst = 1 } "
        "}\n");
    EXPECT_EQ(send(Ethernet() / ip(64) / icmp6(135, 0, 24)), "pass_within");
    EXPECT_EQ(send(Ethernet() / ip(64) / icmp6(135, 0, 24)), "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(254) / icmp6(135, 0, 24)), "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(255) / icmp6(135, 1, 24)), "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(255).fragment(0, false) / icmp6(135, 0, 24)),
              "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(255) / destination_options() / icmp6(135, 0, 24)),
              "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(255) / icmp6(128, 0, 24)), "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / ip(255) / icmp6(135, 0, 24)), "pass_essential");
}

// --- errors and DHCP, in small measure ---------------------------------------------------------

class Essential : public GateOfBothFamilies {
  protected:
    static constexpr auto kLimited =
        "[[service]]\nname = \"other\"\nper_source = { packets = { rate = \"1/s\", burst = 2 } }\n";
    bool ipv4() const { return GetParam() == Family::ipv4; }
    Packet dhcp() const {
        return Ethernet() / ip() / (ipv4() ? udp(67, 68) : udp(547, 546)).payload(240);
    }
};
FOR_BOTH_FAMILIES(Essential);

TEST_P(Essential, AFloodThatLooksLikeDhcpIsLimited) {
    install(kLimited);
    constexpr unsigned kBurst = SLUICE_ESSENTIAL_BURST;
    EXPECT_EQ(send_many(dhcp(), 1000), kBurst + 2);
    EXPECT_EQ(counted("pass_essential"), kBurst);
    EXPECT_EQ(send(dhcp()), "drop_source_packets");
    advance(10ms);
    EXPECT_EQ(send_many(dhcp(), 1000), SLUICE_ESSENTIAL_PER_SECOND / 100);
    advance(10s);
    EXPECT_EQ(send_many(dhcp(), 1000), kBurst + 2);
}

TEST_P(Essential, ErrorsPassAndAreLimited) {
    install(kLimited);
    for (const uint8_t type :
         ipv4() ? std::vector<uint8_t>{3, 11, 12} : std::vector<uint8_t>{1, 2, 3, 4}) {
        const Packet error = Ethernet() / ip() / (ipv4() ? icmp(type, 0, 28) : icmp6(type, 0, 48));
        EXPECT_EQ(send(error), "pass_essential") << int{type};
    }
    const Packet error = Ethernet() / ip() / (ipv4() ? icmp(3, 4, 28) : icmp6(2, 0, 48));
    send_many(error, 1000);
    EXPECT_EQ(send(error), "drop_source_packets");
}

TEST_P(Essential, EchoesAreNotEssential) {
    install(kLimited);
    const Packet echo = Ethernet() / ip() / (ipv4() ? icmp(8) : icmp6(128));
    EXPECT_EQ(send_many(echo, 10), 2U);
}

TEST_P(Essential, AFloodOfFragmentsIsChargedToOther) {
    install(kLimited);
    const Packet later = Ethernet() / ip().fragment(1480, false) / raw(IPPROTO_UDP, Bytes(1000));
    EXPECT_EQ(send_many(later, 1000), 2U);
    EXPECT_EQ(counted("drop_source_packets"), 998U);
}

}  // namespace

}  // namespace sluice
