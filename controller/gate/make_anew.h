// What to say where only new tables help: everything in the old ones goes with them.
#pragma once

#include <string_view>

namespace sluice {

// Both follow upon something that cannot be done with these tables.
inline constexpr std::string_view kMakeAnew =
    "detach all interfaces and attach anew, which removes bans and counters";
inline constexpr std::string_view kKeepBans =
    "to keep the bans, without their ends: sluicectl bans --limit 0 >FILE before, sluicectl bans "
    "import FILE after";

}  // namespace sluice
