// One source under one limit, with invented time: the steps of the packet path, without a kernel.
#pragma once

#include <sluice/gcra.h>

#include <cstdint>

namespace sluice {

class GcraBucket {
  public:
    explicit GcraBucket(const sluice_limit& limit, uint32_t inverse_scale = SLUICE_SCALE_ONE)
        : limit_(limit), inverse_scale_(inverse_scale) {}

    // Whether a packet that counts `n` passes at `now_ns`.
    bool admit(uint64_t now_ns, uint64_t n = 1) {
        const uint64_t cost = sluice_cost(&limit_, n, inverse_scale_, dither_);
        const uint64_t now = sluice_units(now_ns);
        const uint64_t owed = sluice_owed(word_, now, limit_.span, cost);
        if (!sluice_admits(owed, limit_.span, cost))
            return false;
        word_ = sluice_word(kTag, now + owed + cost);
        dither_ += kDitherStep;
        return true;
    }

    // How many of `tries` packets pass at once.
    uint64_t admit_of(uint64_t now_ns, uint64_t tries) {
        uint64_t passed = 0;
        for (uint64_t i = 0; i < tries; ++i)
            passed += admit(now_ns) ? 1 : 0;
        return passed;
    }

    [[nodiscard]] uint64_t word() const { return word_; }

  private:
    static constexpr uint64_t kTag = 0x2a;
    static constexpr uint64_t kDitherStep = 0x9e3779b97f4a7c15ULL;

    sluice_limit limit_;
    uint32_t inverse_scale_;
    uint64_t word_ = 0;
    uint64_t dither_ = 0x1234567890abcdefULL;
};

}  // namespace sluice
