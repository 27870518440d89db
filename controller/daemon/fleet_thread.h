// The thread that leases shared budgets: it may wait for Redis, which the daemon's loop may not.
#pragma once

#include <string>
#include <thread>

#include "fleet/budget_sync.h"

namespace sluice {

class FleetThread {
  public:
    explicit FleetThread(const std::string& pin_dir);

    [[nodiscard]] FleetStanding standing() const { return sync_.standing(); }
    // As that of BudgetSync.
    [[nodiscard]] std::optional<Result<FleetView>> view() { return sync_.view(); }
    void report_refusal(uint64_t version, std::string why) {
        sync_.report_refusal(version, std::move(why));
    }
    void report_cut(const std::optional<CutRate>& cut) { sync_.report_cut(cut); }
    // As that of BudgetSync.
    void saw(const IpAddress& source, uint32_t service_id) { sync_.saw(source, service_id); }
    [[nodiscard]] RedisDrill& drill() { return drill_; }

  private:
    RedisDrill drill_;
    BudgetSync sync_;
    std::jthread thread_;  // the last member: it ends before what it uses
};

}  // namespace sluice
