#include "feeds/spare.h"

#include <algorithm>

#include "gate/list_file.h"
#include "net/host.h"

namespace sluice {

namespace {

// Each cut makes pieces of another length, by which every packet is looked up. With so many, a
// 256th of the prefix around a spared network is spared with it.
constexpr unsigned kMostCuts = 8;

// The two halves of a prefix that is no host.
std::pair<Prefix, Prefix> halves(const Prefix& prefix) {
    const unsigned length = prefix.length() + 1;
    const unsigned bit = (prefix.family() == Family::ipv4 ? 96 : 0) + length - 1;
    auto bytes = prefix.address().bytes();
    bytes[bit / 8] |= static_cast<uint8_t>(0x80U >> bit % 8);
    return {Prefix::make(prefix.address(), length).value(),
            Prefix::make(IpAddress::from_bytes(bytes), length).value()};
}

void add_rest(const Prefix& prefix, std::span<const Prefix> spared, unsigned cuts,
              std::vector<Prefix>& rest) {
    const auto covers = [&](const Prefix& one) { return one.contains(prefix); };
    const auto lies_inside = [&](const Prefix& one) { return prefix.contains(one); };
    if (std::ranges::any_of(spared, covers))
        return;
    if (std::ranges::none_of(spared, lies_inside)) {
        rest.push_back(prefix);
        return;
    }
    if (cuts == 0)
        return;
    const auto [low, high] = halves(prefix);
    add_rest(low, spared, cuts - 1, rest);
    add_rest(high, spared, cuts - 1, rest);
}

}  // namespace

Result<std::vector<Prefix>> spared_networks() {
    auto spared = own_networks();
    if (spared)
        spared->insert(spared->end(), reserved_prefixes().begin(), reserved_prefixes().end());
    return spared;
}

std::vector<Prefix> without(std::span<const Prefix> prefixes, std::span<const Prefix> spared) {
    std::vector<Prefix> rest;
    rest.reserve(prefixes.size());
    for (const Prefix& prefix : prefixes)
        add_rest(prefix, spared, kMostCuts, rest);
    return rest;
}

}  // namespace sluice
