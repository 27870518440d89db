// What the parser makes of a frame: where ports are, what is a fragment, what the stack would
// discard, and what is merely unknown.
#include "gate_under_test.h"

namespace sluice {

namespace {

// Port 22 has one packet an hour, so any further one tells by its verdict what it was taken for.
constexpr std::string_view kClosedSsh = R"(
[[service]]
name = "ssh"
match = ["tcp/22", "udp/22"]
per_source = { packets = { rate = "1/h", burst = 1 } }
)";

class PacketShape : public GateOfBothFamilies {
  protected:
    void SetUp() override {
        GateOfBothFamilies::SetUp();
        if (IsSkipped())
            return;
        install(kClosedSsh);
        EXPECT_EQ(send(Ethernet() / ip() / tcp(40000, 22).ack()), "pass_within");
    }
    // As the service "ssh" with its limit spent, or else as "other".
    void expect_ssh(const Packet& packet) {
        const auto outcome = send(packet);
        EXPECT_EQ(outcome, "drop_source_packets");
        EXPECT_EQ(outcome.service, "ssh");
    }
    void expect_other(const Packet& packet) {
        const auto outcome = send(packet);
        EXPECT_EQ(outcome, "pass_unlimited");
        EXPECT_EQ(outcome.service, "other");
    }
    void expect_malformed(const Packet& packet) { EXPECT_EQ(send(packet), "drop_malformed"); }
};
FOR_BOTH_FAMILIES(PacketShape);

TEST_P(PacketShape, PortsOfPlainPackets) {
    expect_ssh(Ethernet() / ip() / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / tcp(40000, 22).ack().payload(1400));
    expect_ssh(Ethernet() / ip() / udp(40000, 22).payload(100));
    expect_other(Ethernet() / ip() / tcp(22, 443).syn());
    expect_other(Ethernet() / ip() / udp(22, 443));
}

TEST_P(PacketShape, PaddingIsNotPartOfIt) {
    expect_ssh((Ethernet() / ip() / tcp(40000, 22).syn()).pad_to(120));
    expect_ssh((Ethernet() / ip() / udp(40000, 22)).pad_to(120));
}

TEST_P(PacketShape, AShortDatagramIsADatagram) {
    for (size_t payload = 0; payload <= 11; ++payload)
        expect_ssh(Ethernet() / ip() / udp(40000, 22).payload(payload));
}

TEST_P(PacketShape, UpToEightTagsAreUnwrapped) {
    for (unsigned tags = 1; tags <= 8; ++tags) {
        SCOPED_TRACE(tags);
        expect_ssh(Ethernet().vlans(tags) / ip() / tcp(40000, 22).syn());
        expect_other(Ethernet().vlans(tags) / ip() / tcp(40000, 443).syn());
    }
    expect_ssh(Ethernet().vlan(1, 0x88a8).vlan(2).vlan(3) / ip() / tcp(40000, 22).syn());
    expect_malformed(Ethernet().vlans(9) / ip() / tcp(40000, 22).syn());
    expect_malformed(Ethernet().vlans(20) / ip() / tcp(40000, 22).syn());
    expect_malformed((Ethernet().vlans(3) / ip() / tcp(40000, 22).syn()).cut_to(14 + 2 * 4 + 2));
}

// --- fragments ---------------------------------------------------------------------------------

TEST_P(PacketShape, AFirstFragmentHasPorts) {
    expect_ssh(Ethernet() / ip().fragment(0, true) / tcp(40000, 22).ack().payload(1000));
    expect_ssh(Ethernet() / ip().fragment(0, true) /
               udp(40000, 22).payload(1000).claim_length(4000));
    expect_other(Ethernet() / ip().fragment(0, true) / udp(40000, 443).payload(1000));
}

TEST_P(PacketShape, ALaterFragmentHasNoPorts) {
    // Bytes that look like ports, in whatever place a hasty parser would read them.
    const Bytes allowed = {0x01, 0xbb, 0x01, 0xbb, 0x01, 0xbb, 0x01, 0xbb};
    const Bytes closed = {0, 22, 0, 22, 0, 22, 0, 22, 0, 22, 0, 22, 0x50, 0x02, 0, 22};
    for (const uint8_t protocol : {IPPROTO_TCP, IPPROTO_UDP})
        for (const unsigned offset : {16U, 1480U, 65528U})
            for (const bool more : {true, false}) {
                SCOPED_TRACE(testing::Message() << int{protocol} << " at " << offset);
                expect_other(Ethernet() / ip().fragment(offset, more) / raw(protocol, closed));
                expect_other(Ethernet() / ip().fragment(offset, more) / raw(protocol, allowed));
            }
    expect_other(Ethernet() / ip().fragment(8, false) / raw(IPPROTO_UDP, closed));
    expect_other(Ethernet() / ip().fragment(1480, false) / raw(IPPROTO_TCP, {}));
}

TEST_P(PacketShape, AFirstFragmentTooShortForItsHeaderIsMalformed) {
    const Bytes ports_only = {0x9c, 0x40, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0};
    expect_malformed(Ethernet() / ip().fragment(0, true) / raw(IPPROTO_TCP, ports_only));
    expect_malformed(Ethernet() / ip().fragment(0, true) / raw(IPPROTO_TCP, {}));
    expect_malformed(Ethernet() / ip().fragment(0, true) / raw(IPPROTO_UDP, {0x9c, 0x40, 0, 22}));
    // Would overwrite the flags of the first one when put together.
    expect_malformed(Ethernet() / ip().fragment(8, true) / tcp(40000, 22).syn());
}

TEST_P(PacketShape, AnAtomicFragmentIsAWholePacket) {
    expect_ssh(Ethernet() / ip().fragment(0, false) / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip().fragment(0, false) / udp(40000, 22));
}

// --- what the stack would discard --------------------------------------------------------------

TEST_P(PacketShape, LengthsBeyondTheFrameAreMalformed) {
    const unsigned honest = GetParam() == Family::ipv4 ? 40 : 20;
    expect_ssh(Ethernet() / ip().claim_length(honest) / tcp(40000, 22).syn());
    expect_malformed(Ethernet() / ip().claim_length(honest + 1) / tcp(40000, 22).syn());
    expect_malformed(Ethernet() / ip().claim_length(65535) / tcp(40000, 22).syn());
    // Every cut of a packet whose header says more.
    const Packet whole = Ethernet() / ip() / tcp(40000, 22).ack().payload(100);
    for (size_t length = 14; length < whole.bytes().size(); ++length) {
        SCOPED_TRACE(length);
        expect_malformed(Packet(whole).cut_to(length));
    }
}

TEST_P(PacketShape, ADatagramEndsWithinItsPacket) {
    expect_malformed(Ethernet() / ip() / udp(40000, 22).payload(20).claim_length(29));
    expect_malformed(Ethernet() / ip() / udp(40000, 22).payload(20).claim_length(7));
    expect_malformed(Ethernet() / ip() / raw(IPPROTO_UDP, {0x9c, 0x40, 0, 22, 0, 8, 0}));
    expect_ssh(Ethernet() / ip() / udp(40000, 22).payload(20).claim_length(10));
}

TEST_P(PacketShape, ASegmentHoldsItsHeader) {
    expect_malformed(Ethernet() / ip() / tcp(40000, 22).syn().claim_header_words(4));
    expect_malformed(Ethernet() / ip() / tcp(40000, 22).syn().claim_header_words(0));
    expect_malformed(Ethernet() / ip() / tcp(40000, 22).syn().claim_header_words(6));
    expect_malformed(Ethernet() / ip() / raw(IPPROTO_TCP, Bytes(19, 0x50)));
    expect_ssh(Ethernet() / ip() / tcp(40000, 22).syn().options(10));
}

TEST_P(PacketShape, AnotherVersionIsMalformed) {
    for (const unsigned version : {0U, GetParam() == Family::ipv4 ? 6U : 4U, 5U, 15U})
        expect_malformed(Ethernet() / ip().version(version) / tcp(40000, 22).syn());
}

TEST_P(PacketShape, AnIcmpMessageHoldsItsHeader) {
    const uint8_t number = GetParam() == Family::ipv4 ? 1 : 58;
    const uint8_t echo = GetParam() == Family::ipv4 ? 8 : 128;
    expect_other(Ethernet() / ip() / raw(number, {echo, 0, 0, 0, 0, 0, 0, 0}));
    expect_malformed(Ethernet() / ip() / raw(number, {echo, 0, 0, 0, 0, 0, 0}));
    expect_malformed(Ethernet() / ip() / raw(number, {}));
}

TEST_P(PacketShape, WhatIsMerelyUnknownIsOther) {
    for (const uint8_t protocol : {uint8_t{47}, uint8_t{50}, uint8_t{132}, uint8_t{253}}) {
        expect_other(Ethernet() / ip() / raw(protocol, Bytes(40, 22)));
        expect_other(Ethernet() / ip() / raw(protocol, {}));
    }
}

// --- the two families, each by itself ----------------------------------------------------------

class Ipv4Shape : public GateUnderTest {};

TEST_F(Ipv4Shape, UpperLayersBeginBehindOptions) {
    install(kClosedSsh);
    for (unsigned words = 0; words <= 10; ++words) {
        SCOPED_TRACE(words);
        const auto ip = from("192.0.2.10").to("203.0.113.1").options(words);
        send(Ethernet() / ip / tcp(40000, 22).syn());
        EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 22).syn()), "drop_source_packets");
        EXPECT_EQ(send(Ethernet() / ip / udp(40000, 22)), "drop_source_packets");
        EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 443).syn()), "pass_unlimited");
    }
}

