// A plan as a picture: cards and queues above, nodes and cores below, and which goes where.
#pragma once

#include <string>

#include "tune/plan.h"

namespace sluice {

// SVG, readable in light and dark surroundings; complete in itself.
std::string picture_of(const PlanInput& input, const Plan& plan);

}  // namespace sluice
