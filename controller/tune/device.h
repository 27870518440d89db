// What ethtool knows of a network device and can change, as values and as text.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

// Queues: some drivers count receiving and sending ones apart, most have combined ones.
struct Channels {
    unsigned rx = 0, tx = 0, combined = 0;

    friend bool operator==(const Channels&, const Channels&) = default;
};

struct Rings {
    unsigned rx = 0, tx = 0;  // descriptors a queue

    friend bool operator==(const Rings&, const Rings&) = default;
};

// How long the card may wait before it interrupts.
struct Coalescing {
    bool adaptive_rx = false;
    unsigned rx_usecs = 0;

    friend bool operator==(const Coalescing&, const Coalescing&) = default;
};

enum class XdpUse : uint8_t { none, native, generic };

struct DeviceFacts {
    std::string driver;  // empty where the device does not say
    std::optional<Channels> channels, most_channels;
    std::optional<Rings> rings, most_rings;
    std::optional<Coalescing> coalescing;
    // Whether the driver has either at all; nothing where it does not say. Some that say so take it
    // and do nothing.
    std::optional<bool> can_adapt, can_wait;
    std::vector<uint32_t> spread;          // RSS: the queue of each bucket; empty without RSS
    std::map<std::string, bool> features;  // "rx-lro", "rx-gro-hw", …: whether it is on
    // Whether RSS hashes the ports, too; nothing where the driver does not say.
    std::optional<bool> tcp_by_port, udp_by_port;
    XdpUse xdp = XdpUse::none;
};

// The parts of it that can be changed, each as a whole.
enum class DevicePart : uint8_t { channels, rings, coalescing, spread };
inline constexpr DevicePart kDeviceParts[] = {DevicePart::channels, DevicePart::rings,
                                              DevicePart::coalescing, DevicePart::spread};
std::string_view part_name(DevicePart part);

// "rx 0 tx 0 combined 8", "rx 512 tx 512", "adaptive-rx off rx-usecs 8", "0 1 2 3 0 1 2 3"; nothing
// where the device has no such part.
std::optional<std::string> part_text(const DeviceFacts& facts, DevicePart part);
// The reverse of part_text(); names that are left out stay as they are in `facts`. A default
// spread is as long as the table that is there.
Status set_part(DeviceFacts& facts, DevicePart part, std::string_view text);

// Queues that receive, which RSS spreads over.
unsigned receiving(const Channels& channels);

// The text of a `spread` that is the driver's own, over so many queues: written out, a table counts
// as set by hand, and no driver follows a change of channels with it.
std::string default_spread(unsigned queues);
// The reverse; nothing where the text is another one.
std::optional<unsigned> default_queues(DevicePart part, std::string_view text);
// Whether a table is as drivers make theirs.
bool is_default(const std::vector<uint32_t>& spread, unsigned queues);
// Whether all of so many queues have the same part of a table, and no other has any.
bool is_even(const std::vector<uint32_t>& spread, unsigned queues);

// The two ends: the running kernel, and the file of a captured tree.
class Ethtool {
  public:
    virtual ~Ethtool() = default;
    // ErrorCode::not_found where there is no such interface.
    virtual Result<DeviceFacts> read(const std::string& interface) = 0;
    // As set_part() has it; drivers refuse what they cannot do.
    virtual Status set(const std::string& interface, DevicePart part, std::string_view text) = 0;
    // The driver's own counters by name; none of a captured tree.
    virtual std::map<std::string, uint64_t> counters(const std::string& interface) = 0;
};

// Of this network namespace.
std::unique_ptr<Ethtool> live_ethtool();
// Of a captured tree: one file an interface in `folder`.
std::unique_ptr<Ethtool> file_ethtool(std::string folder);
// What such a file holds, which is nobody's secret.
std::string ethtool_file_text(const DeviceFacts& facts);

}  // namespace sluice
