// The contest: the gate and a bare drop take turns, each at the receiving end of its own veth pair.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bare_program.h"
#include "base/result.h"
#include "cases.h"
#include "lane.h"
#include "measured_gate.h"

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
    static Result<Contest> make(const ContestOptions& options);

    Result<Measurement> run(const Case& which);
    [[nodiscard]] uint32_t gate_bytes() const { return gate_->machine_code_bytes(); }

  private:
    Contest() = default;

    ContestOptions options_;
    std::optional<Lane> bare_lane_, gate_lane_;
    std::optional<MeasuredGate> gate_;
    std::optional<BareProgram> bare_;
};

}  // namespace sluice::bench
