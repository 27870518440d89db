// A TCP proxy in front of a server of loopback, which makes the way to it slow or dead.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace sluice::lab {

class Proxy {
  public:
    explicit Proxy(uint16_t target);
    Proxy(const Proxy&) = delete;
    Proxy& operator=(const Proxy&) = delete;

    [[nodiscard]] uint16_t port() const { return port_; }
    [[nodiscard]] std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

    // What comes from now on arrives so much later, in each direction.
    void delay(std::chrono::milliseconds time) { delay_ = time; }
    // Nothing arrives any more, and no connection is closed: as when a cable is cut.
    void cut(bool is_cut) { is_cut_ = is_cut; }

  private:
    using Clock = std::chrono::steady_clock;
    struct Chunk {
        Clock::time_point due;
        std::string bytes;
    };
    struct Side {
        UniqueFd socket;
        std::deque<Chunk> to_send;
    };
    struct Pair {
        Side client, server;
        bool is_over = false;
    };

    void serve(const std::stop_token& stop);
    void accept_one();
    void carry(Pair& pair, Side& from, Side& to) const;

    uint16_t target_;
    uint16_t port_;
    UniqueFd listener_;
    std::atomic<std::chrono::milliseconds> delay_{std::chrono::milliseconds(0)};
    std::atomic<bool> is_cut_ = false;
    std::vector<Pair> pairs_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice::lab
