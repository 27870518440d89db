// The thread that follows the fleet's policy: it may wait for Redis, which the daemon's loop may
// not. A thread of its own, as the feed's may spend seconds on bans, and that of the leases has
// no time for a policy's text.
#pragma once

#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "fleet/policy_sync.h"

namespace sluice {

class PolicyThread {
  public:
    // The drill outlives it.
    PolicyThread(const std::string& state_dir, const RedisDrill& drill);

    void follow(FleetMember member) { sync_.follow(std::move(member)); }
    // Readable where there is an offer; take_offer() empties it.
    [[nodiscard]] int offers() const { return offers_.get(); }
    std::optional<FleetVersion> take_offer();
    void answered(const Status& status) { sync_.answered(status); }
    [[nodiscard]] PolicyStanding standing() const { return sync_.standing(); }

  private:
    UniqueFd offers_;
    PolicySync sync_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice
