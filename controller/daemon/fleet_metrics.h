// How the fleet stands on this host, as metrics.
#pragma once

#include "fleet/budget_sync.h"

namespace sluice {

class Families;

// Nothing where no budget is shared.
void add_fleet_metrics(const FleetStanding& standing, Families& out);

}  // namespace sluice
