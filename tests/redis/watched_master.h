// One master, one replica, and three sentinels of which two have to agree; the master is called
// "shop".
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "redis_server.h"

namespace sluice::lab {

class WatchedMaster {
  public:
    explicit WatchedMaster(const std::vector<std::string>& of_sentinels = {},
                           const std::vector<std::string>& of_the_master = {});

    // Each sentinel knows the replica and the two others, or no failover can be agreed on.
    void wait_until_they_know_each_other();
    // Whether it names what has been the replica.
    [[nodiscard]] bool knows_the_new_one(const RedisServer& sentinel) const;
    [[nodiscard]] std::string url() const;

    [[nodiscard]] RedisServer& master() { return *master_; }
    [[nodiscard]] RedisServer& replica() { return *replica_; }
    [[nodiscard]] RedisServer& sentinel(size_t index) { return *sentinels_[index]; }

  private:
    std::unique_ptr<RedisServer> master_, replica_;
    std::vector<std::unique_ptr<RedisServer>> sentinels_;
};

}  // namespace sluice::lab
