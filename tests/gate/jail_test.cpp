// What happens to a source that goes over its limit: only the excess, or all of it for a time.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

class Jail : public GateOfBothFamilies {
  protected:
    static constexpr auto kForgeable =
        "per_source = { data = { rate = \"1/s\", burst = 3 }, on_excess = { jail = \"30s\", "
        "spoofable = true } }";
    static constexpr auto kProven =
        "per_source = { data = { rate = \"1/s\", burst = 3 }, on_excess = { jail = \"30s\" } }";

    static Packet datagram() { return Ethernet() / ip() / udp(40000, 443).payload(10); }
    static Packet segment() { return Ethernet() / ip() / tcp(40000, 443).ack().payload(10); }
    static Packet bare_ack() { return Ethernet() / ip() / tcp(40000, 443).ack(); }
};
FOR_BOTH_FAMILIES(Jail);

TEST_P(Jail, PoliceDropsTheExcessOnly) {
    install_web("per_source = { data = { rate = \"1/s\", burst = 3 }, on_excess = \"police\" }");
    EXPECT_EQ(send_many(datagram(), 9), 3U);
    EXPECT_EQ(send(bare_ack()), "pass_within");
    advance(1s);
    EXPECT_EQ(send(datagram()), "pass_within");
}

TEST_P(Jail, AJailedSourceGetsNothingFromThatService) {
    install_web(kForgeable);
    EXPECT_EQ(send_many(datagram(), 3), 3U);
    EXPECT_EQ(send(bare_ack()), "pass_within");
    EXPECT_EQ(send(datagram()), "drop_source_data");
    EXPECT_EQ(send(datagram()), "drop_jailed");
    EXPECT_EQ(send(bare_ack()), "drop_jailed");
    EXPECT_EQ(send(Ethernet() / ip() / tcp(1, 443).syn()), "drop_jailed");
    EXPECT_EQ(send(Ethernet() / ip() / tcp(1, 80).syn()), "pass_unlimited");
    EXPECT_EQ(send(Ethernet() / from(of().same_network).to(of().server) / udp(1, 443)),
              "pass_within");
    advance(30s - 10ms);
    EXPECT_EQ(send(bare_ack()), "drop_jailed");
    advance(20ms);
    EXPECT_EQ(send(datagram()), "pass_within");
}

TEST_P(Jail, NobodyIsJailedByWhatAnybodyCanForge) {
    install_web(kProven);
    EXPECT_EQ(send_many(datagram(), 99), 3U);
    EXPECT_EQ(send_many(segment(), 99), 0U);
    EXPECT_EQ(send_many(Ethernet() / ip() / tcp(40000, 443).syn().payload(9), 99), 0U);
    EXPECT_EQ(counted("drop_jailed"), 0U);
    EXPECT_EQ(send(bare_ack()), "pass_within");
}

TEST_P(Jail, AnAllowedSourceIsNotJailed) {
    install_web(kForgeable);
    allow(of().client);
    EXPECT_EQ(send_many(datagram(), 99), 99U);
}

TEST_P(Jail, AWindowJailsToo) {
    install_web(
        "per_source = { connections = { limit = 2, window = \"10s\" }, "
        "on_excess = { jail = \"30s\", spoofable = true } }");
    const Packet syn = Ethernet() / ip() / tcp(1, 443).syn();
    EXPECT_EQ(send_many(syn, 2), 2U);
    EXPECT_EQ(send(syn), "drop_source_window");
    EXPECT_EQ(send(syn), "drop_jailed");
    EXPECT_EQ(send(bare_ack()), "drop_jailed");
}

TEST_P(Jail, AJailSetInObserveModeIsInertInEnforceMode) {
    install_web(kForgeable);
    set_mode("gate", Mode::observe);
    EXPECT_EQ(send_many(datagram(), 3), 3U);
    EXPECT_EQ(send(datagram()), "would_drop_source_data");
    EXPECT_EQ(send(datagram()), "would_drop_jailed");
    EXPECT_EQ(send(bare_ack()), "would_drop_jailed");
    set_mode("gate", Mode::enforce);
    EXPECT_EQ(send(bare_ack()), "pass_within");
    advance(3s);
    EXPECT_EQ(send_many(datagram(), 3), 3U);
}

TEST_P(Jail, AJailSetInEnforceModeIsNotForgottenByAnHourOfObserving) {
    install_web(kForgeable);
    send_many(datagram(), 4);
    EXPECT_EQ(send(bare_ack()), "drop_jailed");
    set_mode("web", Mode::observe, 5s);
    EXPECT_EQ(send(bare_ack()), "pass_within");
    advance(6s);
    EXPECT_EQ(send(bare_ack()), "drop_jailed");
}

TEST_P(Jail, ARuleThatIsOnlyObservedJailsNobody) {
    install_web(
        "per_source = { data = { rate = \"1/s\", burst = 3 }, packets = \"1000/s\", "
        "on_excess = { jail = \"30s\", spoofable = true } }\n"
        "modes = { \"per_source.data\" = \"observe\" }");
    EXPECT_EQ(send_many(datagram(), 3), 3U);
    EXPECT_EQ(send(datagram()), "would_drop_source_data");
    for (int i = 0; i < 5; ++i)
        EXPECT_FALSE(send(datagram()).dropped);
    EXPECT_EQ(send(bare_ack()), "pass_within");
    EXPECT_EQ(counted("drop_jailed"), 0U);
}

