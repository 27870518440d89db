// A cluster of three masters and three replicas.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "redis_server.h"

namespace sluice::lab {

class ServerCluster {
  public:
    static constexpr size_t kNodes = 6;

    // Takes seconds; the test fails where it can't be made.
    ServerCluster();

    // Some of the nodes are enough; the others are found.
    [[nodiscard]] std::string url() const;
    [[nodiscard]] RedisServer& node(size_t index) { return *nodes_[index]; }
    // The master of the slot of a key, by what it says itself.
    [[nodiscard]] RedisServer& master_of(const std::string& key);
    [[nodiscard]] RedisServer& other_master(const RedisServer& than);

    // A slot moves in three steps: it is announced, its keys go, and then the slot itself.
    static void announce_move(const std::string& slot, RedisServer& from, RedisServer& to);
    static void move_key(const std::string& key, RedisServer& from, RedisServer& to);
    static void finish_move(const std::string& slot, RedisServer& from, RedisServer& to);

  private:
    void make();

    std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace sluice::lab
