// Real Redis servers for tests: on loopback, in folders of their own, ended with the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "redis/command.h"
#include "redis/reply.h"
#include "temp_folder.h"

namespace sluice::lab {

using namespace std::chrono_literals;

// Of loopback; so is the one 10,000 above, which a node of a cluster takes as well.
uint16_t free_port();

// Whether it became true in time.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds patience = std::chrono::seconds(30));

// Runs a program to its end; what it wrote to stdout and stderr where it failed.
Status run_program(const std::vector<std::string>& words);

class RedisServer {
  public:
    // Lines as in redis.conf, beside port, folder and socket. Sentinels are `is_sentinel`.
    explicit RedisServer(std::vector<std::string> settings = {}, bool is_sentinel = false);
    RedisServer(const RedisServer&) = delete;
    RedisServer& operator=(const RedisServer&) = delete;
    ~RedisServer() { kill(); }

    // Where there is no such program here, why; empty otherwise.
    static std::string missing();

    // Starts it again, with the same port, folder and data.
    void start();
    void stop();  // orderly: data is saved where that is configured
    void kill();
    void pause();  // it keeps its connections, and says nothing
    void resume();

    // As the user `default`, on a connection of its own. An error reply where it is not there.
    [[nodiscard]] redis::Reply ask(const redis::Command& command) const;

    [[nodiscard]] uint16_t port() const { return port_; }
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::string url() const { return "redis://" + address(); }
    [[nodiscard]] std::string socket() const { return folder_.path() + "/redis.sock"; }
    [[nodiscard]] const TempFolder& folder() const { return folder_; }
    [[nodiscard]] std::string log() const;

  private:
    void write_config();
    void launch();
    [[nodiscard]] bool has_ended();
    [[nodiscard]] bool answers() const;

    std::vector<std::string> settings_;
    bool is_sentinel_;
    TempFolder folder_;
    uint16_t port_ = 0;
    pid_t pid_ = 0;
};

}  // namespace sluice::lab
