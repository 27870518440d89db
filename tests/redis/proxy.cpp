#include "proxy.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

#include "redis_server.h"

namespace sluice::lab {

namespace {

constexpr int kTickMs = 1;

sockaddr_in loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

UniqueFd listen_at(uint16_t port) {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    EXPECT_EQ(::listen(socket.get(), SOMAXCONN), 0);
    return socket;
}

}  // namespace

Proxy::Proxy(uint16_t target)
    : target_(target),
      port_(free_port()),
      listener_(listen_at(port_)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Proxy::serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        pollfd incoming{listener_.get(), POLLIN, 0};
        if (::poll(&incoming, 1, kTickMs) > 0)
            accept_one();
        if (is_cut_)
            continue;
        for (Pair& pair : pairs_) {
            carry(pair, pair.client, pair.server);
            carry(pair, pair.server, pair.client);
        }
        std::erase_if(pairs_, [](const Pair& pair) { return pair.is_over; });
    }
}

void Proxy::accept_one() {
    UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(target_);
    if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
        pairs_.push_back({{std::move(client), {}}, {std::move(server), {}}, false});
}

void Proxy::carry(Pair& pair, Side& from, Side& to) const {
    std::array<char, 65'536> bytes;
    const ssize_t got = ::recv(from.socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got > 0)
        to.to_send.push_back(
            {Clock::now() + delay_.load(), std::string(bytes.data(), static_cast<size_t>(got))});
    pair.is_over = pair.is_over || got == 0 || (got < 0 && errno != EAGAIN);
    while (!to.to_send.empty() && to.to_send.front().due <= Clock::now()) {
        const std::string& chunk = to.to_send.front().bytes;
        // Nothing here is larger than the buffer of a socket.
        if (::send(to.socket.get(), chunk.data(), chunk.size(), MSG_NOSIGNAL) < 0)
            pair.is_over = true;
        to.to_send.pop_front();
    }
}

}  // namespace sluice::lab
