// Which limits of its schedules a service has now, as a configuration says it: each
// [[service.schedule]] lists them under `in_force`. The service's own numbers stay beside it, so
// that they come back.
#pragma once

#include <string>
#include <vector>

#include "policy/config_tree.h"
#include "policy/schedule.h"

namespace sluice {

inline constexpr std::string_view kInForce = "in_force";

// Those that are due, and no others.
void mark_schedules(ConfigTable& config, const std::vector<DueSchedule>& due);

// The service has its own number under "budget.data" again, whatever schedule is due.
void unmark_rule(ConfigTable& service, const std::string& rule);

}  // namespace sluice
