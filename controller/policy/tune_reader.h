// Reads [tune].
#pragma once

#include <string_view>

#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

// "latency", "balanced" or "flood".
Result<TuneProfile> parse_tune_profile(std::string_view text);

void read_tune(const Field& field, Policy& policy);

}  // namespace sluice
