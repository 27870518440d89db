// The thread that follows the fleet's change feed: it may wait for Redis and for the lock of the
// tables, which neither the daemon's loop may, nor the thread that leases budgets.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "fleet/feed_sync.h"

namespace sluice {

class FeedThread {
  public:
    FeedThread(const std::string& pin_dir, const std::string& state_dir, const RedisDrill& drill);

    [[nodiscard]] FeedStanding standing() const { return sync_.standing(); }
    // Compares with Redis at the next step, whatever is due.
    void compare_soon() { compare_soon_ = true; }

  private:
    FeedSync sync_;
    std::atomic<bool> compare_soon_ = false;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice
