// What the kernel says of real connections over loopback.
#include "net/tcp_flow.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace sluice {
namespace {

// A listener on loopback, and whoever connects to it.
class TcpFlow : public testing::Test {
  protected:
    void SetUp() override {
        auto flows = TcpFlows::open();
        ASSERT_TRUE(flows) << flows.error().message;
        flows_.emplace(*std::move(flows));
        listener_ = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        ASSERT_EQ(::listen(listener_.get(), 4), 0);
        own_ = end_of(listener_);
    }
    static TcpEnd end_of(const UniqueFd& socket) {
        sockaddr_in name{};
        socklen_t size = sizeof name;
        EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
        return {IpAddress::from_ipv4(ntohl(name.sin_addr.s_addr)), ntohs(name.sin_port)};
    }
    UniqueFd connect() {
        UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons(own_.port);
        EXPECT_EQ(::connect(peer.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
        return peer;
    }

    std::optional<TcpFlows> flows_;
    UniqueFd listener_;
    TcpEnd own_;
};

TEST_F(TcpFlow, WhoHasConnectedIsProven) {
    const UniqueFd peer = connect();
    EXPECT_TRUE(flows_->is_established(own_, end_of(peer)));
    TcpEnd other = end_of(peer);
    other.address = IpAddress::parse("127.0.0.2").value();
    EXPECT_FALSE(flows_->is_established(own_, other)) << "the same port in another's name";
    EXPECT_TRUE(flows_->is_established(own_, end_of(peer))) << "an answer of before is not taken";
}

TEST_F(TcpFlow, WhoOnlyKnowsThePortIsNot) {
    EXPECT_FALSE(flows_->is_established(own_, {IpAddress::parse("192.0.2.7").value(), 1234}));
    EXPECT_FALSE(flows_->is_established(own_, {IpAddress::parse("2001:db8::7").value(), 1234}));
}

TEST_F(TcpFlow, AConnectionThatIsOverIsForgotten) {
    UniqueFd peer = connect();
    const TcpEnd end = end_of(peer);
    const UniqueFd accepted(::accept(listener_.get(), nullptr, nullptr));
    const linger reset{1, 0};
    (void)::setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    peer = UniqueFd();
    EXPECT_FALSE(flows_->is_established(own_, end));
}

}  // namespace
}  // namespace sluice
