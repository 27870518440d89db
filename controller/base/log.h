// The daemon's log: one line each to stderr, with the priority that the journal understands.
#pragma once

#include <string_view>

#include "base/result.h"

namespace sluice {

enum class LogLevel { error = 3, warning = 4, info = 6 };  // as syslog numbers them

void log(LogLevel level, std::string_view text);
// What did not work, why, and the mend.
void log_error(std::string_view what, const Error& error);

}  // namespace sluice