TEST_P(Jail, AServiceThatIsOffSaysNothingAboutJails) {
    install_web(kForgeable);
    set_mode("gate", Mode::observe);
    send_many(datagram(), 5);
    set_mode("web", Mode::off);
    EXPECT_EQ(send(bare_ack()), "pass_within");
}

// --- with real sockets on the loopback device --------------------------------------------------

class Connection {
  public:
    explicit Connection(Family family) : ipv4_(family == Family::ipv4) {
        UniqueFd listener = make();
        sockaddr_storage address = loopback();
        EXPECT_EQ(::bind(listener.get(), raw(address), size()), 0);
        EXPECT_EQ(::listen(listener.get(), 1), 0);
        server_port = port_of(listener.get());
        set_port(address, server_port);
        client_ = make();
        EXPECT_EQ(::connect(client_.get(), raw(address), size()), 0);
        client_port = port_of(client_.get());
        accepted_ = UniqueFd(::accept(listener.get(), nullptr, nullptr));
        listener_ = std::move(listener);
    }
    uint16_t server_port = 0;
    uint16_t client_port = 0;

  private:
    [[nodiscard]] UniqueFd make() const {
        return UniqueFd(::socket(ipv4_ ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    [[nodiscard]] sockaddr_storage loopback() const {
        sockaddr_storage address{};
        address.ss_family = ipv4_ ? AF_INET : AF_INET6;
        if (ipv4_)
            reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else
            reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
        return address;
    }
    void set_port(sockaddr_storage& address, uint16_t port) const {
        (ipv4_ ? reinterpret_cast<sockaddr_in&>(address).sin_port
               : reinterpret_cast<sockaddr_in6&>(address).sin6_port) = htons(port);
    }
    [[nodiscard]] uint16_t port_of(int fd) const {
        sockaddr_storage address{};
        socklen_t length = sizeof(address);
        EXPECT_EQ(::getsockname(fd, raw(address), &length), 0);
        return ntohs(ipv4_ ? reinterpret_cast<sockaddr_in&>(address).sin_port
                           : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
    }
    static sockaddr* raw(sockaddr_storage& address) {
        return reinterpret_cast<sockaddr*>(&address);
    }
    [[nodiscard]] socklen_t size() const {
        return ipv4_ ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    }

    bool ipv4_;
    UniqueFd listener_, client_, accepted_;
};

class Sockets : public GateOfBothFamilies {
  protected:
    static Ip local() {
        const std::string_view loopback = GetParam() == Family::ipv4 ? "127.0.0.1" : "::1";
        return from(loopback).to(loopback);
    }
};
FOR_BOTH_FAMILIES(Sockets);

TEST_P(Sockets, AnswersToOwnConnectionsPassOverTheLimit) {
    install(
        "[[service]]\nname = \"other\"\nper_source = { packets = { rate = \"1/s\", burst = 2 } "
        "}\n");
    const Connection connection(GetParam());
    const Packet answer =
        Ethernet() / local() / tcp(connection.server_port, connection.client_port).ack();
    const Packet request =
        Ethernet() / local() / tcp(connection.client_port, connection.server_port).ack();
    EXPECT_EQ(send_many(answer, 2), 2U);
    EXPECT_EQ(send(answer), "pass_reply");
    EXPECT_EQ(send(request), "drop_source_packets");
    EXPECT_EQ(
        send(Ethernet() / local() / tcp(connection.server_port, connection.client_port).syn()),
        "drop_source_packets");
    EXPECT_EQ(send(Ethernet() / local() / tcp(1, connection.client_port).ack()),
              "drop_source_packets");
    install(
        "[[service]]\nname = \"other\"\nreply_exempt = false\n"
        "per_source = { packets = { rate = \"1/s\", burst = 2 } }\n");
    EXPECT_EQ(send(answer), "drop_source_packets");
}

TEST_P(Sockets, WithoutASocketOtherIsLimited) {
    install(
        "[[service]]\nname = \"other\"\nper_source = { packets = { rate = \"1/s\", burst = 2 } "
        "}\n");
    EXPECT_EQ(send_many(Ethernet() / ip() / tcp(443, 50123).ack().payload(1000), 99), 2U);
    EXPECT_EQ(send_many(Ethernet() / from(of().other_network).to(of().server) / udp(53, 50123), 99),
              2U);
}

TEST_P(Sockets, AProvenSourceIsJailed) {
    const Connection connection(GetParam());
    install("[[service]]\nname = \"web\"\nmatch = [\"tcp/" +
            std::to_string(connection.server_port) +
            "\"]\nper_source = { data = { rate = \"1/s\", burst = 2 }, on_excess = { jail = "
            "\"30s\" } }\n");
    const auto tcp_from = [&](uint16_t port) { return tcp(port, connection.server_port); };
    const Packet forged = Ethernet() / local() / tcp_from(1).ack().payload(9);
    const Packet proven = Ethernet() / local() / tcp_from(connection.client_port).ack().payload(9);
    EXPECT_EQ(send_many(forged, 9), 2U);
    EXPECT_EQ(counted("drop_jailed"), 0U);
    EXPECT_EQ(send(proven), "drop_source_data");
    EXPECT_EQ(send(proven), "drop_jailed");
    EXPECT_EQ(send(forged), "drop_jailed");
}

}  // namespace

}  // namespace sluice
