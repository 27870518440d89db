#include "net/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "base/unique_fd.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::IsEmpty;

IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

TEST(OwnAddresses, IncludeLoopbackOnce) {
    const auto addresses = own_addresses();
    ASSERT_TRUE(addresses) << addresses.error().message;
    EXPECT_EQ(std::count(addresses->begin(), addresses->end(), address("127.0.0.1")), 1);
}

TEST(Resolvers, AreReadFromResolvConf) {
    const TempFolder folder;
    const auto path = folder.write("resolv.conf",
                                   "# nameserver 192.0.2.1\n"
                                   "search example.org\n"
                                   "nameserver 192.0.2.53\n"
                                   "  nameserver\t2001:db8::53  # second\n"
                                   "nameserver fe80::1%eth0\n"
                                   "nameserver not-an-address\n"
                                   "nameserver\n");
    const auto found = resolvers(path);
    ASSERT_TRUE(found);
    EXPECT_THAT(*found,
                ElementsAre(address("192.0.2.53"), address("2001:db8::53"), address("fe80::1")));
}

TEST(Resolvers, AreNoneWithoutTheFile) {
    const TempFolder folder;
    const auto found = resolvers(folder.path() + "/resolv.conf");
    ASSERT_TRUE(found);
    EXPECT_THAT(*found, IsEmpty());
}

TEST(SshPeer, IsReadFromEitherVariable) {
    EXPECT_EQ(ssh_peer_in("SSH_CONNECTION=192.0.2.9 50000 203.0.113.1 22"sv), address("192.0.2.9"));
    EXPECT_EQ(ssh_peer_in("TERM=x\0SSH_CLIENT=2001:db8::9 50000 22\0HOME=/\0"sv),
              address("2001:db8::9"));
    EXPECT_EQ(ssh_peer_in("SSH_CONNECTION=::ffff:192.0.2.9 1 ::1 22\0"sv), address("192.0.2.9"));
    EXPECT_EQ(ssh_peer_in("SSH_CONNECTION=fe80::9%eth0 1 fe80::1%eth0 22\0"sv), address("fe80::9"));
}

TEST(SshPeer, IsNothingElse) {
    EXPECT_EQ(ssh_peer_in(""sv), std::nullopt);
    EXPECT_EQ(ssh_peer_in("\0\0"sv), std::nullopt);
    EXPECT_EQ(ssh_peer_in("X_SSH_CLIENT=192.0.2.9 1 22\0"sv), std::nullopt);
    EXPECT_EQ(ssh_peer_in("SSH_CONNECTION=\0"sv), std::nullopt);
    EXPECT_EQ(ssh_peer_in("SSH_CONNECTION=UNKNOWN 0 0 0\0"sv), std::nullopt);
}

TEST(OperatorPeer, IsFoundInAParentWhenSudoDroppedTheVariable) {
    const TempFolder proc;
    proc.write("30/environ", "SUDO_USER=ops\0"sv);
    proc.write("30/status", "Name:\tsluicectl\nPid:\t30\nPPid:\t20\n");
    proc.write("20/status",
               "Name:\tsudo\nPid:\t20\nPPid:\t10\n");  // Its environment is unreadable.
    proc.write("10/environ", "SSH_CONNECTION=192.0.2.9 50000 203.0.113.1 22\0"sv);
    proc.write("10/status", "Name:\tbash\nPid:\t10\nPPid:\t1\n");
    EXPECT_EQ(operator_peer(30, proc.path()), address("192.0.2.9"));
}

TEST(OperatorPeer, IsNobodyOnTheConsole) {
    const TempFolder proc;
    proc.write("30/environ", "HOME=/root\0"sv);
    proc.write("30/status", "PPid:\t1\n");
    proc.write("1/status", "PPid:\t0\n");
    EXPECT_EQ(operator_peer(30, proc.path()), std::nullopt);
    EXPECT_EQ(operator_peer(99, proc.path()), std::nullopt);
}

TEST(OperatorPeer, EndsEvenWhereParentsFormARing) {
    const TempFolder proc;
    proc.write("30/status", "PPid:\t31\n");
    proc.write("31/status", "PPid:\t30\n");
    EXPECT_EQ(operator_peer(30, proc.path()), std::nullopt);
}

// The addresses below are as a little-endian kernel prints them.
TEST(Listeners, AreThoseThatStrangersCanReach) {
    if constexpr (std::endian::native != std::endian::little)
        GTEST_SKIP() << "the kernel's text depends on the byte order";
    const TempFolder net;
    net.write("tcp",
              "  sl  local_address rem_address   st tx_queue rx_queue\n"
              "   0: 00000000:01BB 00000000:0000 0A 00000000:00000000\n"
              "   1: 0A0200C0:20FB 00000000:0000 0A 00000000:00000000\n"
              "   2: 0A0200C0:20FB 090200C0:C350 01 00000000:00000000\n"
              "   3: 00000000:01BB 00000000:0000 0A 00000000:00000000\n"
              "   4: garbage\n"
              "   5: zz000000:01BB 00000000:0000 0A\n");
    net.write("tcp6",
              "  sl  local_address remote_address st\n"
              "   0: 00000000000000000000000000000000:0016 "
              "00000000000000000000000000000000:0000 0A\n"
              "   1: B80D0120000000000000000001000000:01BB "
              "00000000000000000000000000000000:0000 0A\n"
              "   2: 0000000000000000FFFF00000A0200C0:0050 "
              "00000000000000000000000000000000:0000 0A\n");
    net.write("udp",
              "  sl  local_address rem_address   st\n"
              "   0: 00000000:0035 00000000:0000 07\n"
              "   1: 0A0200C0:C351 090200C0:0035 01\n");
    const auto found = listeners(net.path());
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_THAT(*found, ElementsAre(Listener{IPPROTO_TCP, address("::"), 22},
                                    Listener{IPPROTO_TCP, address("0.0.0.0"), 443},
                                    Listener{IPPROTO_TCP, address("192.0.2.10"), 80},
                                    Listener{IPPROTO_TCP, address("192.0.2.10"), 8443},
                                    Listener{IPPROTO_TCP, address("2001:db8::1"), 443},
                                    Listener{IPPROTO_UDP, address("0.0.0.0"), 53}));
}

TEST(Listeners, IncludeARealSocket) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof name;
    ASSERT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&name), size), 0);
    ASSERT_EQ(::listen(socket.get(), 1), 0);
    ASSERT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &size), 0);
    const auto found = listeners();
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_THAT(*found, testing::Contains(
                            Listener{IPPROTO_TCP, address("127.0.0.1"), ntohs(name.sin_port)}));
}

}  // namespace
}  // namespace sluice
