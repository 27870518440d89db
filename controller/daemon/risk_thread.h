// The thread that bans by scores: it may wait for Redis and for the lock of the tables, which the
// daemon's loop may not.
#pragma once

#include <string>
#include <thread>

#include "risk/risk_desk.h"

namespace sluice {

class RiskThread {
  public:
    // The drill outlives it.
    RiskThread(const std::string& pin_dir, const std::string& state_dir, const RedisDrill& drill);

    [[nodiscard]] RiskDesk& desk() { return desk_; }

  private:
    RiskDesk desk_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice
