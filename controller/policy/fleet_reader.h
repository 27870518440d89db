// Reads [redis] and [fleet].
#pragma once

#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

void read_redis(const Field& field, Policy& policy);
// After [redis], without which there is no fleet.
void read_fleet(const Field& field, Policy& policy);

}  // namespace sluice
