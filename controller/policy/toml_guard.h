// What would overtax the TOML reader, found before it is asked.
#pragma once

#include <string_view>

#include "base/result.h"

namespace sluice {

// toml++ bounds brackets, but goes one call deeper for each part of a dotted key, and whoever walks
// its tree does too. The longest key of ours has four parts; 256 brackets times this many still
// leave most of the stack.
inline constexpr unsigned kMostKeyParts = 8;

// The place of a key with more parts than that.
Status check_key_parts(std::string_view text, std::string_view file_name);

}  // namespace sluice
