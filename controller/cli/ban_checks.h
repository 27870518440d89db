// What `ban` and `bans` check alike.
#pragma once

#include <string>

#include "base/result.h"

namespace sluice::cli {

// The name of a list that operators may write to.
Status check_source(const std::string& source);

}  // namespace sluice::cli
