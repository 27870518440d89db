// The programs that decide nothing: all dropped, or all passed.
#pragma once

#include <memory>

#include "base/result.h"

struct bare_bpf;  // the generated skeleton

namespace sluice::bench {

class BareProgram {
  public:
    static Result<BareProgram> load();

    [[nodiscard]] int drop() const;  // descriptors
    [[nodiscard]] int pass() const;

  private:
    struct Deleter {
        void operator()(bare_bpf* skeleton) const noexcept;
    };

    BareProgram() = default;
    std::unique_ptr<bare_bpf, Deleter> skeleton_;
};

}  // namespace sluice::bench
