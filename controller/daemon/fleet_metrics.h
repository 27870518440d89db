// How the fleet stands on this host, as metrics.
#pragma once

#include "fleet/budget_sync.h"
#include "fleet/policy_sync.h"

namespace sluice {

class Families;

// Nothing where no budget is shared.
void add_fleet_metrics(const FleetStanding& standing, Families& out);
// Nothing where this host is in no fleet.
void add_fleet_policy_metrics(const FleetStanding& fleet, const PolicyStanding& policy,
                              Families& out);

}  // namespace sluice
