// Limits of one source at one service that hosts of a fleet share: how much of them is in use here,
// and the part of them that is left to this host. Kept beside the limits' own state, where the
// packet path looks at it without a look-up of its own.
#pragma once

#include <sluice/source.h>

#include <chrono>
#include <cstdint>
#include <optional>

#include "gate/tables.h"
#include "net/address.h"
#include "policy/policy.h"

namespace sluice {

// The smallest part that a word holds: among more hosts than that, each has more than its due.
inline constexpr double kLeastPart = 1.0 / 63;

struct Part {
    double part = 1;  // of the limit, above 0, up to 1
    std::chrono::nanoseconds left{};
};

// What such a word says at a time; nothing where it is over, or none.
std::optional<Part> read_part(uint64_t word, uint64_t now_ns);

// When limits are looked at. Most are reckoned by the coarse clock, which moves on once a tick.
struct SampleTime {
    uint64_t tick_ns = 0;  // the coarse clock
    uint64_t now_ns = 0;   // the fine one
};
SampleTime sample_time();

// One look at a limit. Over many looks at random times, Σ busy ÷ Σ looked is the part of the limit
// (of this host's part of it) that is used, and the part of the looks that find it full is that of
// the packets that are refused.
struct UseSample {
    double looked_ns = 0;
    double busy_ns = 0;
    bool is_full = false;
};

// The set of words that one source, as limits count it, or one prefix has at one service.
class SourceWords {
  public:
    SourceWords(const Tables& tables, uint64_t source_hash, uint32_t service_id, uint32_t scope);

    // The word of a dimension or pseudo-dimension; 0 where there is none.
    [[nodiscard]] uint64_t find(uint32_t dimension) const;
    // Writes it over the one that is there, or over one that is idle. False where there is neither.
    [[nodiscard]] bool put(uint32_t dimension, uint64_t tat_units, uint64_t now_units) const;
    [[nodiscard]] uint64_t touched_ns() const { return set_->touched; }

  private:
    sluice_source_set* set_;
    uint32_t tag_;
};

class SourceParts {
  public:
    // By the policy in force.
    SourceParts(const Tables& tables, const IpAddress& source, uint32_t service_id);

    // Holds until `until_ns` of the gate's clock, at most SLUICE_PART_NS from now, whether anybody
    // is alive by then or not. False where the source's set has no room: then its whole limit
    // holds.
    [[nodiscard]] bool put(Dimension dimension, double part, uint64_t until_ns) const;
    // The whole limit holds again.
    void drop(Dimension dimension) const;
    // Nothing where the whole limit holds.
    [[nodiscard]] std::optional<Part> find(Dimension dimension) const;
    // `source_class` as the packet path has it; 0: none.
    [[nodiscard]] UseSample use(Dimension dimension, uint8_t source_class,
                                const SampleTime& time) const;

  private:
    const Tables* tables_;
    uint32_t service_id_;
    SourceWords words_;
};

// The source as limits count it: an address, or the network's first.
IpAddress counted_source(const Tables& tables, const IpAddress& source);

// Whether the packet path looks for parts at all.
void heed_parts(const Tables& tables, bool any);
bool are_parts_heeded(const Tables& tables);

}  // namespace sluice
