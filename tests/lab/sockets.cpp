#include "sockets.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace sluice::lab {

namespace {

constexpr timeval kPatience = {5, 0};

sockaddr_in address_of(std::string_view text, uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, std::string(text).c_str(), &address.sin_addr);
    return address;
}

const sockaddr* generic(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

UniqueFd make_socket(int type) {
    UniqueFd socket(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    if (type == SOCK_DGRAM) {
        ::setsockopt(socket.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof(on));
        // On older kernels a small datagram takes a page of it when it came by a veth's XDP.
        const int room = 4 << 20;
        ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room));
    }
    return socket;
}

UniqueFd bound(int type, uint16_t port) {
    UniqueFd socket = make_socket(type);
    const sockaddr_in any = address_of("0.0.0.0", port);
    if (::bind(socket.get(), generic(any), sizeof(any)) != 0)
        return {};
    return socket;
}

UniqueFd connected(int type, std::string_view address, uint16_t port) {
    UniqueFd socket = make_socket(type);
    const sockaddr_in peer = address_of(address, port);
    if (::connect(socket.get(), generic(peer), sizeof(peer)) != 0)
        return {};
    return socket;
}

uint64_t ns_of(const timespec& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t now_ns(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return ns_of(time);
}

bool is_readable(const UniqueFd& socket, std::chrono::milliseconds timeout) {
    pollfd wait{.fd = socket.get(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, static_cast<int>(timeout.count())) == 1;
}

}  // namespace

UniqueFd listen_tcp(uint16_t port) {
    UniqueFd socket = bound(SOCK_STREAM, port);
    ::listen(socket.get(), 8);
    return socket;
}

UniqueFd bind_udp(uint16_t port) {
    return bound(SOCK_DGRAM, port);
}

uint16_t port_of(const UniqueFd& socket) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    return ntohs(address.sin_port);
}

UniqueFd connect_tcp(std::string_view address, uint16_t port) {
    return connected(SOCK_STREAM, address, port);
}

UniqueFd accept_tcp(const UniqueFd& listener) {
    UniqueFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof(kPatience));
    return socket;
}

UniqueFd connect_udp(std::string_view address, uint16_t port) {
    return connected(SOCK_DGRAM, address, port);
}

std::optional<std::chrono::duration<double>> transfer(const UniqueFd& from, const UniqueFd& to,
                                                      uint64_t bytes) {
    const auto begun = std::chrono::steady_clock::now();
    std::thread sender([&] {
        const std::vector<char> block(1U << 16, 's');
        for (uint64_t left = bytes; left != 0;) {
            const ssize_t sent = ::send(from.get(), block.data(),
                                        std::min<uint64_t>(left, block.size()), MSG_NOSIGNAL);
            if (sent <= 0)
                return;
            left -= static_cast<uint64_t>(sent);
        }
    });
    std::vector<char> block(1U << 16);
    uint64_t got = 0;
    while (got < bytes) {
        const ssize_t some = ::recv(to.get(), block.data(), block.size(), 0);
        if (some <= 0)
            break;
        got += static_cast<uint64_t>(some);
    }
    sender.join();
    if (got < bytes)
        return std::nullopt;
    return std::chrono::steady_clock::now() - begun;
}

void send_datagrams(const UniqueFd& from, std::string_view address, uint16_t port, unsigned count,
                    size_t size) {
    const std::string data(size, 's');
    const sockaddr_in to = address_of(address, port);
    for (unsigned i = 0; i < count; i++)
        ::sendto(from.get(), data.data(), data.size(), 0, generic(to), sizeof(to));
}

Sent sent(const UniqueFd& socket) {
    tcp_info info{};
    socklen_t size = sizeof(info);
    ::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &info, &size);
    return {info.tcpi_data_segs_out, info.tcpi_bytes_sent};
}

std::optional<uint64_t> arrival(const UniqueFd& socket, std::chrono::milliseconds timeout) {
    if (!is_readable(socket, timeout))
        return std::nullopt;
    char data[64], control[256];
    iovec part{.iov_base = data, .iov_len = sizeof(data)};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (::recvmsg(socket.get(), &message, 0) < 0)
        return std::nullopt;
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
            continue;
        timespec stamp{};
        std::memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
        return ns_of(stamp) - (now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
    }
    return std::nullopt;
}

uint64_t take_all(const UniqueFd& socket) {
    uint64_t count = 0;
    while (arrival(socket, std::chrono::milliseconds(100)))
        count++;
    return count;
}

}  // namespace sluice::lab
