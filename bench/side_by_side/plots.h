// Pictures of a run: SVG, from its JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace sluice::bench {

// Writes limits.svg, bans.svg and rejections.svg into `folder`, as far as the run has their rows.
Status draw_plots(const nlohmann::json& run, const std::string& folder);

}  // namespace sluice::bench
