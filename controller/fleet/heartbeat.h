// That a host lives, and what it says of itself: kept in Redis for whoever looks at the fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis/command.h"

namespace sluice {

// How often a host is heard of. At 5,000 hosts the calls take 3 % of a core of Redis.
inline constexpr std::chrono::seconds kHeartbeatPeriod(2);
// Who missed so many in a row is shown as away.
inline constexpr std::chrono::seconds kAwayAfter = 5 * kHeartbeatPeriod;

// What a host's limits hold back, lately; or would, where it observes.
struct CutRate {
    double packets = 0;   // a second, whatever became of them
    double cut = 0;       // of them, held back by limits
    double sources = 0;   // whose packets these were, as far as samples show
    double heaviest = 0;  // 0 to 1: the part of them that the ten heaviest sources have
};

struct Heartbeat {
    std::string id;               // 128 bits in hex
    std::string name;             // what its machine is called; two may be called alike
    std::string version;          // of Sluice
    std::string mode;             // "observe", "enforce", "off"
    uint64_t policy_version = 0;  // counts the policies of its gate
    uint64_t fleet_version = 0;   // of the fleet's policy, in force there; 0: its own file
    bool is_canary = false;
    uint64_t refused_version = 0;      // that it is to have and can't; 0: none
    std::string refusal{};             // why
    std::optional<CutRate> cut{};      // while there is a canary to be compared
    std::chrono::microseconds lag{0};  // what Redis takes to answer it
};

// All keys lie in one slot of a cluster.
struct HostKeys {
    explicit HostKeys(std::string_view fleet);

    std::string seen;
    std::string words;
};

redis::Command heartbeat_command(const HostKeys& keys, const Heartbeat& heartbeat);

// The words of a heartbeat, read back. What is missing stays empty, and what is unknown, as of a
// later version, is passed over.
Heartbeat parse_heartbeat(std::string_view id, std::string_view words);

}  // namespace sluice
