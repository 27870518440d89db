#include "setup.h"

#include <array>

#include "address_range.h"

namespace sluice::bench {

namespace {

IpAddress moved(const IpAddress& first, const lab::AddressStep& step, uint32_t index) {
    if (first.family() == Family::ipv4)
        return IpAddress::from_ipv4(first.ipv4_host_order() +
                                    static_cast<uint32_t>(step.low) * index);
    std::array<uint8_t, 16> bytes = first.bytes();
    const uint64_t high = first.high64() + step.high * index;
    for (size_t i = 0; i < 8; i++)
        bytes[i] = static_cast<uint8_t>(high >> (56 - 8 * i));
    return IpAddress::from_bytes(bytes);
}

}  // namespace

IpAddress first_banned(Family family, bool networks) {
    const char* text = family == Family::ipv4 ? (networks ? "16.0.0.7" : "64.0.0.0")
                                              : (networks ? "2400::1" : "2001:db8:b000::1");
    return IpAddress::parse(text).value();
}

std::vector<Prefix> banned(const Setup& setup) {
    const bool ipv4 = setup.family == Family::ipv4, networks = setup.bans.networks;
    const unsigned network_length = ipv4 ? kNetworkLength4 : kNetworkLength6;
    const auto step = lab::address_step(setup.family, networks ? network_length : 0).value();
    const IpAddress first = first_banned(setup.family, networks);
    std::vector<Prefix> prefixes;
    prefixes.reserve(setup.bans.count);
    for (uint32_t i = 0; i < setup.bans.count; i++) {
        const IpAddress address = moved(first, step, i);
        prefixes.push_back(networks ? Prefix::make(address, network_length).value()
                                    : Prefix::host(address));
    }
    return prefixes;
}

}  // namespace sluice::bench
