#include "flood.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "address_range.h"
#include "base/unique_fd.h"
#include "flood.skel.h"
#include "flood_frame.h"

namespace sluice::lab {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxPayload = 1400;
constexpr size_t kMinFrame = 64;
// The kernel's default; the receiver's queue of 256 takes it without loss.
constexpr uint32_t kBatch = 64;
// One call of an unpaced flood: a few milliseconds, so that stop and deadline are seen.
constexpr uint64_t kUnpacedChunk = 32'768;
// Odd and near the golden ratio of their words: visits every address or /64 once, in no order.
constexpr AddressStep kScattered = {0x9e3779b97f4a7c15, 0x9e3779b1};
constexpr auto kTick = std::chrono::milliseconds(1);
// A paced flood that fell behind by more than this (the CPU was away) does not catch up.
constexpr auto kMaxLag = std::chrono::milliseconds(20);

class FrameWriter {
  public:
    [[nodiscard]] size_t size() const { return bytes_.size(); }
    void u8(unsigned value) { bytes_.push_back(static_cast<uint8_t>(value)); }
    void u16(size_t value) {
        u8(static_cast<unsigned>(value >> 8) & 0xff);
        u8(static_cast<unsigned>(value) & 0xff);
    }
    void u32(uint32_t value) {
        u16(value >> 16);
        u16(value & 0xffff);
    }
    void bytes(std::span<const uint8_t> values) {
        bytes_.insert(bytes_.end(), values.begin(), values.end());
    }
    void zeros(size_t count) { bytes_.insert(bytes_.end(), count, 0); }
    std::vector<uint8_t> take() { return std::move(bytes_); }

  private:
    std::vector<uint8_t> bytes_;
};

// The bytes of an address as they are in a header: 4 or 16.
std::span<const uint8_t> wire_bytes(const IpAddress& address) {
    const std::span<const uint8_t> all(address.bytes());
    return address.family() == Family::ipv4 ? all.last(4) : all;
}

// A one's complement sum of 16-bit words in memory order, as the BPF program continues it.
uint32_t sum_words(std::span<const uint8_t> bytes) {
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes.size(); i += 2) {
        std::array<uint8_t, 2> pair = {bytes[i], 0};
        if (i + 1 < bytes.size())
            pair[1] = bytes[i + 1];
        uint16_t word = 0;
        std::memcpy(&word, pair.data(), sizeof(word));
        sum += word;
    }
    return sum;
}

struct Frame {
    std::vector<uint8_t> bytes;
    uint32_t header_words = 0;
    uint32_t l3_offset = 0;
    uint32_t l4_offset = 0;
    uint32_t l3_sum = 0;
    uint32_t l4_sum = 0;
};

