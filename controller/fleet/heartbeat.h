// That a host lives, and what it says of itself: kept in Redis for whoever looks at the fleet.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis/command.h"

namespace sluice {

// How often a host is heard of. At 5,000 hosts the calls take 3 % of a core of Redis.
inline constexpr std::chrono::seconds kHeartbeatPeriod(2);
// Who missed so many in a row is shown as away.
inline constexpr std::chrono::seconds kAwayAfter = 5 * kHeartbeatPeriod;

struct Heartbeat {
    std::string id;       // 128 bits in hex
    std::string name;     // what its machine is called; two may be called alike
    std::string version;  // of Sluice
    std::string mode;     // "observe", "enforce", "off"
    uint64_t policy_version = 0;
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
