#include "fake_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

namespace sluice::lab {

FakeServer::FakeServer(std::string answer, size_t piece, std::chrono::milliseconds pause)
    : answer_(std::move(answer)),
      piece_(piece),
      pause_(pause),
      listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
}

FakeServer::~FakeServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
}

void FakeServer::serve() {
    std::vector<UniqueFd> peers;  // they stay open
    for (;;) {
        UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!peer)
            return;
        say(peer.get());
        peers.push_back(std::move(peer));
    }
}

void FakeServer::say(int peer) const {
    for (size_t at = 0; at < answer_.size();) {
        const std::string part = answer_.substr(at, piece_);
        if (::send(peer, part.data(), part.size(), MSG_NOSIGNAL) < 0)
            return;
        at += part.size();
        if (at < answer_.size())
            std::this_thread::sleep_for(pause_);
    }
}

}  // namespace sluice::lab
