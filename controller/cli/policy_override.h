// sluicectl policy override: other numbers for one service, for a time.
#pragma once

#include "cli/command_line.h"

namespace sluice::cli {

// Below `policy`.
void add_policy_override(CommandLine& line, CLI::App* policy);

}  // namespace sluice::cli
