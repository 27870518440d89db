/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Per-source state: set-associative, one cache line a set, one word per (source, service, limit).
 */
#ifndef SLUICE_SOURCE_H
#define SLUICE_SOURCE_H

#include "gcra.h"
#include "hash.h"
#include "mode.h"

#define SLUICE_SET_WORDS 7

/*
 * All words of one source at one service lie in one set, so a packet touches one line for its
 * source and one for its prefix. A word's tag hashes source, service, scope and dimension; an idle
 * word (TAT in the past) carries nothing and is free to take.
 */
struct sluice_source_set {
    __u64 touched; /* monotonic ns of a recent visit; a quarter of the time range later: cleared */
    __u64 word[SLUICE_SET_WORDS];
};
SLUICE_ASSERT_SIZE(struct sluice_source_set, SLUICE_LINE);

/* How stale `touched` may get before a visitor writes it: seldom enough to cost nothing. */
#define SLUICE_TOUCH_NS (1ull << 40)

/* Pseudo-dimensions: a jail is a word of its own, whose TAT is its end. One set in observe mode
 * has another tag, so going to enforce finds no jails that were only ever rehearsed. */
#define SLUICE_JAIL 4
#define SLUICE_SHADOW_JAIL 5

/*
 * Pseudo-dimensions as well: where a source is heavy on several hosts, the part of a limit that
 * this host leaves to it. The word's TAT is the end of that; 1/part, as 6.10 fixed point, stands in
 * its low bits, which make the end inexact by 67 ms.
 */
#define SLUICE_PART(dimension) (6u + (dimension))
#define SLUICE_PART_MASK 0xffffu
#define SLUICE_PART_SHIFT 6 /* to 16.16 */

SLUICE_INLINE __u64 sluice_part_word(__u64 tag, __u64 until_units, __u32 inverse_part) {
    const __u64 end = until_units & ~(__u64)SLUICE_PART_MASK;
    return sluice_word(tag, end | (inverse_part >> SLUICE_PART_SHIFT & SLUICE_PART_MASK));
}

/* 1/part as 16.16: 1 where the word's time is over, or can't be that of a part. Never less, so
 * that no word widens a limit. */
SLUICE_INLINE __u32 sluice_inverse_part(__u64 word, __u64 now_units) {
    const __s64 ahead = sluice_ahead(word, now_units);
    const __u32 inverse = (__u32)(word & SLUICE_PART_MASK) << SLUICE_PART_SHIFT;
    return ahead <= 0 || ahead > (__s64)(sluice_units(SLUICE_PART_NS) + SLUICE_PART_MASK) ||
                   inverse < SLUICE_SCALE_ONE
               ? SLUICE_SCALE_ONE
               : inverse;
}

/* Where the state of one (source or prefix, service) lies. */
struct sluice_slot {
    __u32 set; /* before masking by the table's size */
    __u32 tag; /* of dimension 0 */
};

SLUICE_INLINE struct sluice_slot sluice_source_slot(const volatile struct sluice_seed* seed,
                                                    __u64 source_hash, __u32 service, __u32 scope) {
    const __u64 h = sluice_rehash(seed, source_hash, (__u64)service * 2 + scope + 1);
    struct sluice_slot slot = {(__u32)(h >> 32), (__u32)h};
    return slot;
}

/* Odd and large, so that the tags of one source's dimensions differ. */
#define SLUICE_TAG_STEP 0x9e3779u

SLUICE_INLINE __u64 sluice_tag(__u32 tag, __u32 dimension) {
    return (tag + dimension * SLUICE_TAG_STEP) & SLUICE_TAG_MASK;
}

#endif
