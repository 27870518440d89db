// Who sent a frame, read independently of the gate: the judge of what the gate makes of captures.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "net/address.h"

namespace sluice {

struct FrameSource {
    IpAddress address;
    bool is_neighbour_discovery = false;  // that cannot have come from afar
};

// Of the outermost IP header behind up to eight VLAN tags; nothing where there is none.
std::optional<FrameSource> source_of(std::span<const uint8_t> frame);

}  // namespace sluice
