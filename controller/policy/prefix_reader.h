// Prefixes of sources in a configuration.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/address.h"
#include "policy/config_reader.h"

namespace sluice {

inline constexpr std::string_view kPrefixExample = "\"192.0.2.0/24\"";

// A prefix as a string; host bits that were set become a warning.
std::optional<Prefix> read_prefix(const Field& field, std::vector<std::string>& warnings);

}  // namespace sluice
