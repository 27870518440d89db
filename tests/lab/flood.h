// A packet flood from many sources out of one device, from within the kernel: BPF_PROG_TEST_RUN
// with live frames. One Flood keeps one CPU busy; start several in threads for more.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"

struct flood_bpf;  // the generated skeleton

namespace sluice::lab {

using MacAddress = std::array<uint8_t, 6>;

Result<MacAddress> parse_mac(std::string_view text);

// The address that the labs give the receiving end of their veth pairs.
inline constexpr MacAddress kLabEdgeMac = {0x02, 0, 0, 0, 0, 0x01};

enum class FloodKind {
    udp,   // datagrams with payload
    syn,   // TCP SYN without ACK
    data,  // TCP PSH|ACK with payload, of no connection
};

struct FloodPlan {
    std::string device;  // in the caller's network namespace
    MacAddress destination_mac = kLabEdgeMac;
    unsigned vlan_tags = 0;

    FloodKind kind = FloodKind::udp;
    IpAddress first_source;
    IpAddress destination;  // of the same family
    uint16_t destination_port = 80;
    uint32_t sources = 1;
    // Sources all over the address space instead, in no order: what a spoofing flood looks like.
    bool scatter = false;
    // Source n with a chance of about 1 / n, as visitors come; `sources` is rounded down to a power
    // of two.
    bool zipf = false;
    // The length of the prefix that differs from source to source; 0: 32 for IPv4, 64 for IPv6.
    unsigned source_prefix = 0;
    uint32_t first_flow = 1024;  // source port
    uint32_t flows = 1;          // source ports used, changing after each round of the sources
    size_t payload = 0;          // bytes, for udp and data; frames are padded to a multiple of 8
    // Frames that a receiver takes for something else:
    uint16_t ether_type = 0;  // instead of that of IPv4 or IPv6
    size_t missing = 0;       // bytes that the IP header promises and the frame lacks

    uint64_t rate = 0;   // packets per second; 0: as fast as possible
    uint64_t count = 0;  // packets; 0: until the duration ends
    std::chrono::milliseconds duration{10'000};
    std::optional<unsigned> cpu;  // where run() pins the calling thread
};

inline constexpr std::chrono::minutes kMaxFloodDuration{10};

struct FloodReport {
    uint64_t sent = 0;  // handed to the device; a full receive queue may still lose some
    size_t frame_bytes = 0;
    std::chrono::duration<double> elapsed{};
};

class Flood {
  public:
    static Result<Flood> make(const FloodPlan& plan);

    // Sends until count, duration or `stop`, whichever comes first. Sources go on where the last
    // run ended.
    Result<FloodReport> run(const std::atomic<bool>& stop);

    // Sends so many at once on the calling thread's CPU; the mean time of one until the receiver,
    // whose queue is served by the same CPU, is done with it.
    Result<std::chrono::nanoseconds> time(uint64_t packets);

  private:
    struct SkeletonDeleter {
        void operator()(flood_bpf* skeleton) const noexcept;
    };

    Flood(FloodPlan plan, std::vector<uint8_t> frame,
          std::unique_ptr<flood_bpf, SkeletonDeleter> skeleton);

    // The mean time of a packet.
    Result<std::chrono::nanoseconds> send(uint64_t packets);

    FloodPlan plan_;
    std::vector<uint8_t> frame_;
    std::unique_ptr<flood_bpf, SkeletonDeleter> skeleton_;
};

}  // namespace sluice::lab
