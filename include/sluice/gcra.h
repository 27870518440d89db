/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The generic cell rate algorithm on one 64-bit word: tag, then the theoretical arrival time (TAT)
 * in units of 2^10 ns, modulo 2^40. No helpers and no clock of its own: the same source runs in
 * the kernel, in unit tests with invented time, and in `why`.
 */
#ifndef SLUICE_GCRA_H
#define SLUICE_GCRA_H

#include "limits.h"
#include "types.h"

#define SLUICE_TAT_MASK ((1ull << SLUICE_TAT_BITS) - 1)
#define SLUICE_TAG_BITS (64 - SLUICE_TAT_BITS)
#define SLUICE_TAG_MASK ((1ull << SLUICE_TAG_BITS) - 1)
#define SLUICE_MAX_COST (SLUICE_MAX_SPAN_NS >> SLUICE_UNIT_SHIFT)

/*
 * One limit, compiled. A charge of n costs n × multiplier × 2^8 / 2^shift units; what is less than
 * a unit is dithered, so that it is exact in the mean at any rate.
 */
struct sluice_limit {
    __u64 span;       /* burst in time: burst × cost, units of 2^10 ns; 0 = no limit */
    __u32 multiplier; /* at most 2^32 - 1 */
    __u8 shift;       /* 0..40 */
    __u8 exact;       /* 1: decide near the limit by the fine clock; 0: coarse, span lowered */
    __u16 reserved;
};
SLUICE_ASSERT_SIZE(struct sluice_limit, 16);

/* 1/scale as 16.16 fixed point; what a source without a class has. */
#define SLUICE_SCALE_ONE (1u << 16)

/* Two scales at once, both as 1/scale in 16.16, within what costs are reckoned for. */
SLUICE_INLINE __u32 sluice_both_scales(__u32 inverse_scale, __u32 other) {
    const __u64 both = (__u64)inverse_scale * other >> 16;
    return both < SLUICE_MAX_SCALE * SLUICE_SCALE_ONE ? (__u32)both
                                                      : SLUICE_MAX_SCALE * SLUICE_SCALE_ONE;
}

/*
 * Units that `n` cost; `dither` is uniform in 64 bits; `inverse_scale` is 16.16. A super-packet
 * under a limit of a few an hour costs no more than the word can hold.
 */
SLUICE_INLINE __u64 sluice_cost(const struct sluice_limit* limit, __u64 n, __u32 inverse_scale,
                                __u64 dither) {
    __u64 multiplier = limit->multiplier;
    if (inverse_scale != SLUICE_SCALE_ONE)
        multiplier = multiplier * inverse_scale >> 16;
    const __u64 cost =
        ((n * multiplier << 8) + ((dither >> 1) >> (63 - limit->shift))) >> limit->shift;
    return cost < SLUICE_MAX_COST ? cost : SLUICE_MAX_COST;
}

SLUICE_INLINE __u64 sluice_units(__u64 now_ns) {
    return now_ns >> SLUICE_UNIT_SHIFT;
}

/* How far a word's TAT lies in the future, in units; negative = it is in the past. */
SLUICE_INLINE __s64 sluice_ahead(__u64 word, __u64 now_units) {
    return (__s64)((word - now_units) << SLUICE_TAG_BITS) >> SLUICE_TAG_BITS;
}

/*
 * Units still owed at `now`: 0 for an idle word, and for one so far ahead that no charge under
 * this limit can have set it (a leftover of another policy): when in doubt the packet passes.
 */
SLUICE_INLINE __u64 sluice_owed(__u64 word, __u64 now_units, __u64 span, __u64 cost) {
    const __s64 ahead = sluice_ahead(word, now_units);
    return ahead <= 0 || (__u64)ahead > 2 * span + SLUICE_MAX_DEBT * cost ? 0 : (__u64)ahead;
}

/* A charge that is larger than the whole burst passes a full bucket only, and leaves a debt. */
SLUICE_INLINE __u32 sluice_admits(__u64 owed, __u64 span, __u64 cost) {
    return owed + (cost < span ? cost : span) <= span;
}

SLUICE_INLINE __u64 sluice_word(__u64 tag, __u64 tat_units) {
    return tag << SLUICE_TAT_BITS | (tat_units & SLUICE_TAT_MASK);
}

#endif