TEST_F(Ipv4Shape, ImpossibleHeaderLengthsAreMalformed) {
    const auto ip = from("192.0.2.10").to("203.0.113.1");
    for (unsigned words = 0; words < 5; ++words)
        EXPECT_EQ(send(Ethernet() / Ip(ip).claim_header_words(words) / tcp(40000, 22).syn()),
                  "drop_malformed");
    EXPECT_EQ(send(Ethernet() / Ip(ip).claim_header_words(15) / tcp(40000, 22).syn()),
              "drop_malformed");
    EXPECT_EQ(send(Ethernet() / Ip(ip).claim_length(19) / tcp(40000, 22).syn()), "drop_malformed");
    EXPECT_EQ(send(Ethernet() / Ip(ip).claim_length(0) / tcp(40000, 22).syn()), "drop_malformed");
}

class Ipv6Shape : public GateUnderTest {
  protected:
    static Ip ip() { return from("2001:db8:a:1::10").to("2001:db8:c::1"); }
    void SetUp() override {
        GateUnderTest::SetUp();
        if (IsSkipped())
            return;
        install(kClosedSsh);
        send(Ethernet() / ip() / tcp(40000, 22).ack());
    }
    void expect_ssh(const Packet& to_ssh) { EXPECT_EQ(send(to_ssh), "drop_source_packets"); }
};

