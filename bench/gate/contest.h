// The contest: the gate and a bare drop take turns at the receiving end of one veth pair.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cases.h"
#include "gate/program.h"
#include "gate/tables.h"

struct bare_bpf;  // the generated skeleton

namespace sluice::bench {

struct Round {
    double bare_ns = 0;  // a packet, all the way from the generator
    double gate_ns = 0;
};

struct Measurement {
    std::vector<Round> rounds;
    uint64_t sent = 0;      // to the gate
    uint64_t as_meant = 0;  // of those, with the verdict of the case
};

struct ContestOptions {
    unsigned cpu = 0;
    unsigned rounds = 9;
    uint64_t packets = 400'000;  // a contestant and round
};

class Contest {
  public:
    // Makes a network namespace for this process, and the gate's tables in a pin directory that
    // goes with the contest.
    static Result<Contest> make(const ContestOptions& options);
    Contest(Contest&&) = default;
    Contest& operator=(Contest&&) = default;
    ~Contest();

    Result<Measurement> run(const Case& which);
    [[nodiscard]] uint32_t gate_bytes() const;  // of machine code

  private:
    struct BareDeleter {
        void operator()(bare_bpf* skeleton) const noexcept;
    };

    Contest() = default;
    // Lets a program receive, and ns a packet that way.
    Result<double> turn(int program, lab::Flood& flood, uint64_t warm_up);

    ContestOptions options_;
    int receiver_ = 0;  // interface index
    std::unique_ptr<Tables> tables_;
    std::unique_ptr<Program> gate_;
    std::unique_ptr<bare_bpf, BareDeleter> bare_;
};

}  // namespace sluice::bench
