#include "observe/timestamp.h"

#include <array>
#include <cstdio>
#include <ctime>

namespace sluice {

namespace {

constexpr int64_t kSecond = 1'000'000'000;

int64_t clock_ns(clockid_t clock) {
    timespec now{};
    (void)::clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * kSecond + now.tv_nsec;
}

}  // namespace

uint64_t wall_clock_ns() {
    return static_cast<uint64_t>(clock_ns(CLOCK_REALTIME));
}

std::string format_timestamp(uint64_t wall_ns) {
    const auto seconds = static_cast<std::time_t>(wall_ns / kSecond);
    std::tm parts{};
    if (::gmtime_r(&seconds, &parts) == nullptr)
        return "?";
    std::array<char, 64> text{};
    const size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    (void)std::snprintf(text.data() + length, text.size() - length, ".%06uZ",
                        static_cast<unsigned>(wall_ns % kSecond / 1000));
    return text.data();
}

int64_t wall_minus_monotonic_ns() {
    return clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
}

}  // namespace sluice
