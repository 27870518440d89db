// The thread that follows another limiter's keys in Redis: it may wait for Redis, which the
// daemon's loop may not. A thread of its own, as a whitelist takes its time, and leases have none
// to wait.
#pragma once

#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "fleet/rl_sync.h"

namespace sluice {

class RlThread {
  public:
    // The drill outlives it.
    RlThread(const std::string& pin_dir, const std::string& state_dir, const RedisDrill& drill);

    void follow(RlMember member) { sync_.follow(std::move(member)); }
    // Readable where the services have other limits; take_news() empties it.
    [[nodiscard]] int news() const { return news_.get(); }
    void take_news();
    [[nodiscard]] RlStanding standing() const { return sync_.standing(); }

  private:
    UniqueFd news_;
    RlSync sync_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice
