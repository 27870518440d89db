// One daemon a gate, and one a state directory: locks that only root can take, and that go with
// their holder.
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

class InstanceLock {
  public:
    // Wait for nobody; where there is a holder the error is `busy`, and names it.
    static Result<InstanceLock> of_gate(const std::string& pin_dir);
    static Result<InstanceLock> of_state(const std::string& state_dir);

  private:
    explicit InstanceLock(UniqueFd fd) : fd_(std::move(fd)) {}
    static Result<InstanceLock> take(const std::string& directory, const Error& held);
    UniqueFd fd_;
};

}  // namespace sluice
