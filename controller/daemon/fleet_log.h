// What operators want to find in the log of a fleet: not every lost call, but where something
// begins and ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "fleet/budget_sync.h"
#include "fleet/feed_sync.h"
#include "fleet/policy_sync.h"
#include "fleet/rl_sync.h"
#include "risk/risk_desk.h"

namespace sluice {

// For one thread that asks Redis: tell() compares with what it told last.
class FleetLog {
  public:
    // What the thread is there for: "the fleet's feed".
    explicit FleetLog(std::string what) : what_(std::move(what)) {}

    void tell(const FeedStanding& standing);
    void tell(const FleetStanding& standing);
    void tell(const PolicyStanding& standing);
    void tell(const RlStanding& standing);
    void tell(const SourcesStanding& standing) { tell_error(standing.error); }
    void tell(const RiskStanding& standing);

  private:
    void tell_error(const std::string& error);

    std::string what_;
    std::string error_, refusal_, unsaved_, stop_;
    size_t lost_ = 0;
    uint64_t refused_ = 0, duplicates_ = 0;
    bool is_lost_ = false, is_older_ = false, leads_ = false;
    std::set<std::string> refusals_;  // of keys of another limiter
};

}  // namespace sluice