// The frame with source address, source port, sequence number and checksums left zero.
Frame build_frame(const FloodPlan& plan, const MacAddress& source_mac) {
    const bool ipv6 = plan.destination.family() == Family::ipv6;
    const bool tcp = plan.kind != FloodKind::udp;
    const size_t payload = plan.kind == FloodKind::syn ? 0 : std::max<size_t>(plan.payload, 1);
    const size_t l4_size = (tcp ? 20 : 8) + payload;
    const unsigned protocol = tcp ? IPPROTO_TCP : IPPROTO_UDP;
    const std::vector<uint8_t> no_source(ipv6 ? 16 : 4, 0);

    Frame frame;
    FrameWriter out;
    out.bytes(plan.destination_mac);
    out.bytes(source_mac);
    for (unsigned tag = 0; tag < plan.vlan_tags; tag++) {
        out.u16(0x8100);
        out.u16(100 + tag);
    }
    out.u16(plan.ether_type != 0 ? plan.ether_type : ipv6 ? 0x86dd : 0x0800);

    frame.l3_offset = static_cast<uint32_t>(out.size());
    if (ipv6) {
        out.u32(0x60000000);
        out.u16(l4_size + plan.missing);
        out.u8(protocol);
        out.u8(64);
    } else {
        out.u16(0x4500);
        out.u16(20 + l4_size + plan.missing);
        out.u32(0x00004000);  // don't fragment
        out.u8(64);
        out.u8(protocol);
        out.u16(0);
    }
    out.bytes(no_source);
    out.bytes(wire_bytes(plan.destination));

    frame.l4_offset = static_cast<uint32_t>(out.size());
    out.u16(0);
    out.u16(plan.destination_port);
    if (tcp) {
        out.u32(0);
        out.u32(plan.kind == FloodKind::data ? 1 : 0);
        out.u8(5 << 4);
        out.u8(plan.kind == FloodKind::data ? 0x18 : 0x02);
        out.u16(64'240);
        out.u32(0);
    } else {
        out.u16(l4_size);
        out.u16(0);
    }
    const size_t header_size = out.size();
    for (size_t i = 0; i < payload; i++)
        out.u8('s');

    frame.bytes = out.take();
    const std::span<const uint8_t> packet(frame.bytes);
    frame.l3_sum = sum_words(packet.subspan(frame.l3_offset, frame.l4_offset - frame.l3_offset));
    FrameWriter pseudo;
    pseudo.u32(static_cast<uint32_t>(l4_size));
    pseudo.u32(protocol);
    frame.l4_sum = sum_words(packet.subspan(frame.l4_offset)) +
                   sum_words(wire_bytes(plan.destination)) + sum_words(pseudo.take());

    // Whole words, and room for the program's one bounds check behind the start of L4.
    const size_t least = std::max(
        {kMinFrame, frame.bytes.size(), static_cast<size_t>(frame.l4_offset) + FLOOD_L4_BYTES});
    frame.bytes.resize((least + 7) / 8 * 8, 0);
    frame.header_words = static_cast<uint32_t>((header_size + 7) / 8);
    return frame;
}

Status check(const FloodPlan& plan) {
    if (plan.first_source.family() != plan.destination.family())
        return make_error(ErrorCode::usage, "source and destination are of different families");
    if (plan.sources == 0 || plan.flows == 0)
        return make_error(ErrorCode::usage, "a flood has at least one source and one flow");
    if (plan.first_flow + plan.flows > 65'536)
        return make_error(ErrorCode::usage, "source ports end at 65535: use fewer flows");
    if (plan.vlan_tags > FLOOD_MAX_VLAN_TAGS)
        return make_error(ErrorCode::usage, "too many VLAN tags");
    if (plan.payload > kMaxPayload)
        return make_error(ErrorCode::usage, "the payload is longer than 1400 bytes");
    if (plan.duration <= plan.duration.zero() || plan.duration > kMaxFloodDuration)
        return make_error(ErrorCode::usage, "the duration must be above 0 and at most 10 minutes");
    return {};
}

Result<MacAddress> device_mac(const std::string& device) {
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
    if (::ioctl(socket.get(), SIOCGIFHWADDR, &request) != 0)
        return from_errno(errno, "MAC address of " + device);
    MacAddress mac;
    std::memcpy(mac.data(), request.ifr_hwaddr.sa_data, mac.size());
    return mac;
}

Status pin_to(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0)
        return from_errno(errno, "pin to CPU " + std::to_string(cpu));
    return {};
}

}  // namespace

Result<MacAddress> parse_mac(std::string_view text) {
    MacAddress mac;
    const std::string owned(text);
    int used = 0;
    const int fields = std::sscanf(owned.c_str(), "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &mac[0],
                                   &mac[1], &mac[2], &mac[3], &mac[4], &mac[5], &used);
    if (fields != 6 || static_cast<size_t>(used) != owned.size())
        return make_error(ErrorCode::usage, "'" + owned + "' is not a MAC address");
    return mac;
}

void Flood::SkeletonDeleter::operator()(flood_bpf* skeleton) const noexcept {
    flood_bpf__destroy(skeleton);
}

Flood::Flood(FloodPlan plan, std::vector<uint8_t> frame,
             std::unique_ptr<flood_bpf, SkeletonDeleter> skeleton)
    : plan_(std::move(plan)), frame_(std::move(frame)), skeleton_(std::move(skeleton)) {}

