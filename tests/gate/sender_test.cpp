// Who sent it: bans and their ends, prefixes, allows, protections, and the traffic that keeps a
// link alive. None of it depends on what the sender put into the rest of the packet.
#include <bpf/bpf.h>

#include <algorithm>

#include "gate_under_test.h"

namespace sluice {

namespace {

std::vector<std::pair<std::string, Packet>> shapes(const Ip& ip, bool ipv4) {
    std::vector<std::pair<std::string, Packet>> all;
    const auto add = [&](std::string name, const Packet& packet) {
        all.emplace_back(std::move(name), packet);
    };
    add("a SYN", Ethernet() / ip / tcp(40000, 443).syn());
    add("a datagram", Ethernet() / ip / udp(40000, 53).payload(30));
    add("a reply of a resolver", Ethernet() / ip / udp(53, 40000).payload(30));
    add("two tags", Ethernet().vlan(10, 0x88a8).vlan(20) / ip / tcp(40000, 443).syn());
    add("three tags", Ethernet().vlan(1, 0x88a8).vlan(2).vlan(3) / ip / tcp(40000, 443).syn());
    add("eight tags", Ethernet().vlans(8) / ip / tcp(40000, 443).syn());
    add("a first fragment", Ethernet() / Ip(ip).fragment(0, true) / udp(1, 2).payload(64));
    add("a later fragment", Ethernet() / Ip(ip).fragment(1480, false) / raw(17, Bytes(64)));
    add("an unknown protocol", Ethernet() / ip / raw(253, Bytes(8)));
    add("a tunnel", Ethernet() / ip / from("198.51.100.7").to("203.0.113.1") / tcp(1, 443).syn());
    add("a tunnel of IPv6",
        Ethernet() / ip / from("2001:db8:f::7").to("2001:db8:c::1") / tcp(1, 443));
    add("GRE", Ethernet() / ip / raw(IPPROTO_GRE, {0, 0, 8, 0}));
    add("DHCP", Ethernet() / ip / (ipv4 ? udp(67, 68) : udp(547, 546)).payload(240));
    add("an error", Ethernet() / ip / (ipv4 ? icmp(3, 4, 28) : icmp6(2, 0, 48)));
    add("an echo", Ethernet() / ip / (ipv4 ? icmp(8) : icmp6(128)));
    // Malformed ones are dropped either way, but a ban is the truer word.
    add("too long", Ethernet() / Ip(ip).claim_length(9000) / tcp(40000, 443).syn());
    add("no ports", Ethernet() / ip / raw(IPPROTO_TCP, {1, 2}));
    if (ipv4) {
        for (unsigned words = 1; words <= 10; ++words)
            add("options", Ethernet() / Ip(ip).options(words) / tcp(40000, 443).syn());
        add("a header too short", Ethernet() / Ip(ip).claim_header_words(2) / tcp(1, 2));
        return all;
    }
    Packet chain = Ethernet() / ip;
    for (int i = 0; i < 8; ++i)
        chain.add(i % 2 != 0 ? destination_options(3) : authentication());
    add("eight headers", chain / tcp(40000, 443).syn());
    add("nine headers", chain / hop_by_hop() / tcp(40000, 443).syn());
    add("a header cut short", Ethernet() / ip / raw(IPPROTO_ROUTING, {6, 200}));
    add("discovery from afar", Ethernet() / Ip(ip).hop_limit(64) / icmp6(135, 0, 16));
    add("discovery of another code", Ethernet() / Ip(ip).hop_limit(255) / icmp6(135, 1, 16));
    add("discovery behind a header",
        Ethernet() / Ip(ip).hop_limit(255) / hop_by_hop() / icmp6(135, 0, 16));
    add("discovery in a fragment",
        Ethernet() / Ip(ip).hop_limit(255).fragment(0, false) / icmp6(135, 0, 16));
    return all;
}

class Sender : public GateOfBothFamilies {
  protected:
    Packet syn(std::string_view source) {
        return Ethernet() / from(source).to(of().server) / tcp(40000, 443).syn();
    }
};
FOR_BOTH_FAMILIES(Sender);

TEST_P(Sender, ABannedOneIsDroppedWhateverItSends) {
    ban(of().client);
    for (const auto& [name, packet] : shapes(ip(), GetParam() == Family::ipv4)) {
        SCOPED_TRACE(name);
        EXPECT_EQ(send(packet), "drop_banned");
    }
    EXPECT_EQ(send(syn(of().other_network)), "pass_unlimited");
}

TEST_P(Sender, ABannedPrefixIsTheSame) {
    ban(GetParam() == Family::ipv4 ? "192.0.2.0/28" : "2001:db8:a:1::/64");
    for (const auto& [name, packet] : shapes(ip(), GetParam() == Family::ipv4)) {
        SCOPED_TRACE(name);
        EXPECT_EQ(send(packet), "drop_banned");
    }
    EXPECT_EQ(send(syn(of().same_network)), "pass_unlimited");
}

TEST_P(Sender, ABanEndsOnTime) {
    ban(of().client, 10s);
    advance(10s - 1ms);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
    advance(3ms);
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
}

TEST_P(Sender, ABanEndsOnTimeByALaggingClock) {
    ban(of().client, 10s);
    lag(8ms);
    advance(10s - 1ms);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
    advance(3ms);
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
}

TEST_P(Sender, TheLongerOfTwoBansHolds) {
    for (const bool long_first : {true, false}) {
        const auto source = long_first ? of().client : of().other_network;
        const std::string_view lists[] = {"crowdsec", "blocklist"};
        for (const bool is_long : {long_first, !long_first}) {
            const auto done = rules().ban(Prefix::parse(source).value(),
                                          {.ttl = is_long ? nanoseconds(1h) : nanoseconds(60s),
                                           .list = std::string(lists[is_long ? 1 : 0])});
            ASSERT_TRUE(done) << done.error().message;
        }
        const uint64_t start = now();
        advance(59min);
        EXPECT_EQ(send(syn(source)), "drop_banned");
        advance(2min);
        EXPECT_EQ(send(syn(source)), "pass_unlimited");
        set_clock(start);
    }
}

TEST_P(Sender, AShorterBanOfTheSameListChangesNothing) {
    ban(of().client, 1h);
    ban(of().client, 60s);
    advance(59min);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
}

TEST_P(Sender, ABanThatIsOverIsNotABan) {
    const std::vector<RuleEntry> entries = {
        {.prefix = Prefix::parse(of().client).value(), .ttl = -55min},
        {.prefix = Prefix::parse(of().other_network).value(), .ttl = 55min}};
    const auto done = rules().import("crowdsec", entries, {});
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(done->over, 1U);
    EXPECT_EQ(done->added, 1U);
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
    EXPECT_EQ(send(syn(of().other_network)), "drop_banned");
}

TEST_P(Sender, APermanentBanNeverEnds) {
    ban(of().client);
    for (int year = 0; year < 40; ++year) {
        EXPECT_EQ(send(syn(of().client)), "drop_banned");
        advance(365 * 24h);
    }
}

TEST_P(Sender, LongBansLastTheirWholeTime) {
    for (const nanoseconds time : {nanoseconds(28 * 24h), nanoseconds(365 * 24h)}) {
        ban(of().client, time);
        for (int part = 0; part < 10; ++part) {
            EXPECT_EQ(send(syn(of().client)), "drop_banned") << part;
            advance(time / 10);
        }
        advance(2ms);
        EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
    }
}

TEST_P(Sender, AnExtendedBanIsBannedThroughout) {
    ban(of().client, 1s);
    for (int i = 0; i < 100; ++i) {
        ban(of().client, 1s + i * 100ms);
        EXPECT_EQ(send(syn(of().client)), "drop_banned");
        advance(100ms);
    }
}

TEST_P(Sender, UnbanningARangeFreesWhatIsInside) {
    const bool ipv4 = GetParam() == Family::ipv4;
    const std::string_view inside = ipv4 ? "192.0.2.52" : "2001:db8:a::52";
    const std::string_view outside = ipv4 ? "192.0.2.64" : "2001:db8:a:1::64";
    ban(inside);
    ban(outside);
    const auto done =
        rules().unban(Prefix::parse(ipv4 ? "192.0.2.48/28" : "2001:db8:a::/64").value());
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(send(syn(inside)), "pass_unlimited");
    EXPECT_EQ(send(syn(outside)), "drop_banned");
}

TEST_P(Sender, UnbanningAHoleInARangeIsEitherDoneOrRefused) {
    const bool ipv4 = GetParam() == Family::ipv4;
    ban(ipv4 ? "198.51.100.0/24" : "2001:db8:b::/48");
    const auto hole =
        rules().unban(Prefix::parse(ipv4 ? "198.51.100.64/26" : "2001:db8:b:4::/64").value());
    const auto outcome = send(syn(ipv4 ? "198.51.100.70" : "2001:db8:b:4::1"));
    EXPECT_EQ(hole.has_value(), outcome.verdict == "pass_unlimited");
    if (!hole) {
        EXPECT_NE(hole.error().message.find(ipv4 ? "198.51.100.0/24" : "2001:db8:b::/48"),
                  std::string::npos);
    }
    EXPECT_EQ(send(syn(ipv4 ? "198.51.100.1" : "2001:db8:b::1")), "drop_banned");
}

TEST_P(Sender, EveryLengthOfPrefixHasItsEdges) {
    const bool ipv4 = GetParam() == Family::ipv4;
    const IpAddress address = IpAddress::parse(of().client).value();
    for (const unsigned length :
         ipv4 ? std::vector<unsigned>{8, 9, 15, 16, 17, 23, 24, 25, 31, 32}
              : std::vector<unsigned>{19, 31, 32, 33, 48, 63, 64, 65, 127, 128}) {
        SCOPED_TRACE(length);
        const auto prefix = Prefix::make(address, length);
        ASSERT_TRUE(prefix) << prefix.error().message;
        const auto done = rules().ban(*prefix, {.ttl = {}, .forced = true});
        if (!done) {
            EXPECT_NE(done.error().message, "");  // other lengths may be refused, but not silently
            continue;
        }
        // The same address with the last bit of the prefix turned over is outside.
        auto bytes = address.bytes();
        const unsigned bit = (ipv4 ? 96 : 0) + length - 1;
        bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 0x80U >> bit % 8);
        const IpAddress outside = IpAddress::from_bytes(bytes);
        EXPECT_EQ(send(syn(of().client)), "drop_banned");
        EXPECT_EQ(send(Ethernet() / from(outside).to(of().server) / tcp(1, 443).syn()),
                  "pass_unlimited");
        const auto freed = rules().unban(*prefix);
        ASSERT_TRUE(freed) << freed.error().message;
        EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
    }
}

TEST_P(Sender, TheWholeFamilyIsHonouredOrRefused) {
    const auto other = addresses(GetParam() == Family::ipv4 ? Family::ipv6 : Family::ipv4);
    const auto everything =
        Prefix::parse(GetParam() == Family::ipv4 ? "0.0.0.0/0" : "::/0").value();
    EXPECT_FALSE(rules().ban(everything, {.ttl = {}}));
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
    const auto done = rules().ban(everything, {.ttl = {}, .forced = true});
    EXPECT_EQ(done.has_value(), send(syn(of().client)) == "drop_banned");
    EXPECT_EQ(send(Ethernet() / from(other.client).to(other.server) / tcp(1, 443).syn()),
              "pass_unlimited");
}

TEST_P(Sender, AllowBeatsBanWhateverTheLengths) {
    const bool ipv4 = GetParam() == Family::ipv4;
    const std::string_view wide = ipv4 ? "192.0.2.0/24" : "2001:db8:a::/48";
    ban(wide);
    allow(of().client);
    EXPECT_EQ(send(syn(of().client)), "pass_allowed");
    EXPECT_EQ(send(syn(of().same_network)), "drop_banned");
    ASSERT_TRUE(rules().unallow(Prefix::parse(of().client).value()));
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
    allow(wide);
    EXPECT_EQ(send(syn(of().same_network)), "pass_allowed");
}

TEST_P(Sender, ProtectedMeansThatItCannotBeBannedAndNothingMore) {
    install_web("per_source = { packets = { rate = \"1/s\", burst = 2 } }");
    ban(of().client, 1h);
    protect(of().client);
    EXPECT_EQ(send(syn(of().client)), "pass_within");
    EXPECT_EQ(send(syn(of().client)), "pass_within");
    EXPECT_EQ(send(syn(of().client)), "drop_source_packets");
    ban(of().client, 1h, /*forced=*/true);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
}

TEST_P(Sender, AForgedAllowedSourceIsNoFreePass) {
    install_web(
        "budget = { data = { rate = \"10/s\", burst = 4 } }\n"
        "per_source = { data = { rate = \"1/s\", burst = 1 } }");
    allow(of().client);
    protect(of().other_network);
    const auto reply = [&](std::string_view source) {
        return Ethernet() / from(source).to(of().server) / udp(53, 443).payload(100);
    };
    for (int i = 0; i < 4; ++i)
        EXPECT_EQ(send(reply(of().client)), "pass_allowed");
    EXPECT_EQ(send(reply(of().client)), "drop_budget");
    EXPECT_EQ(send(reply(of().other_network)), "drop_budget");
    allow(of().client, /*exempt=*/true);
    EXPECT_EQ(send(reply(of().client)), "pass_exempt");
}

TEST_P(Sender, BansByHandAreAskedWhenTheyAreOn) {
    sluice_manual_key key{};
    const auto address = IpAddress::parse(of().client).value();
    std::copy(address.bytes().begin(), address.bytes().end(), key.address);
    const auto set = [&](uint64_t until) {
        const sluice_manual manual = {until};
        ASSERT_EQ(bpf_map_update_elem(tables_->bans_manual.get(), &key, &manual, 0), 0);
    };
    set(SLUICE_NEVER);
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
    tables_->bans_manual_on[0] = 1;
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
    EXPECT_EQ(send(syn(of().same_network)), "pass_unlimited");
    set(now() + 1'000'000'000);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
    advance(1s);
    EXPECT_EQ(send(syn(of().client)), "pass_unlimited");
}

TEST_P(Sender, BansFollowTheModeOfTheGate) {
    ban(of().client);
    set_mode("gate", Mode::observe);
    EXPECT_EQ(send(syn(of().client)), "would_drop_banned");
    set_mode("gate", Mode::off);
    EXPECT_EQ(send(syn(of().client)), "pass_mode_off");
    set_mode("gate", Mode::enforce);
    EXPECT_EQ(send(syn(of().client)), "drop_banned");
}

}  // namespace

}  // namespace sluice
