// The fleet as Redis has it: its hosts, and who has what of the shared budgets. For people.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/heartbeat.h"
#include "fleet/lease_message.h"
#include "redis/redis.h"

namespace sluice {

// A screen of hosts, many times over; a larger fleet is shown in part, and that is said.
inline constexpr size_t kMostHostsShown = 256;
// Leases of one shard, likewise.
inline constexpr size_t kMostLeasesShown = 4096;
// What decisions about the whole fleet look at: as many as the largest fleet that is measured has.
inline constexpr size_t kMostHostsCompared = 5000;

struct HostView {
    Heartbeat last;
    std::chrono::milliseconds age{0};  // since it was heard of

    [[nodiscard]] bool is_away() const { return age > kAwayAfter; }
};

// What one host has of one budget.
struct LeaseView {
    std::string host;  // its id
    LeasePool pool = LeasePool::enforce;
    double demand = 0;   // a second, as the script counts it: at least the floor
    double granted = 0;  // a second; units where tokens are counted
    bool is_tokens = false;
    std::chrono::milliseconds age{0};   // since the host called
    std::chrono::milliseconds left{0};  // until it ends, by Redis's count
};

struct BudgetView {
    std::string name;       // "<service>.<dimension>"
    double per_second = 0;  // of the whole fleet
    std::vector<LeaseView> leases;
};

struct FleetView {
    std::vector<HostView> hosts;  // heard of last first
    size_t hosts_in_all = 0;
    std::vector<BudgetView> budgets;
    bool is_cut = false;  // there are more leases than are shown
};

// Of the shards that are named. One exchange with Redis.
Result<FleetView> read_fleet_view(Redis& redis, std::string_view fleet,
                                  const std::vector<unsigned>& shards);

// Its hosts alone, kMostHostsCompared of them: in two exchanges, of which each call of Redis is
// short.
Result<FleetView> read_all_hosts(Redis& redis, std::string_view fleet);

}  // namespace sluice
