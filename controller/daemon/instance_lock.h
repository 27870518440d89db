// One daemon a gate: a lock that only root can take, and that goes with its holder.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

class InstanceLock {
  public:
    // Waits for nobody; names the holder where there is one.
    static Result<InstanceLock> take(const std::string& pin_dir);

  private:
    explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

}  // namespace sluice
