#include "base/clocks.h"

#include <ctime>

#include "base/file.h"

namespace sluice {

namespace {

uint64_t milliseconds_of(clockid_t clock) {
    timespec time{};
    (void)::clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1000 +
           static_cast<uint64_t>(time.tv_nsec) / 1'000'000;
}

}  // namespace

uint64_t wall_clock_ms() {
    return milliseconds_of(CLOCK_REALTIME);
}

uint64_t boot_clock_ms() {
    return milliseconds_of(CLOCK_BOOTTIME);
}

// Read once: later there may be no descriptor for it.
const std::string& boot_id() {
    static const std::string id = [] {
        auto text = read_file("/proc/sys/kernel/random/boot_id").value();
        while (text.ends_with('\n'))
            text.pop_back();
        return text;
    }();
    return id;
}

Moment moment_now() {
    return {boot_id(), boot_clock_ms(), wall_clock_ms()};
}

}  // namespace sluice
