// Reads one limit: "20/s", { rate, burst } or { limit, window }.
#pragma once

#include <optional>

#include "policy/config_reader.h"
#include "policy/policy.h"
#include "sluice/limits.h"

namespace sluice {

// The longest time that the gate's state can hold: of a jail, and of a bucket from empty to full.
inline constexpr std::chrono::nanoseconds kLongestState{SLUICE_MAX_SPAN_NS};

// A token bucket whose burst defaults to what the rate yields in `burst_span`, at least 1.
std::optional<TokenBucket> read_bucket(const Field& field, Dimension dimension,
                                       std::chrono::nanoseconds burst_span);

// A limit on a source or a prefix; strict windows exist for the connections of a source only.
std::optional<Limit> read_limit(const Field& field, Rule rule);

}  // namespace sluice
