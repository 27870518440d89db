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
