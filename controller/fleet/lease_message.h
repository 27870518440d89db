// One call to lease.lua and its answer, and the setting of budgets by budget.lua.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"
#include "redis/command.h"
#include "redis/script.h"

namespace sluice {

// Budgets are spread over so many keys, so that a call carries many of them and a cluster's nodes
// share the work.
inline constexpr unsigned kLeaseShards = 16;

// Which of them a service's budgets are in; the same on every host and in every version.
unsigned lease_shard(std::string_view service);

// As a budget is called in Redis: "<service>.<dimension>".
std::string budget_name(std::string_view service, Dimension dimension);

// Both keys of a shard lie in one slot of a cluster.
struct LeaseKeys {
    LeaseKeys(std::string_view fleet, unsigned shard);

    std::string state;
    std::string expiries;
};

// Hosts that only observe ask for shares too, to know what they would drop. They take nothing from
// those that enforce.
enum class LeasePool : uint8_t { enforce, observe };

struct LeaseDemand {
    std::string budget;  // "<service>.<dimension>"
    double per_second = 0;
    double claim = 0;   // what is in use: a rate, or tokens that are left
    bool idle = false;  // nothing was asked for lately: a long lease of little will do
};

struct LeaseRequest {
    LeasePool pool = LeasePool::enforce;
    std::string host;             // 128 bits in hex
    uint64_t seq = 0;             // higher than that of any call before
    uint64_t acked_seq = 0;       // the last call whose answer was taken; 0: none
    uint64_t since_acked_ms = 0;  // between sending that call and sending this one
    std::chrono::milliseconds period{200};
    uint64_t round_cost_us = 0;  // Redis's time for all of the host's calls in one period
    std::chrono::milliseconds longest_lease{0};  // that this host has heard of
    std::vector<LeaseDemand> demands;
};

struct LeaseGrant {
    bool saturated = false;  // there is no more to be had: asking sooner gains nothing
    bool tokens = false;     // `grant` is a number of units, to be added once; else a rate
    bool unknown = false;    // nobody has set this budget in Redis: the rest is 0
    bool awaited = false;    // less than before, and others wait to hear that it is in force
    double grant = 0;
    double burst = 0;   // units that the bucket holds
    double budget = 0;  // of the whole fleet, a second
};

enum class LeaseStatus : uint8_t {
    ok,
    learning,   // Redis lost its state: it confirms what is claimed, and gives nothing new
    duplicate,  // another host has the same identity
};

struct LeaseReply {
    LeaseStatus status = LeaseStatus::ok;
    std::chrono::milliseconds renew_in{0};  // from the sending of the call
    std::chrono::milliseconds length{0};    // of a lease, from the sending of the call
    std::chrono::milliseconds idle_length{0};
    std::chrono::milliseconds longest_lease{0};
    uint32_t hosts = 0;              // in this shard, before this call
    std::vector<LeaseGrant> grants;  // one for each demand, in their order
};

// A budget as Redis keeps it.
struct FleetBudget {
    std::string name;       // "<service>.<dimension>"
    double per_second = 0;  // 0: no longer shared
    double burst = 0;
    double unit = 1;  // the smallest grant that lets anything through

    friend bool operator==(const FleetBudget&, const FleetBudget&) = default;
};

const redis::Script& lease_script();
const redis::Script& budget_script();

redis::Command lease_command(const redis::Script& script, const LeaseKeys& keys,
                             const LeaseRequest& request);
// About what a call of so many rows takes Redis (bench/fleet_sim). Answers set the pace by it.
constexpr std::chrono::microseconds lease_cost(size_t rows) {
    return std::chrono::microseconds(22 + 5 * rows / 2);
}
// An error where it is no answer to `request`.
Result<LeaseReply> parse_lease_reply(std::string_view reply, const LeaseRequest& request);

// Budgets of one shard from a policy's version, at a time of Redis's clock; zero is at once.
redis::Command budget_command(const redis::Script& script, const LeaseKeys& keys, uint64_t version,
                              std::chrono::milliseconds at, std::span<const FleetBudget> budgets);

}  // namespace sluice
