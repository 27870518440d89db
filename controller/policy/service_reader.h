// Reads the [[service]] tables.
#pragma once

#include <vector>

#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

// Fills policy.services and adds to policy.warnings; policy.sources must be read before.
void read_services(const std::vector<Field>& tables, Policy& policy);

}  // namespace sluice
