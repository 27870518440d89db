// Reads [risk].
#pragma once

#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

void read_risk(const Field& field, Policy& policy);

}  // namespace sluice
