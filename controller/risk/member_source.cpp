#include "risk/member_source.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

namespace sluice {

namespace {

constexpr std::string_view kAddressMark = "ip:";
constexpr std::array<std::string_view, 2> kIdentityMarks = {"uid:", "dfp:"};
constexpr unsigned kIpv6Site = 64;
// The longest address as text with brackets and a port; what is longer is not even looked at.
constexpr size_t kLongestText = 64;

bool is_port(std::string_view text) {
    unsigned port = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), port);
    return failure == std::errc{} && end == text.data() + text.size() && port <= 65'535;
}

std::optional<IpAddress> address_in(std::string_view text) {
    if (text.size() > kLongestText)
        return std::nullopt;
    const auto parse = [](std::string_view part) {
        const auto address = IpAddress::parse(part);
        return address ? std::optional(*address) : std::nullopt;
    };
    if (const auto address = parse(text))
        return address;
    if (text.starts_with('[')) {
        const size_t end = text.find(']');
        const std::string_view behind = end == std::string_view::npos ? "" : text.substr(end + 1);
        const bool whole = end == text.size() - 1;
        if (!whole && (!behind.starts_with(':') || !is_port(behind.substr(1))))
            return std::nullopt;
        return parse(text.substr(1, end - 1));
    }
    const size_t colon = text.rfind(':');
    if (colon == std::string_view::npos || !is_port(text.substr(colon + 1)))
        return std::nullopt;
    return parse(text.substr(0, colon));
}

std::optional<IpAddress> raw_address(std::string_view bytes) {
    const auto at = [&bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
    if (bytes.size() == 4)
        return IpAddress::from_ipv4(uint32_t{at(0)} << 24 | uint32_t{at(1)} << 16 |
                                    uint32_t{at(2)} << 8 | at(3));
    std::array<uint8_t, 16> copy{};
    if (bytes.size() != copy.size())
        return std::nullopt;
    std::memcpy(copy.data(), bytes.data(), copy.size());
    return IpAddress::from_bytes(copy);
}

}  // namespace

Prefix risk_source(const IpAddress& address) {
    return address.family() == Family::ipv4 ? Prefix::host(address)
                                            : Prefix::make(address, kIpv6Site).value();
}

MemberSource source_of_member(std::string_view member) {
    if (std::ranges::any_of(kIdentityMarks,
                            [&](std::string_view mark) { return member.starts_with(mark); }))
        return {MemberSource::Kind::identity};
    if (member.starts_with(kAddressMark))
        member.remove_prefix(kAddressMark.size());
    // Text first: "1::2" and "2001:db8::1:5834" have 4 and 16 bytes as well.
    auto address = address_in(member);
    if (!address)
        address = raw_address(member);
    if (!address)
        return {};
    return {MemberSource::Kind::source, risk_source(*address)};
}

}  // namespace sluice
