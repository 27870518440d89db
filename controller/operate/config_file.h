// A configuration as operators name it: a file, with conf.d beside it, and the text the gate keeps.
#pragma once

#include <string>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

struct ConfigFile {
    Policy policy;
    std::string text;    // parses to `policy`; the file as it is, where nothing was merged into it
    std::string source;  // the file's name
};

Result<ConfigFile> load_config_file(const std::string& path);

// What a gate does that was never told anything: watch.
ConfigFile watching_config();

}  // namespace sluice
