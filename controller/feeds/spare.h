// Whom no block list may hit.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice {

// Private and otherwise reserved networks, and those that this host is in.
Result<std::vector<Prefix>> spared_networks();

// What is left of the prefixes without the spared ones: a prefix that has one of these inside
// becomes the pieces around it, none of them much smaller than the prefix. Order stays.
std::vector<Prefix> without(std::span<const Prefix> prefixes, std::span<const Prefix> spared);

}  // namespace sluice
