// A prefix as an operator types it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice::cli {

struct PrefixArgument {
    Prefix prefix;
    bool bare_address = false;  // without a length
};

// Strict: an address with a port is refused, not guessed at. Cleared host bits become a warning.
Result<PrefixArgument> parse_prefix(const std::string& text, std::vector<std::string>& warnings);
// The same, where a bare IPv6 address stands for its /64: a host has as many addresses as it likes.
Result<PrefixArgument> parse_banned(const std::string& text, std::vector<std::string>& warnings);

}  // namespace sluice::cli
