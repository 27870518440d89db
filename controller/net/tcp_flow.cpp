#include "net/tcp_flow.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice {

namespace {

// As the kernel numbers states. Not SYN_RECV: there the handshake is not complete; nor SYN_SENT:
// there it is this host that asks. TIME_WAIT comes after one.
constexpr uint32_t kAfterHandshake =
    1U << 1 | 1U << 4 | 1U << 5 | 1U << 6 | 1U << 8 | 1U << 9 | 1U << 11;
// The kernel answers before send() returns; this is only never to wait for ever.
constexpr timeval kPatience{0, 100'000};

struct Request {
    nlmsghdr header;
    inet_diag_req_v2 wanted;
};

void put_address(const IpAddress& address, Family family, __be32 (&out)[4]) {
    if (family == Family::ipv4)
        out[0] = htonl(address.ipv4_host_order());
    else
        std::memcpy(out, address.bytes().data(), sizeof out);
}

}  // namespace

Result<TcpFlows> TcpFlows::open() {
    UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
    if (!socket)
        return from_errno(errno, "ask the kernel for its sockets");
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    return TcpFlows(std::move(socket));
}

bool TcpFlows::is_established(const TcpEnd& own, const TcpEnd& peer) {
    if (own.address.family() != peer.address.family())
        return false;
    const Family family = own.address.family();
    Request request{};
    request.header = {.nlmsg_len = sizeof request,
                      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                      .nlmsg_flags = NLM_F_REQUEST,
                      .nlmsg_seq = ++sequence_,
                      .nlmsg_pid = 0};
    inet_diag_req_v2& wanted = request.wanted;
    wanted.sdiag_family = family == Family::ipv4 ? AF_INET : AF_INET6;
    wanted.sdiag_protocol = IPPROTO_TCP;
    wanted.idiag_states = ~0U;
    wanted.id.idiag_sport = htons(own.port);
    wanted.id.idiag_dport = htons(peer.port);
    put_address(own.address, family, wanted.id.idiag_src);
    put_address(peer.address, family, wanted.id.idiag_dst);
    wanted.id.idiag_cookie[0] = wanted.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    if (::send(socket_.get(), &request, sizeof request, 0) != sizeof request)
        return false;
    alignas(nlmsghdr) std::array<char, 8192> room{};
    for (;;) {
        const ssize_t got = ::recv(socket_.get(), room.data(), room.size(), 0);
        if (got < static_cast<ssize_t>(sizeof(nlmsghdr)))
            return false;
        nlmsghdr header{};
        std::memcpy(&header, room.data(), sizeof header);
        if (header.nlmsg_seq != sequence_)
            continue;  // what an earlier call did not wait for
        if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            got < static_cast<ssize_t>(NLMSG_HDRLEN + sizeof(inet_diag_msg)))
            return false;
        inet_diag_msg found{};
        std::memcpy(&found, room.data() + NLMSG_HDRLEN, sizeof found);
        // Where there is no such flow, the kernel names the one who listens.
        return (1U << (found.idiag_state & 31) & kAfterHandshake) != 0;
    }
}

}  // namespace sluice