TEST_F(Ipv6Shape, EachHeaderHasItsOwnLength) {
    expect_ssh(Ethernet() / ip() / hop_by_hop() / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / hop_by_hop(3) / routing(2) / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / destination_options(7) / udp(40000, 22));
    expect_ssh(Ethernet() / ip() / authentication(4) / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / authentication(4) / hop_by_hop() / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / hop_by_hop() / authentication(5) / tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / authentication(4) / authentication(10) / udp(40000, 22));
    expect_ssh(Ethernet() / ip() / Extension(135, 1) / Extension(139, 2) / Extension(140, 0) /
               tcp(40000, 22).syn());
    EXPECT_EQ(send(Ethernet() / ip() / authentication(4) / hop_by_hop() / tcp(40000, 443).syn()),
              "pass_unlimited");
}

TEST_F(Ipv6Shape, EightHeadersAreWalkedANinthIsOther) {
    Packet packet = Ethernet() / ip();
    for (unsigned headers = 1; headers <= 8; ++headers) {
        packet.add(headers % 2 != 0 ? hop_by_hop(headers) : authentication(headers));
        SCOPED_TRACE(headers);
        expect_ssh(packet / tcp(40000, 22).syn());
    }
    const auto outcome = send(packet / destination_options() / tcp(40000, 22).syn());
    EXPECT_EQ(outcome, "pass_unlimited");
    EXPECT_EQ(outcome.service, "other");
}

