#include "visitor.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <numeric>

namespace sluice::lab {
namespace {

// After a failed page a visitor in a hurry takes a breath instead of spinning.
constexpr auto kPauseAfterFailure = std::chrono::milliseconds(100);
constexpr size_t kMaxHeader = 16 * 1024;

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t size = 0;

    SocketAddress(const IpAddress& address, uint16_t port) {
        if (address.family() == Family::ipv4) {
            sockaddr_in in{};
            in.sin_family = AF_INET;
            in.sin_port = htons(port);
            in.sin_addr.s_addr = htonl(address.ipv4_host_order());
            size = sizeof(in);
            std::memcpy(&storage, &in, sizeof(in));
        } else {
            sockaddr_in6 in{};
            in.sin6_family = AF_INET6;
            in.sin6_port = htons(port);
            std::memcpy(&in.sin6_addr, address.bytes().data(), sizeof(in.sin6_addr));
            size = sizeof(in);
            std::memcpy(&storage, &in, sizeof(in));
        }
    }
    [[nodiscard]] const sockaddr* get() const {
        return reinterpret_cast<const sockaddr*>(&storage);
    }
};

void set_option(const UniqueFd& socket, int level, int option) {
    const int on = 1;
    ::setsockopt(socket.get(), level, option, &on, sizeof(on));
}

}  // namespace

std::string_view failure_name(Failure failure) {
    switch (failure) {
        case Failure::connect:
            return "connect";
        case Failure::timeout:
            return "timeout";
        case Failure::reset:
            return "reset";
        case Failure::status:
            return "status";
        case Failure::protocol:
            return "protocol";
    }
    return "unknown";
}

uint64_t Tally::failures() const {
    return std::accumulate(failed.begin(), failed.end(), uint64_t{0});
}

void Tally::add(const Tally& other) {
    ok += other.ok;
    for (size_t i = 0; i < failed.size(); i++)
        failed[i] += other.failed[i];
    latencies_ms.insert(latencies_ms.end(), other.latencies_ms.begin(), other.latencies_ms.end());
}

Visitor::Visitor(const VisitPlan& plan, IpAddress source, IpAddress target,
                 Clock::time_point first_page, Clock::time_point count_from)
    : plan_(plan),
      source_(source),
      target_(target),
      request_("GET " + plan.path + " HTTP/1.1\r\nHost: edge.example\r\nUser-Agent: visitor\r\n" +
               (plan.keep_alive ? "\r\n" : "Connection: close\r\n\r\n")),
      count_from_(count_from),
      next_page_(first_page) {}

void Visitor::on_time(Clock::time_point now, bool closing, int epoll, uint64_t index) {
    if (state_ == State::resting) {
        if (!closing && now >= next_page_)
            start_page(now, epoll, index);
    } else if (now - page_start_ >= plan_.timeout) {
        fail(Failure::timeout, now);
    } else if (retry_) {
        retry_ = false;
        if (!open_connection(epoll, index))
            fail(Failure::connect, now);
    }
}

void Visitor::start_page(Clock::time_point now, int epoll, uint64_t index) {
    page_start_ = now;
    answer_.clear();
    header_size_ = body_size_ = received_ = 0;
    if (socket_) {
        reused_ = true;
        state_ = State::receiving;
        send_request();
    } else if (!open_connection(epoll, index)) {
        state_ = State::connecting;
        fail(Failure::connect, now);
    }
}

bool Visitor::open_connection(int epoll, uint64_t index) {
    reused_ = false;
    state_ = State::connecting;
    const int family = target_.family() == Family::ipv4 ? AF_INET : AF_INET6;
    socket_.reset(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_)
        return false;
    set_option(socket_, IPPROTO_TCP, TCP_NODELAY);
    set_option(socket_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
    // Whole ranges are routed to the lab's world; no interface carries each address.
    if (family == AF_INET)
        set_option(socket_, IPPROTO_IP, IP_FREEBIND);
    else
        set_option(socket_, IPPROTO_IPV6, IPV6_FREEBIND);
    const SocketAddress source(source_, 0);
    const SocketAddress target(target_, plan_.port);
    if (::bind(socket_.get(), source.get(), source.size) != 0)
        return false;
    if (::connect(socket_.get(), target.get(), target.size) != 0 && errno != EINPROGRESS)
        return false;
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = index;
    return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket_.get(), &event) == 0;
}

// A failure to send shows as a failure to receive.
void Visitor::send_request() {
    (void)::send(socket_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
}

void Visitor::on_event(Clock::time_point now) {
    if (!socket_ || retry_)
        return;
    switch (state_) {
        case State::resting: {
            // Nothing is expected here but the server's farewell.
            char byte = 0;
            if (::recv(socket_.get(), &byte, 1, MSG_PEEK) >= 0 || errno != EAGAIN)
                socket_.reset();
            break;
        }
        case State::connecting: {
            int error = 0;
            socklen_t size = sizeof(error);
            ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
            if (error != 0) {
                fail(Failure::connect, now);
                break;
            }
            state_ = State::receiving;
            send_request();
            receive(now);
            break;
        }
        case State::receiving:
            receive(now);
            break;
    }
}

void Visitor::receive(Clock::time_point now) {
    std::array<char, 16 * 1024> buffer;
    for (;;) {
        const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (size < 0 && errno == EAGAIN)
            return;
        if (size <= 0) {
            if (reused_ && received_ == 0) {
                retry_ = true;
                socket_.reset();
            } else {
                fail(Failure::reset, now);
            }
            return;
        }
        received_ += static_cast<size_t>(size);
        if (header_size_ == 0) {
            answer_.append(buffer.data(), static_cast<size_t>(size));
            if (!parse_answer()) {
                fail(Failure::protocol, now);
                return;
            }
        }
        if (header_size_ != 0 && received_ >= header_size_ + body_size_) {
            finish(now);
            return;
        }
    }
}

bool Visitor::parse_answer() {
    const size_t end = answer_.find("\r\n\r\n");
    if (end == std::string::npos)
        return answer_.size() < kMaxHeader;

    const auto number = [this](size_t at, auto& value) {
        const char* begin = answer_.data() + at;
        return std::from_chars(begin, answer_.data() + answer_.size(), value).ec == std::errc();
    };
    constexpr std::string_view kVersion = "HTTP/1.1 ";
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const size_t length = answer_.find(kLength);
    if (!answer_.starts_with(kVersion) || !number(kVersion.size(), status_) || length > end ||
        !number(length + kLength.size(), body_size_))
        return false;
    header_size_ = end + 4;
    server_closes_ = answer_.find("\r\nConnection: close\r\n") < header_size_;
    return true;
}

void Visitor::finish(Clock::time_point now) {
    if (status_ != 200) {
        fail(Failure::status, now);
        return;
    }
    if (page_start_ >= count_from_) {
        tally_.ok++;
        tally_.latencies_ms.push_back(
            std::chrono::duration<float, std::milli>(now - page_start_).count());
    }
    if (server_closes_ || !plan_.keep_alive)
        socket_.reset();
    state_ = State::resting;
    next_page_ = page_start_ + plan_.interval;
}

void Visitor::fail(Failure failure, Clock::time_point now) {
    if (page_start_ >= count_from_)
        tally_.failed[static_cast<size_t>(failure)]++;
    socket_.reset();
    retry_ = false;
    state_ = State::resting;
    next_page_ = std::max(page_start_ + plan_.interval, now + kPauseAfterFailure);
}

}  // namespace sluice::lab
