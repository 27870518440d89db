// How risk stands on this host, as metrics.
#pragma once

#include "risk/risk_desk.h"

namespace sluice {

class Families;

// Nothing where the policy has no [risk].
void add_risk_metrics(const RiskStanding& standing, Families& out);

}  // namespace sluice
