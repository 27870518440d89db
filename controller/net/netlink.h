// Dumps of the kernel's routing tables over rtnetlink.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <type_traits>

#include "base/result.h"

namespace sluice {

using Bytes = std::span<const std::byte>;

// The attributes of a message by type; of repeated ones the last counts.
std::map<uint16_t, Bytes> parse_attributes(Bytes bytes);

// The leading T of `bytes`; they are copied because netlink aligns to 4 only.
template <class T>
T read_as(Bytes bytes) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
}

// Calls `visit` with the payload of each message of one dump (RTM_GETLINK, RTM_GETROUTE, …).
Status dump(uint16_t request_type, uint8_t family, const std::function<void(Bytes)>& visit);

}  // namespace sluice
