// Why an interface refuses native XDP, and what to change: the drivers' own rules, for people.
#pragma once

#include <string>

#include "net/interface.h"

namespace sluice {

// A packet must fit one page with its headroom where the driver or the kernel has no multi-buffer.
inline constexpr unsigned kSinglePageMtu = 3498;

// One or two sentences with the command that usually helps.
std::string native_mode_advice(const Interface& interface, bool multi_buffer);

}  // namespace sluice
