// A configuration with the numbers that its schedules give it at some instant.
#pragma once

#include "base/result.h"
#include "operate/config_file.h"
#include "policy/schedule.h"

namespace sluice {

// Its text says which, and keeps the services' own numbers: the same can be made of that text for
// another instant. Unchanged where nothing is due.
Result<ConfigFile> with_schedules(ConfigFile config, Instant now);

}  // namespace sluice
