// Why an interface refuses native XDP, and what to change: the drivers' own rules, for people.
#pragma once

#include <string>

#include "net/interface.h"

namespace sluice {

// One or two sentences with the command that usually helps.
std::string native_mode_advice(const Interface& interface, bool multi_buffer);

}  // namespace sluice
