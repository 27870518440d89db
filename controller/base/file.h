// Whole files as strings.
#pragma once

#include <string>

#include "base/result.h"

namespace sluice {

// Also for /proc, whose files have no size.
Result<std::string> read_file(const std::string& path);

}  // namespace sluice
