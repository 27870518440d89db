// Clocks in milliseconds: that of the wall, which may be set, and that since boot, which nobody
// sets.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// Since 1970.
uint64_t wall_clock_ms();
// Since this machine was booted; goes on while it sleeps.
uint64_t boot_clock_ms();

// Another one after each boot.
const std::string& boot_id();

// One moment by both clocks, and of which boot: to tell, when it is read from disk, how long ago it
// was.
struct Moment {
    std::string boot;
    uint64_t boot_ms = 0;
    uint64_t wall_ms = 0;
};
Moment moment_now();

}  // namespace sluice
