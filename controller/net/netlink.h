// What the kernel says over netlink: its routing tables, and what its generic families know.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

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

// A number of whichever size the kernel chose for it.
uint64_t read_number(Bytes bytes);

// Calls `visit` with the payload of each message of one dump (RTM_GETLINK, RTM_GETROUTE, …).
Status dump(uint16_t request_type, uint8_t family, const std::function<void(Bytes)>& visit);

// One attribute of a request: its header, `value`, and what fills it up to the next one.
std::vector<std::byte> attribute(uint16_t type, Bytes value);

enum class Ask : uint8_t { one, dump };
// Calls `visit` with the attributes of each answer of a generic family, such as "ethtool".
// ErrorCode::not_found where this kernel has no such family.
Status ask_family(const std::string& family, uint8_t command, Ask ask, Bytes attributes,
                  const std::function<void(Bytes)>& visit);

}  // namespace sluice
