// LineView: which half of a table of lines is live, how large it is, and how it changes.
#pragma once

#include <sluice/ban.h>

#include <algorithm>
#include <bit>
#include <cstdint>

namespace sluice {

class LineView {
  public:
    // `capacity` is the number of lines of each half.
    LineView(__u64& word, uint32_t capacity) : word_(&word), capacity_(capacity) {}

    [[nodiscard]] uint64_t word() const { return __atomic_load_n(word_, __ATOMIC_ACQUIRE); }
    [[nodiscard]] uint32_t base() const { return static_cast<uint32_t>(word() >> 32); }
    [[nodiscard]] uint32_t lines() const { return static_cast<uint32_t>(word()) + 1; }
    [[nodiscard]] uint32_t line(uint64_t hash) const { return sluice_view_line(word(), hash); }
    [[nodiscard]] uint32_t capacity() const { return capacity_; }
    [[nodiscard]] bool can_grow() const { return lines() < capacity_; }
    [[nodiscard]] uint32_t idle_base() const { return base() == 0 ? capacity_ : 0; }

    static uint64_t make(uint32_t base, uint32_t lines) {
        return static_cast<uint64_t>(base) << 32 | (lines - 1);
    }
    // One store: a packet sees the old half or the new one, never parts of both.
    void publish(uint64_t word) const { __atomic_store_n(word_, word, __ATOMIC_RELEASE); }

    // Lines for so many entries at the fill in percent that keeps overflow rare.
    [[nodiscard]] uint32_t lines_for(uint64_t entries, uint32_t slots, uint32_t fill) const {
        const uint64_t wanted = entries * 100 / (uint64_t{slots} * fill) + 1;
        const uint64_t least = std::min(kFewestLines, capacity_);
        return static_cast<uint32_t>(std::clamp<uint64_t>(std::bit_ceil(wanted), least, capacity_));
    }

    static constexpr uint32_t kFewestLines = 1024;  // 64 KiB

  private:
    __u64* word_;
    uint32_t capacity_;
};

}  // namespace sluice
