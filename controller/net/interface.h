// Network interfaces and the routes that leave through them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice {

struct Interface {
    unsigned index = 0;
    std::string name;
    std::string kind;  // "bond", "vlan", "veth", …; empty for hardware and loopback
    unsigned mtu = 0;
    bool up = false;
    bool loopback = false;
    std::optional<unsigned> master;  // index of the bond, bridge or VRF that it is part of
    bool bond_slave = false;
    // Indices of all that sits above and sees the same packets: masters, VLANs, macvlans, theirs.
    std::vector<unsigned> uppers;
};

struct DefaultRoute {
    Family family = Family::ipv4;
    std::optional<IpAddress> gateway;  // absent on a point-to-point link
    std::string interface;
    uint32_t metric = 0;
    bool main_table = true;  // false: policy routing sends only some traffic here
};

Result<std::vector<Interface>> list_interfaces();
// ErrorCode::not_found, with the names that exist as the hint.
Result<Interface> find_interface(std::string_view name);

// The present name of an interface of this namespace; empty where there is none of this index.
std::string interface_name(unsigned index);

// The default routes of both families: those of the main table first, then by metric.
Result<std::vector<DefaultRoute>> default_routes();
// The interface of the best one, IPv4 before IPv6.
Result<std::string> default_interface();

}  // namespace sluice
