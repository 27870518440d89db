#include "fleet/rl_whitelist.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace sluice {

namespace {

constexpr std::string_view kAddressMark = "ip:";
constexpr std::array<std::string_view, 2> kOthersMarks = {"uid:", "dfp:"};
constexpr size_t kIpv4Bytes = 4;
constexpr size_t kIpv6Bytes = 16;

std::optional<IpAddress> parse_text(std::string_view text) {
    const auto address = IpAddress::parse(text);
    return address ? std::optional(*address) : std::nullopt;
}

std::optional<IpAddress> parse_bytes(std::string_view bytes) {
    if (bytes.size() == kIpv4Bytes) {
        uint32_t address = 0;
        for (const char byte : bytes)
            address = address << 8 | static_cast<uint8_t>(byte);
        return IpAddress::from_ipv4(address);
    }
    if (bytes.size() != kIpv6Bytes)
        return std::nullopt;
    std::array<uint8_t, kIpv6Bytes> address{};
    std::ranges::transform(bytes, address.begin(), [](char byte) { return uint8_t(byte); });
    return IpAddress::from_bytes(address);
}

}  // namespace

// Four characters are no text of an address that anybody has ("::12"), but an address of China.
std::optional<IpAddress> parse_rl_address(std::string_view member) {
    if (member.size() != kIpv4Bytes)
        if (const auto address = parse_text(member))
            return address;
    if (const auto address = parse_bytes(member))
        return address;
    return member.starts_with(kAddressMark) ? parse_rl_address(member.substr(kAddressMark.size()))
                                            : std::nullopt;
}

void RlWhitelist::add(std::string_view member) {
    if (std::ranges::any_of(kOthersMarks,
                            [&](std::string_view mark) { return member.starts_with(mark); })) {
        skipped++;
    } else if (const auto address = parse_rl_address(member)) {
        addresses.insert(*address);
    } else {
        if (refused++ == 0)
            first_refused = printable(shortened(member));
    }
}

}  // namespace sluice
