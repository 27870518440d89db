// Reads one limit: "20/s", { rate, burst } or { limit, window }.
#pragma once

#include <optional>

#include "policy/compile_limit.h"
#include "policy/config_reader.h"
#include "policy/policy.h"
#include "sluice/limits.h"

namespace sluice {

// The longest time that the gate's state can hold: of a jail, and of a bucket from empty to full.
inline constexpr std::chrono::nanoseconds kLongestState{SLUICE_MAX_SPAN_NS};

// A limit on a source or a prefix, which holds under all these scales; strict windows exist for the
// connections of a source only.
std::optional<Limit> read_limit(const Field& field, Rule rule, ScaleRange scales);

// A rate alone, such as what a back end can take.
std::optional<Rate> read_rate(const Field& field, Dimension dimension);

// A token bucket for a whole service.
std::optional<TokenBucket> read_budget_limit(const Field& field, Dimension dimension);

}  // namespace sluice
