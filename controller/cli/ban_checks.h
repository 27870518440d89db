// What `ban` and `bans` check alike.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"

namespace sluice::cli {

// The name of a list that operators may write to.
Status check_source(const std::string& source);

// Whether bans drop anything at present; a warning where they do not.
Result<bool> is_enforced(const Tables& tables, std::vector<std::string>& warnings);

}  // namespace sluice::cli
