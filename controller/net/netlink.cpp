#include "net/netlink.h"

#include <linux/genetlink.h>
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

struct FamilyRequest {
    nlmsghdr header;
    genlmsghdr family;
};

// Visits one datagram's messages; true when that was all.
Result<bool> visit_datagram(Bytes datagram, const std::function<void(Bytes)>& visit) {
    while (datagram.size() >= NLMSG_HDRLEN) {
        const auto header = read_as<nlmsghdr>(datagram);
        if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > datagram.size())
            return failed("the kernel sent a malformed netlink message");
        const Bytes payload = datagram.subspan(NLMSG_HDRLEN, header.nlmsg_len - NLMSG_HDRLEN);
        if (header.nlmsg_type == NLMSG_DONE)
            return true;
        if (header.nlmsg_type == NLMSG_ERROR) {
            const int error = read_as<nlmsgerr>(payload).error;
            // None: that all was said.
            return error == 0 ? Result<bool>(true) : from_errno(error, "netlink");
        }
        visit(payload);
        datagram =
            datagram.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), datagram.size()));
    }
    return false;
}

// Sends one request, and visits what is said to it.
Status exchange(int protocol, Bytes request, const std::function<void(Bytes)>& visit) {
    const UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol));
    if (!socket)
        return from_errno(errno, "open a netlink socket");
    if (::send(socket.get(), request.data(), request.size(), 0) < 0)
        return from_errno(errno, "ask the kernel over netlink");
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

Status ask_number(uint16_t family, uint8_t command, Ask ask, Bytes attributes,
                  const std::function<void(Bytes)>& visit) {
    FamilyRequest head{};
    head.header.nlmsg_len = static_cast<uint32_t>(sizeof head + attributes.size());
    head.header.nlmsg_type = family;
    head.header.nlmsg_flags =
        static_cast<uint16_t>(NLM_F_REQUEST | (ask == Ask::dump ? NLM_F_DUMP : NLM_F_ACK));
    head.family.cmd = command;
    head.family.version = 1;
    const Bytes start = std::as_bytes(std::span(&head, 1));
    std::vector<std::byte> request(start.begin(), start.end());
    request.insert(request.end(), attributes.begin(), attributes.end());
    return exchange(NETLINK_GENERIC, request, [&](Bytes payload) {
        visit(payload.subspan(std::min<size_t>(payload.size(), GENL_HDRLEN)));
    });
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

uint64_t read_number(Bytes bytes) {
    return bytes.size() >= sizeof(uint64_t)   ? read_as<uint64_t>(bytes)
           : bytes.size() == sizeof(uint32_t) ? read_as<uint32_t>(bytes)
           : bytes.size() == sizeof(uint16_t) ? read_as<uint16_t>(bytes)
                                              : read_as<uint8_t>(bytes);
}

Status dump(uint16_t request_type, uint8_t family, const std::function<void(Bytes)>& visit) {
    Request request{};
    const bool links = request_type == RTM_GETLINK;
    const size_t body = links ? sizeof request.link : sizeof request.route;
    request.header.nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(body));
    request.header.nlmsg_type = request_type;
    request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    if (links)
        request.link.ifi_family = family;
    else
        request.route.rtm_family = family;
    return exchange(NETLINK_ROUTE,
                    std::as_bytes(std::span(&request, 1)).first(request.header.nlmsg_len), visit);
}

std::vector<std::byte> attribute(uint16_t type, Bytes value) {
    const rtattr header{static_cast<uint16_t>(RTA_LENGTH(value.size())), type};
    const Bytes start = std::as_bytes(std::span(&header, 1));
    std::vector<std::byte> bytes(start.begin(), start.end());
    bytes.insert(bytes.end(), value.begin(), value.end());
    bytes.resize(RTA_SPACE(value.size()));
    return bytes;
}

Status ask_family(const std::string& family, uint8_t command, Ask ask, Bytes attributes,
                  const std::function<void(Bytes)>& visit) {
    uint16_t number = 0;
    const auto name = std::as_bytes(std::span(family.c_str(), family.size() + 1));
    const Status found =
        ask_number(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, Ask::one,
                   attribute(CTRL_ATTR_FAMILY_NAME, name), [&](Bytes answer) {
                       const auto known = parse_attributes(answer);
                       if (const auto id = known.find(CTRL_ATTR_FAMILY_ID); id != known.end())
                           number = read_as<uint16_t>(id->second);
                   });
    return found ? ask_number(number, command, ask, attributes, visit) : found;
}

}  // namespace sluice
