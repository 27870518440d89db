// What belongs to later versions: known, so that its users learn more than "unknown".
#pragma once

#include <string_view>

namespace sluice::cli {

bool is_later_option(std::string_view name);  // "--fleet"
// "audit", or "policy push" for one below another command.
bool is_later_command(std::string_view name);

}  // namespace sluice::cli
