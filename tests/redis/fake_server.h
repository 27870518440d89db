// What listens where Redis should, and is none.
#pragma once

#include <chrono>
#include <string>
#include <thread>

#include "base/unique_fd.h"

namespace sluice::lab {

// Says `answer` to each that connects, so many bytes at once with a pause between, and then
// nothing more.
class FakeServer {
  public:
    explicit FakeServer(std::string answer, size_t piece = std::string::npos,
                        std::chrono::milliseconds pause = {});
    FakeServer(const FakeServer&) = delete;
    FakeServer& operator=(const FakeServer&) = delete;
    ~FakeServer();

    [[nodiscard]] uint16_t port() const { return port_; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  private:
    void serve();
    void say(int peer) const;

    std::string answer_;
    size_t piece_;
    std::chrono::milliseconds pause_;
    UniqueFd listener_;
    uint16_t port_ = 0;
    std::thread thread_;
};

}  // namespace sluice::lab
