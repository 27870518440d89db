/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A service's budget on this host: one shared bucket, leased to CPUs in small chunks. */
#ifndef SLUICE_BUDGET_H
#define SLUICE_BUDGET_H

#include "hash.h"
#include "mode.h"
#include "service.h"

/* Shared by all CPUs, one per service; a line a rate of change. */
struct sluice_budget {
    /* written at each refill of a CPU's lease */
    __u64 tat_ns[SLUICE_DIMENSIONS]; /* monotonic: when everything leased so far is paid for */
    __u64 demand[SLUICE_DIMENSIONS]; /* units asked for so far, kept or not */
    /* written every SLUICE_STEER_NS while the service is busy */
    __u32 shed[SLUICE_DIMENSIONS]; /* share of sources that wait, of SLUICE_SHED_ALL */
    __u64 steered_ns;              /* when the shares were last computed */
    __u64 rotated_ns;              /* when `rotation` last changed */
    __u64 rotation;                /* picks which sources wait */
    __u64 reserved0[3];
    __u64 steered_demand[SLUICE_DIMENSIONS]; /* `demand` at that time */
    __u64 reserved1[4];
};
SLUICE_ASSERT_SIZE(struct sluice_budget, 3 * SLUICE_LINE);

/* A source's lot in a rotation, 16 bits: sources below the shed share wait. Hashed as an address
 * is, so that the next rotation draws anew instead of moving everybody on by the same step. */
SLUICE_INLINE __u32 sluice_lot(const volatile struct sluice_seed* seed, __u64 source_hash,
                               __u64 rotation) {
    return (__u32)(sluice_hash(seed, source_hash, rotation, 3) >> 48);
}

/* Of one CPU at one service; one line. */
struct sluice_lease {
    __u32 units[SLUICE_DIMENSIONS];  /* leased, not yet spent */
    __u32 demand[SLUICE_DIMENSIONS]; /* not yet added to the shared demand */
    __u32 dry[SLUICE_DIMENSIONS];    /* coarse time of finding the bucket dry, see sluice_dry() */
    __u32 terms[SLUICE_DIMENSIONS];  /* under which terms of a share the units were leased */
};
SLUICE_ASSERT_SIZE(struct sluice_lease, SLUICE_LINE);

/* A coarse time in 2^16 ns, which comes again after three days. */
SLUICE_INLINE __u32 sluice_dry(__u64 coarse_ns) {
    return (__u32)(coarse_ns >> 16);
}

/*
 * What the fleet lets this host have of a shared budget, and what holds once that is over, whether
 * anybody is alive by then or not.
 */
struct sluice_terms {
    struct sluice_budget_limit now, after;
};
struct sluice_share {
    struct sluice_terms terms[2]; /* one of them holds; the other is written next */
    __u64 until_ns;               /* monotonic: the end of `now` */
    __u32 number;                 /* counts changes of terms; its lowest bit picks them; 0 = none */
    __u32 reserved0;
    __u64 reserved1[6];
};
SLUICE_ASSERT_SIZE(struct sluice_share, 3 * SLUICE_LINE);

#endif
