// A commented configuration to start from, made of what this host listens on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"
#include "net/host.h"

namespace sluice {

struct HostPicture {
    std::string interface;                // of the default route; may be empty
    std::vector<Listener> listeners;      // those that strangers can reach
    std::vector<std::string> protected_;  // "192.0.2.1 (a gateway)"
};

Result<HostPicture> look_at_host();

// Observes; every limit is a comment, because only measuring can tell the right number.
std::string starter_config(const HostPicture& host);

}  // namespace sluice
