// One loaded instance of the gate's XDP program, bound to the pinned tables.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "gate/tables.h"

struct sluice_bpf;  // the generated skeleton, in the global namespace

namespace sluice {

// What this kernel lets the gate do.
struct KernelFeatures {
    std::string release;
    bool multi_buffer = false;  // XDP frags and bpf_xdp_get_buff_len: 5.18
    bool dispatcher = false;    // extension programs, which libxdp's dispatcher is made of
};

// Refuses kernels below 5.15 and says why.
Result<KernelFeatures> probe_kernel();

struct ProgramOptions {
    uint32_t interface_slot = 0;
    uint32_t generation = 0;
    bool chained = false;           // runs under a dispatcher
    bool settable_clock = false;    // time is gate.test_now_ns: tests and replay
    bool plain_path = true;         // false in tests: even plain packets go the general way
    uint32_t largest_frame = 1518;  // MTU + 18; longer ones are super-packets
};

struct SkeletonDeleter {
    void operator()(sluice_bpf* skeleton) const noexcept;
};
using Skeleton = std::unique_ptr<sluice_bpf, SkeletonDeleter>;

class Program {
  public:
    // Opens the object, sets its constants and points its maps at `tables`. Not loaded yet: under
    // a dispatcher libxdp loads it in its own way.
    static Result<Program> open(const Tables& tables, const KernelFeatures& kernel,
                                const ProgramOptions& options);
    // open() and load into the kernel.
    static Result<Program> load(const Tables& tables, const KernelFeatures& kernel,
                                const ProgramOptions& options);

    [[nodiscard]] int fd() const;
    [[nodiscard]] uint32_t id() const;  // the kernel's; 0 where that cannot be read
    [[nodiscard]] sluice_bpf* skeleton() const { return skeleton_.get(); }

  private:
    explicit Program(Skeleton skeleton) : skeleton_(std::move(skeleton)) {}
    Skeleton skeleton_;
};

}  // namespace sluice
