// The whitelist of another limiter: a hash whose fields are addresses, users and devices.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "net/address.h"

namespace sluice {

// Reading more of them would be felt in Redis, and each takes room in the gate's tables.
inline constexpr size_t kMostRlWhitelisted = 10'000;

// "192.0.2.1", 4 or 16 bytes as nginx has them ($binary_remote_addr), or either behind "ip:".
std::optional<IpAddress> parse_rl_address(std::string_view member);

struct RlWhitelist {
    std::set<IpAddress> addresses;
    size_t skipped = 0;  // users and devices ("uid:", "dfp:"), whom a gate does not know
    size_t refused = 0;  // what is none of that
    std::string first_refused;

    void add(std::string_view member);

    friend bool operator==(const RlWhitelist&, const RlWhitelist&) = default;
};

}  // namespace sluice
