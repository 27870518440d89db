// One daemon a pin directory: a lock beside the pins, which goes with its holder, however he ends.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

class InstanceLock {
  public:
    // Names the holder where there is one.
    static Result<InstanceLock> take(const std::string& pin_dir);

  private:
    explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

}  // namespace sluice