TEST_F(Ipv6Shape, LongHeadersReachBeyondTheLinearPart) {
    expect_ssh(Ethernet() / ip() / destination_options(255) / destination_options(255) /
               tcp(40000, 22).syn());
    expect_ssh(Ethernet() / ip() / destination_options(255) / hop_by_hop(180) / udp(40000, 22));
    Packet packet = Ethernet().vlans(8) / ip();
    for (int i = 0; i < 8; ++i)
        packet.add(destination_options(255));
    expect_ssh(packet / tcp(40000, 22).syn());
}

TEST_F(Ipv6Shape, AFragmentBehindOtherHeaders) {
    expect_ssh(Ethernet() / ip() / hop_by_hop() / fragment_header(0, true) /
               udp(40000, 22).payload(64));
    expect_ssh(Ethernet() / ip() / fragment_header(0, true) / destination_options() /
               udp(40000, 22).payload(64));
    const auto later = send(Ethernet() / ip() / hop_by_hop() / fragment_header(1448, false) /
                            destination_options() / tcp(40000, 22).syn());
    EXPECT_EQ(later.service, "other");
    EXPECT_EQ(later, "pass_unlimited");
    EXPECT_EQ(send(Ethernet() / ip() / hop_by_hop() / fragment_header(8, false) / tcp(40000, 22)),
              "drop_malformed");
}

TEST_F(Ipv6Shape, HeadersThatReachBeyondThePacketAreMalformed) {
    const Layer tail = raw(IPPROTO_TCP, {});
    EXPECT_EQ(send(Ethernet() / ip() / raw(IPPROTO_HOPOPTS, {IPPROTO_TCP, 9, 0, 0, 0, 0, 0, 0})),
              "drop_malformed");
    EXPECT_EQ(send(Ethernet() / ip() / raw(IPPROTO_HOPOPTS, {IPPROTO_TCP})), "drop_malformed");
    EXPECT_EQ(send(Ethernet() / ip() / routing() / tail), "drop_malformed");
    EXPECT_EQ(send(Ethernet() / ip() / raw(51, {IPPROTO_TCP, 250, 0, 0, 0, 0, 0, 0})),
              "drop_malformed");
    EXPECT_EQ(send(Ethernet() / ip() / raw(44, {IPPROTO_TCP, 0, 0, 1})), "drop_malformed");
}

TEST_F(Ipv6Shape, NothingBehindIsFine) {
    EXPECT_EQ(send(Ethernet() / ip()), "pass_unlimited");
    EXPECT_EQ(send(Ethernet() / ip() / destination_options()), "pass_unlimited");
}

class LinkShape : public GateUnderTest {};

TEST_F(LinkShape, WhatIsNotIpPasses) {
    EXPECT_EQ(send(Ethernet() / arp("192.0.2.10", "192.0.2.1")), "pass_not_ip");
    EXPECT_EQ(send(Ethernet().vlans(4) / arp("192.0.2.10", "192.0.2.1")), "pass_not_ip");
    EXPECT_EQ(send(Packet(Ethernet().type(0x88cc)).pad_to(60)), "pass_not_ip");
    EXPECT_EQ(send(Packet(Ethernet().type(0x0026)).pad_to(60)), "pass_not_ip");
    EXPECT_EQ(send(Packet(Ethernet())), "pass_not_ip");
}

TEST_F(LinkShape, JumboFramesAreReadInPieces) {
    install(kClosedSsh);
    const Ip ip = from("192.0.2.10").to("203.0.113.1");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 22).ack().payload(8900)), "pass_within");
    EXPECT_EQ(send(Ethernet() / ip / tcp(40000, 22).ack().payload(8900)), "drop_source_packets");
}

}  // namespace

}  // namespace sluice
