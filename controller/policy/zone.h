// Time zones by their IANA names, from the host's own tzdata. Which library reads it is a matter of
// zone.cpp alone.
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"

namespace sluice {

using Instant = std::chrono::sys_seconds;
using LocalTime = std::chrono::local_seconds;  // what a clock on the wall there shows

class Zone {
  public:
    // "Europe/Berlin"; "UTC" needs no tzdata. ErrorCode::failed where there is none of that name.
    static Result<Zone> find(const std::string& name);

    [[nodiscard]] LocalTime local(Instant instant) const;
    // When clocks there show that time: the first time they do, and the last. Where they are set
    // over it, both are the moment at which that is done.
    [[nodiscard]] Instant first(LocalTime time) const;
    [[nodiscard]] Instant last(LocalTime time) const;

  private:
    explicit Zone(const void* zone) : zone_(zone) {}

    const void* zone_;  // the library's, which outlives us; nullptr: UTC
};

}  // namespace sluice
