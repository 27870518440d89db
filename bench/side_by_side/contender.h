// One of those that are measured, at the edge of a lane of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bare_program.h"
#include "base/result.h"
#include "lane.h"
#include "measured_gate.h"
#include "setup.h"

namespace sluice::bench {

class Contender {
  public:
    virtual ~Contender() = default;
    Contender(const Contender&) = delete;
    Contender& operator=(const Contender&) = delete;

    [[nodiscard]] virtual bool can(const Setup& setup) const = 0;
    // Does nothing where this is in force already.
    Status apply(const Setup& setup);
    // Makes the next apply() start from nothing: what is kept of sources is forgotten.
    void renew() { in_force_.reset(); }
    // Packets that it let through since it was made.
    virtual Result<uint64_t> passed() = 0;
    // Reads the whole list of bans.
    virtual Status dump() { return {}; }

    [[nodiscard]] const Lane& lane() const { return lane_; }

  protected:
    explicit Contender(Lane lane) : lane_(std::move(lane)) {}
    virtual Status change(const Setup& setup) = 0;

  private:
    Lane lane_;
    std::optional<Setup> in_force_;
};

using MadeContender = Result<std::unique_ptr<Contender>>;

MadeContender make_bare(const BareProgram& programs);
MadeContender make_gate(const GateOptions& options);
// Below: ErrorCode::not_found where it is not installed.
MadeContender make_xdp_filter();
MadeContender make_nftables();
MadeContender make_hashlimit();
MadeContender make_ipset();

// Everybody there is. A pointer without one: not on this machine.
struct Cast {
    std::unique_ptr<Contender> bare, xdp_filter, nftables, hashlimit, ipset;
    // For bans, many services and one limit of 100,000 sources; then, as a gate's table of sources
    // is made for what its policy says, for more limits, and for a million.
    std::unique_ptr<Contender> gate, bytes_gate, all_gate, large_gate, large_bytes_gate;
    std::vector<std::string> missing;  // name and reason

    static Result<Cast> make(const BareProgram& programs);
};

}  // namespace sluice::bench
