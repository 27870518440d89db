// A rehearsal of the loss of Redis: until its end this host asks Redis nothing, and goes on as it
// would if Redis were gone. For all threads; it ends by itself, and with the process.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/result.h"

namespace sluice {

class RedisDrill {
  public:
    // Longer than a rehearsal takes, shorter than anybody forgets it.
    static constexpr std::chrono::minutes kLongest{10};

    // From now on for so long, in place of one that is under way.
    void begin(std::chrono::nanoseconds time);
    // Zero where there is none.
    [[nodiscard]] std::chrono::nanoseconds left() const;
    // To be asked before Redis is: an error while a drill is on.
    [[nodiscard]] Status check() const;

  private:
    std::atomic<int64_t> until_ns_{0};  // of steady_clock
};

}  // namespace sluice
