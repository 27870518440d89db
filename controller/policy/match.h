// The text form of a service's match: [destination:]protocol[/port[-port]].
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// "tcp/443", "udp/53", "tcp/8000-8100", "icmp", "icmp6", "proto/132", each alone or behind a
// destination: "203.0.113.10:tcp/443", "203.0.113.0/24:icmp", "[2001:db8::1]:udp/443".
Result<Match> parse_match(std::string_view text, bool* host_bits_cleared = nullptr);
std::string format_match(const Match& match);

// True where some packet fits both and neither is the more specific one (longest destination,
// then narrowest port range), so that its service would be a matter of chance.
bool is_tie(const Match& a, const Match& b);

}  // namespace sluice