Result<Flood> Flood::make(const FloodPlan& plan) {
    if (auto checked = check(plan); !checked)
        return checked.error();
    const unsigned ifindex = ::if_nametoindex(plan.device.c_str());
    if (ifindex == 0)
        return from_errno(errno, "device " + plan.device);
    auto source_mac = device_mac(plan.device);
    if (!source_mac)
        return source_mac.error();
    auto step = address_step(plan.first_source.family(), plan.source_prefix);
    if (!step)
        return step.error();
    if (plan.scatter)
        *step = kScattered;

    std::unique_ptr<flood_bpf, SkeletonDeleter> skeleton(flood_bpf__open());
    if (!skeleton)
        return from_errno(errno, "open the flood program");

    const Frame frame = build_frame(plan, *source_mac);
    const bool ipv6 = plan.destination.family() == Family::ipv6;
    auto& config = *skeleton->rodata;
    std::memcpy(config.header, frame.bytes.data(),
                std::min(frame.bytes.size(), sizeof(config.header)));
    config.header_words = frame.header_words;
    config.out_ifindex = ifindex;
    config.l3_offset = frame.l3_offset;
    config.l4_offset = frame.l4_offset;
    config.ipv6 = ipv6;
    config.tcp = plan.kind != FloodKind::udp;
    config.l3_sum = frame.l3_sum;
    config.l4_sum = frame.l4_sum;
    config.sources = plan.scatter ? UINT32_MAX : plan.sources;
    config.zipf_bits = plan.zipf ? static_cast<uint32_t>(std::bit_width(plan.sources)) - 1 : 0;
    config.flows = plan.flows;
    config.first_port = static_cast<uint16_t>(plan.first_flow);
    config.first_source_high = plan.first_source.high64();
    config.first_source_low =
        ipv6 ? plan.first_source.low64() : plan.first_source.ipv4_host_order();
    config.step_high = step->high;
    config.step_low = step->low;

    if (const int error = flood_bpf__load(skeleton.get()); error != 0)
        return from_errno(error, "load the flood program");
    return Flood(plan, frame.bytes, std::move(skeleton));
}

Result<std::chrono::nanoseconds> Flood::time(uint64_t packets) {
    return send(packets);
}

Result<std::chrono::nanoseconds> Flood::send(uint64_t packets) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    options.data_in = frame_.data();
    options.data_size_in = static_cast<uint32_t>(frame_.size());
    options.repeat = static_cast<int>(packets);
    options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
    options.batch_size = static_cast<uint32_t>(std::min<uint64_t>(packets, kBatch));
    const int program = bpf_program__fd(skeleton_->progs.flood);
    const int error = bpf_prog_test_run_opts(program, &options);
    if (error != 0 && error != -EINTR)
        return from_errno(error, "send live frames",
                          "the kernel needs live-frame test runs (5.18), and the receiving end of "
                          "the veth pair an XDP program or generic receive offload");
    return std::chrono::nanoseconds(options.duration);
}

Result<FloodReport> Flood::run(const std::atomic<bool>& stop) {
    if (plan_.cpu) {
        if (auto pinned = pin_to(*plan_.cpu); !pinned)
            return pinned.error();
    }

    const volatile auto& total = skeleton_->bss->sent;
    const uint64_t total_before = total;
    const auto sent = [&] { return uint64_t{total} - total_before; };
    const auto start = Clock::now();
    const auto end = start + plan_.duration;
    const auto seconds = [](Clock::duration span) {
        return std::chrono::duration<double>(span).count();
    };
    const auto rate = static_cast<double>(plan_.rate);
    double credit = 0;  // packets that a paced flood may send now
    auto last = start;

    for (auto now = start; now < end && !stop.load(std::memory_order_relaxed); now = Clock::now()) {
        uint64_t packets = kUnpacedChunk;
        if (plan_.rate != 0) {
            credit = std::min(credit + rate * seconds(now - last), rate * seconds(kMaxLag) + 1);
            last = now;
            packets = static_cast<uint64_t>(credit);
        }
        if (plan_.count != 0)
            packets = std::min(packets, plan_.count - sent());
        if (packets != 0) {
            if (auto done = send(packets); !done)
                return done.error();
            credit -= static_cast<double>(packets);
        }
        if (plan_.count != 0 && sent() >= plan_.count)
            break;
        if (plan_.rate != 0)
            std::this_thread::sleep_until(std::min(now + kTick, end));
    }

    FloodReport report;
    report.sent = sent();
    report.frame_bytes = frame_.size();
    report.elapsed = Clock::now() - start;
    return report;
}

}  // namespace sluice::lab
