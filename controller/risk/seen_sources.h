// Which sources the gate has seen lately, by its sampled events, and which of them are verified:
// known to have completed a handshake. For one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "net/address.h"

namespace sluice {

class SeenSources {
  public:
    // Whoever was seen within this time is there; whoever was verified within the other is active.
    static constexpr uint64_t kSeenMs = 60'000;
    static constexpr uint64_t kVerifiedMs = 3'600'000;
    // As many as a host's events name in a minute at their usual rate; a few MiB.
    static constexpr size_t kMost = size_t{1} << 16;

    void see(const Prefix& source, uint64_t now_ms);
    // Whether that is news of the last hour.
    bool verify(const Prefix& source, uint64_t now_ms);

    [[nodiscard]] bool is_seen(const Prefix& source, uint64_t now_ms) const;
    [[nodiscard]] bool is_verified(const Prefix& source, uint64_t now_ms) const;
    [[nodiscard]] size_t verified(uint64_t now_ms) const;
    // Forgets who was neither; to be called now and then.
    void tidy(uint64_t now_ms);

  private:
    struct Times {
        uint64_t seen_ms = 0;
        uint64_t verified_ms = 0;  // 0: never
    };
    struct Hash {
        size_t operator()(const Prefix& source) const;
    };
    Times* find_or_add(const Prefix& source, uint64_t now_ms);

    std::unordered_map<Prefix, Times, Hash> sources_;
};

}  // namespace sluice
