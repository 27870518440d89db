#include "redis/socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "redis/resolve.h"

namespace sluice::redis {

namespace {

constexpr std::string_view kSlow =
    "look why it is slow (redis-cli --latency, SLOWLOG GET), or raise command_timeout";

constexpr std::string_view kNobody =
    "is it running there, do packet filters let this host pass, may this user open its socket?";

Error lost(int error_number, std::string_view operation, std::string_view hint = {}) {
    Error error = from_errno(error_number, operation, std::string(hint));
    // A Unix socket that the user may not open is no matter of reaching.
    if (error.code != ErrorCode::not_permitted)
        error.code = ErrorCode::unreachable;
    return error;
}

// Whether the socket is ready for `events` (or broken, which the next call finds out) in time.
Result<bool> wait_for(const UniqueFd& fd, short events, Deadline deadline) {
    for (;;) {
        const auto left = std::max(deadline - Clock::now(), Clock::duration::zero());
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        const timespec timeout{seconds.count(), (left - seconds).count()};
        pollfd wanted{.fd = fd.get(), .events = events, .revents = 0};
        const int ready = ::ppoll(&wanted, 1, &timeout, nullptr);
        if (ready >= 0)
            return ready == 1;
        if (errno != EINTR)
            return lost(errno, "wait");
    }
}

Status finish_connect(const UniqueFd& fd, Deadline deadline) {
    const auto ready = wait_for(fd, POLLOUT, deadline);
    if (!ready)
        return ready.error();
    if (!*ready)
        return make_error(ErrorCode::unreachable, "connect: no answer in time",
                          std::string(kNobody));
    int failure = 0;
    socklen_t size = sizeof(failure);
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failure, &size);
    if (failure != 0)
        return lost(failure, "connect", kNobody);
    return {};
}

Result<UniqueFd> connect_to(const SocketAddress& address, Deadline deadline) {
    const int family = address.storage.ss_family;
    UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd)
        return from_errno(errno, "make a socket");
    if (family != AF_UNIX) {
        const int on = 1;
        ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    if (::connect(fd.get(), address.generic(), address.size) == 0)
        return fd;
    // EAGAIN: the queue of a Unix socket is full; it can't be waited for.
    if (errno != EINPROGRESS)
        return lost(errno, "connect", kNobody);
    if (const Status connected = finish_connect(fd, deadline); !connected)
        return connected.error();
    return fd;
}

}  // namespace

Result<Socket> Socket::connect(const Endpoint& endpoint, Deadline deadline) {
    const auto addresses = resolve(endpoint, deadline);
    if (!addresses)
        return addresses.error();
    Error last;
    for (size_t left = addresses->size(); left > 0; left--) {
        auto fd = connect_to((*addresses)[addresses->size() - left], share_of(deadline, left));
        if (fd)
            return Socket(*std::move(fd));
        last = fd.error();
    }
    return last;
}

Status Socket::send(std::string_view bytes, Deadline deadline) {
    while (!bytes.empty()) {
        const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<size_t>(sent));
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return lost(errno, "send");
        const auto ready = wait_for(fd_, POLLOUT, deadline);
        if (!ready)
            return ready.error();
        if (!*ready)
            return make_error(ErrorCode::unreachable, "send: not taken in time",
                              std::string(kSlow));
    }
    return {};
}

Result<size_t> Socket::receive(std::span<char> room, Deadline deadline) {
    for (;;) {
        const ssize_t got = ::recv(fd_.get(), room.data(), room.size(), 0);
        if (got > 0)
            return static_cast<size_t>(got);
        if (got == 0)
            return make_error(ErrorCode::unreachable, "the server closed the connection",
                              "see its log");
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return lost(errno, "receive");
        const auto ready = wait_for(fd_, POLLIN, deadline);
        if (!ready)
            return ready.error();
        if (!*ready)
            return size_t{0};
    }
}

}  // namespace sluice::redis
