#include "gate/rule_key.h"

#include <array>

namespace sluice {

namespace {

constexpr unsigned kMappedBits = 96;
constexpr unsigned kBits = 128;

IpAddress to_address(const sluice_address& a) {
    std::array<uint8_t, 16> bytes{};
    for (unsigned i = 0; i < 8; ++i) {
        bytes[i] = static_cast<uint8_t>(a.high >> (56 - 8 * i));
        bytes[8 + i] = static_cast<uint8_t>(a.low >> (56 - 8 * i));
    }
    return IpAddress::from_bytes(bytes);
}

}  // namespace

RuleKey RuleKey::of(const Prefix& prefix) {
    const bool ipv4 = prefix.family() == Family::ipv4;
    return {to_sluice(prefix.address()), prefix.length() + (ipv4 ? kMappedBits : 0)};
}

RuleKey RuleKey::of_ipv4(uint32_t address) {
    return {{0, SLUICE_IPV4_LOW | address}, kBits};
}

RuleKey RuleKey::of_entry(const sluice_rule_entry& entry) {
    const uint32_t length = sluice_rule_length(entry.value);
    if (length >= kMappedBits)
        return {{0, entry.network}, length};
    return {{entry.network, 0}, length};
}

Family RuleKey::family() const {
    return length >= kMappedBits && sluice_is_ipv4(network) ? Family::ipv4 : Family::ipv6;
}

Prefix RuleKey::prefix() const {
    const unsigned own = family() == Family::ipv4 ? length - kMappedBits : length;
    const auto prefix = Prefix::make(to_address(network), own);
    return prefix ? *prefix : Prefix{};
}

bool RuleKey::contains(const RuleKey& other) const {
    if (other.length < length || other.family() != family())
        return false;
    const auto cut = sluice_network(other.network, length);
    return cut.high == network.high && cut.low == network.low;
}

sluice_address to_sluice(const IpAddress& address) {
    return {address.high64(), address.low64()};
}

uint64_t until_from_ns(uint64_t ns) {
    return ns == SLUICE_NEVER ? SLUICE_UNTIL_PERMANENT : sluice_deadline_from_ns(ns);
}

uint64_t until_to_ns(uint64_t until) {
    return until == SLUICE_UNTIL_PERMANENT ? SLUICE_NEVER : until << SLUICE_DEADLINE_SHIFT;
}

}  // namespace sluice
