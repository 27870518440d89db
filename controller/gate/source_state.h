// What the packet path has noted about one source at one service: read in place, never written.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "gate/source_parts.h"
#include "gate/tables.h"
#include "net/address.h"

namespace sluice {

// One limit as a packet would find it.
struct LimitState {
    bool admits = true;
    uint64_t burst = 0;               // with the class's scale and part; the limit of a window
    uint64_t available = 0;           // of it
    std::chrono::nanoseconds wait{};  // until a packet that is refused now would pass
};

class SourceState {
  public:
    // Of the policy in force. `source_class` is 0 for a source without a class.
    SourceState(const Tables& tables, const IpAddress& source, uint32_t service_id,
                uint8_t source_class);

    // A bucket per source or prefix that the service has, for a packet that counts `units`.
    [[nodiscard]] LimitState bucket(uint32_t scope, uint32_t dimension, uint64_t units) const;
    // The strict window of connections, where the service has one.
    [[nodiscard]] Result<LimitState> window() const;
    // The part of a limit per source that the fleet leaves to this host, where it is not all of it.
    [[nodiscard]] std::optional<Part> part(uint32_t dimension) const;
    // Whether it was let through within this time, as far as its buckets show: with a burst that
    // takes long to come back it may have been earlier by that, and no bucket tells nothing.
    [[nodiscard]] bool passed_within(std::chrono::nanoseconds time) const;
    // How long its jail still lasts; the shadow one is what observe mode set.
    [[nodiscard]] std::optional<std::chrono::nanoseconds> jail(bool shadow) const;

  private:
    [[nodiscard]] uint64_t masked_hash(uint32_t scope) const;
    // A word of the source's set; 0 where there is none.
    [[nodiscard]] uint64_t word(uint32_t scope, uint32_t dimension) const;
    // The word of a part; 0 where none is looked for.
    [[nodiscard]] uint64_t part_word(uint32_t dimension) const;

    const Tables* tables_;
    const sluice_policy* policy_;
    const sluice_service* service_;
    sluice_address source_;
    bool ipv6_;
    uint32_t service_id_;
    uint32_t inverse_scale_;
    uint64_t now_ns_;
};

// A service's budget on this host, as a packet would find it whose CPU holds no lease.
struct BudgetState {
    bool admits = true;
    bool is_short = false;  // then new connections wait
    double shed = 0;        // share of sources that wait, 0 to 1
    uint64_t burst = 0;
    uint64_t available = 0;
    std::chrono::nanoseconds wait{};
};
BudgetState budget_state(const Tables& tables, uint32_t service_id, uint32_t dimension,
                         uint64_t units);
// Whether this source is among those that wait until the next rotation.
bool is_shed(const Tables& tables, const IpAddress& source, uint32_t service_id,
             uint32_t dimension);

}  // namespace sluice
