// Wall clock times as logs carry them: RFC 3339, UTC.
#pragma once

#include <cstdint>
#include <string>

namespace sluice {

// ns since 1970.
uint64_t wall_clock_ns();
// "2026-11-29T20:05:33.123456Z"; strings of this form sort by time.
std::string format_timestamp(uint64_t wall_ns);

// What to add to a monotonic time to get the wall clock's.
int64_t wall_minus_monotonic_ns();

}  // namespace sluice
