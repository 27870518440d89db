#include "frame_source.h"

#include <algorithm>
#include <array>

namespace sluice {

namespace {

uint16_t number_at(std::span<const uint8_t> bytes) {
    return static_cast<uint16_t>(bytes[0] << 8 | bytes[1]);
}

FrameSource source_of_ipv4(std::span<const uint8_t> header) {
    std::array<uint8_t, 16> address{};
    address[10] = address[11] = 0xff;
    std::copy_n(header.begin() + 12, 4, address.begin() + 12);
    return {IpAddress::from_bytes(address), false};
}

FrameSource source_of_ipv6(std::span<const uint8_t> packet) {
    constexpr uint8_t kIcmp = 58;
    std::array<uint8_t, 16> address{};
    std::copy_n(packet.begin() + 8, 16, address.begin());
    const bool is_near = packet[6] == kIcmp && packet[7] == 255 && packet.size() >= 48;
    const bool is_discovery = is_near && packet[40] >= 133 && packet[40] <= 137 && packet[41] == 0;
    return {IpAddress::from_bytes(address), is_discovery};
}

}  // namespace

std::optional<FrameSource> source_of(std::span<const uint8_t> frame) {
    constexpr size_t kAddresses = 12;
    constexpr int kMostTags = 8;
    if (frame.size() < kAddresses + 2)
        return {};
    frame = frame.subspan(kAddresses);
    for (int tags = 0; tags < kMostTags; ++tags) {
        const uint16_t type = number_at(frame);
        if (type != 0x8100 && type != 0x88a8)
            break;
        if (frame.size() < 6)
            return {};
        frame = frame.subspan(4);
    }
    const uint16_t type = number_at(frame);
    frame = frame.subspan(2);
    if (type == 0x0800 && frame.size() >= 20)
        return source_of_ipv4(frame);
    if (type == 0x86dd && frame.size() >= 40)
        return source_of_ipv6(frame);
    return {};
}

}  // namespace sluice
