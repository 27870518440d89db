#include "net/netlink.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/unique_fd.h"

namespace sluice {

namespace {

// The kernel never sends a dump's datagram larger than this.
constexpr size_t kDatagramBytes = 64 * 1024;

struct Request {
    nlmsghdr header;
    union {
        ifinfomsg link;
        rtmsg route;
    };
};

Status send_request(int socket, uint16_t type, uint8_t family) {
    Request request{};
    const bool links = type == RTM_GETLINK;
    const size_t body = links ? sizeof request.link : sizeof request.route;
    request.header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(body));
    request.header.nlmsg_type = type;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    if (links)
        request.link.ifi_family = family;
    else
        request.route.rtm_family = family;
    if (::send(socket, &request, request.header.nlmsg_len, 0) < 0)
        return from_errno(errno, "ask the kernel over netlink");
    return {};
}

// Visits one datagram's messages; true when the dump is over.
Result<bool> visit_datagram(Bytes datagram, const std::function<void(Bytes)>& visit) {
    while (datagram.size() >= NLMSG_HDRLEN) {
        const auto header = read_as<nlmsghdr>(datagram);
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size())
            return failed("the kernel sent a malformed netlink message");
        const Bytes payload = datagram.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
        if (header.nlmsg_type == NLMSG_DONE)
            return true;
        if (header.nlmsg_type == NLMSG_ERROR)
            return from_errno(read_as<nlmsgerr>(payload).error, "netlink dump");
        visit(payload);
        datagram =
            datagram.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
    }
    return false;
}

}  // namespace

std::map<uint16_t, Bytes> parse_attributes(Bytes bytes) {
    std::map<uint16_t, Bytes> attributes;
    while (bytes.size() >= sizeof(rtattr)) {
        const auto header = read_as<rtattr>(bytes);
        if (header.rta_len < sizeof(rtattr) || header.rta_len > bytes.size())
            break;
        attributes[header.rta_type & NLA_TYPE_MASK] =
            bytes.subspan(sizeof(rtattr), header.rta_len - sizeof(rtattr));
        bytes = bytes.subspan(std::min<size_t>(RTA_ALIGN(header.rta_len), bytes.size()));
    }
    return attributes;
}

Status dump(uint16_t request_type, uint8_t family, const std::function<void(Bytes)>& visit) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (!socket)
        return from_errno(errno, "open a netlink socket");
    if (auto sent = send_request(socket.get(), request_type, family); !sent)
        return sent;
    std::vector<std::byte> buffer(kDatagramBytes);
    for (;;) {
        const ssize_t got = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return from_errno(errno, "read from netlink");
        const auto done = visit_datagram(Bytes(buffer).first(static_cast<size_t>(got)), visit);
        if (!done)
            return done.error();
        if (*done)
            return {};
    }
}

}  // namespace sluice
