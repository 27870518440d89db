// Schedules, in JSON and for people.
#pragma once

#include <string>

#include "cli/answer.h"
#include "cli/screen.h"
#include "policy/schedule.h"

namespace sluice::cli {

// All of a service. Times are null where there is no next one.
Json schedules_json(const Service& service, Instant now);
// "budget.data 60000/s, per_source.data 30/s": of `values` or another such object.
std::string values_text(const Json& values);
// "begins in 2 h 3 min": whether it is in force or not.
std::string next_text(const Json& schedule);
// The same, and whether it is.
Cell schedule_state(const Json& schedule);

}  // namespace sluice::cli
