// A machine as a folder that --root takes: what tuning reads, and nothing that is secret.
#pragma once

#include <string>

#include "base/result.h"
#include "tune/machine.h"

namespace sluice {

// Makes `folder`, which must not exist. CPUs, nodes, queues, interrupts by name, ethtool's facts;
// no address, no host name, no serial number, and of processes only irqbalance and tuned. What is
// named after its address, as enx02005e005301, gets a number instead: enxmac1.
Status capture(const Machine& machine, const std::string& folder);

}  // namespace sluice
