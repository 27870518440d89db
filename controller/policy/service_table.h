// From the services' matches to flat tables: port → class, destination → group, both → service.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// Stable ids by name; 0 is "other".
using ServiceIds = std::map<std::string, uint32_t, std::less<>>;

// Every port of TCP, every port of UDP, then every protocol without ports.
inline constexpr uint32_t kUdpStart = 65'536;
inline constexpr uint32_t kProtocolStart = 2 * 65'536;
inline constexpr uint32_t kSelectors = kProtocolStart + 256;

struct DestinationGroup {
    uint64_t high = 0;    // network
    uint64_t low = 0;     // IPv4 as ::ffff:a.b.c.d
    uint32_t length = 0;  // of 128
    uint32_t group = 0;

    friend bool operator==(const DestinationGroup&, const DestinationGroup&) = default;
};

// The service of a packet is cells[group × classes + selector_class[selector]], where the group is
// that of the longest destination prefix, else 0. Where no destinations are named a selector's
// class is its service.
struct ServiceTable {
    uint32_t classes = 1;
    uint32_t groups = 1;
    std::vector<uint16_t> selector_class = std::vector<uint16_t>(kSelectors);
    std::vector<uint16_t> cells = {0};
    std::vector<DestinationGroup> destinations;  // by group, which is ascending order of prefixes
    std::vector<uint8_t> lengths;                // in use, of 128, longest first
};

// Longest destination prefix first, then the narrowest range of ports; what matches nothing is 0.
// A destination inherits from shorter prefixes, and from matches without one, what its own matches
// leave open. Refused, with the numbers, where a table would be too large.
Result<ServiceTable> compile_services(const std::vector<Service>& services, const ServiceIds& ids);

}  // namespace sluice
