// Ranges of source addresses, one in each prefix of a length.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice::lab {

// What to add to the two halves of an address, taken as numbers, to reach the next prefix.
struct AddressStep {
    uint64_t high = 0;
    uint64_t low = 0;
};

// prefix 0 stands for the usual: 32 for IPv4, 64 for IPv6.
Result<AddressStep> address_step(Family family, unsigned prefix);

// "ADDRESS" or "ADDRESS+N".
Result<std::vector<IpAddress>> parse_range(std::string_view text, unsigned prefix);

}  // namespace sluice::lab
