// What of a configuration is a host's own, where the fleet's policy may have taken the place of a
// part.
#pragma once

#include <string>

#include "base/result.h"
#include "gate/tables.h"
#include "operate/config_file.h"

namespace sluice {

// That in the gate, or, where it is the fleet's, the one on disk. An error where that is lost.
Result<ConfigFile> own_config(const Tables& tables, const std::string& state_dir);

}  // namespace sluice
