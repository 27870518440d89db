// Which part of a configuration is a policy that a whole fleet can have, and which is a host's own.
//
// The fleet's: mode, services, classes, forwarders, and of [sources] what a source is and who is
// allowed. A host's own: its interfaces, how it reaches Redis, its tables' sizes, what its daemon
// does beside the gate.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "policy/config_tree.h"

namespace sluice {

struct FleetPart {
    ConfigTable policy;
    // What is not in it: "sluice.toml:2:1: interfaces: is each host's own, and stays out".
    std::vector<std::string> left_out;
};
// Keys that nobody knows are in it as well, so that whoever reads it refuses them.
FleetPart fleet_part(ConfigTable config);

// A host's configuration with the fleet's policy in place of its own. Its own allows stay beside
// the fleet's, and its mode where the fleet names none.
ConfigTable with_fleet_part(ConfigTable host, ConfigTable policy);

}  // namespace sluice
