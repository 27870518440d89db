// Whether a policy could be put in force, before anybody is asked to.
#pragma once

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

// By this host's clock, with ids that any gate could give.
Status compiles_here(const Policy& policy);

}  // namespace sluice
