// Another XDP program on the interface that the gate guards, put there as other tools do it.
#pragma once

#include <cstdint>
#include <memory>

struct neighbour_bpf;  // the generated skeleton
struct xdp_program;

namespace sluice::lab {

class Neighbour {
  public:
    Neighbour();
    ~Neighbour();
    Neighbour(const Neighbour&) = delete;
    Neighbour& operator=(const Neighbour&) = delete;

    // Under libxdp's dispatcher. These two in the namespace of the interface.
    [[nodiscard]] bool join(unsigned interface_index, bool native = true);
    [[nodiscard]] bool leave();

    [[nodiscard]] uint32_t program_id() const;
    [[nodiscard]] uint64_t seen() const;

  private:
    struct SkeletonDeleter {
        void operator()(neighbour_bpf* skeleton) const noexcept;
    };
    struct ProgramDeleter {
        void operator()(xdp_program* program) const noexcept;
    };

    std::unique_ptr<neighbour_bpf, SkeletonDeleter> skeleton_;
    std::unique_ptr<xdp_program, ProgramDeleter> program_;
    int interface_index_ = 0;
};

}  // namespace sluice::lab
