// Reads the [[service.schedule]] tables of one service.
#pragma once

#include <string>

#include "policy/compile_limit.h"
#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

// Fills service.schedules, and gives the service the limits that are marked as in force. Its own
// limits must be read before; they are what a schedule can change.
void read_schedules(const Field& tables, ScaleRange scales, Service& service);

}  // namespace sluice
