/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Strict windows of connections: at most N in any W, by log (N ≤ 16) or by conservative cells. */
#ifndef SLUICE_WINDOW_H
#define SLUICE_WINDOW_H

#include <linux/bpf.h>

#include "limits.h"
#include "types.h"

/* Times in a window are monotonic, in units of 2^20 ns, modulo 2^32 (52 days). */
#define SLUICE_WINDOW_SHIFT 20

/*
 * One source at one service.
 * Log: a ring of the last 16 admissions' times, 0 = none; with N of them in the last W it is full.
 * Cells: the window is cut into 15, slot[epoch % 16] = (epoch mod 2^16) << 16 | count. Sixteen
 * cells cover any window, so their sum never understates it: 15/16 of N are served at the least.
 */
struct sluice_window {
    __u64 key;    /* hash of (source, service); 0 = free */
    __u32 newest; /* time of the last admission */
    __u32 head;   /* log: admissions so far; cells: SLUICE_WINDOW_CELLS */
    __u32 slot[SLUICE_WINDOW_SLOTS];
};
SLUICE_ASSERT_SIZE(struct sluice_window, 80);

#define SLUICE_WINDOW_CELLS (1u << 31)

#define SLUICE_WINDOWS_PER_SET 3

/* Admissions take the lock; a drop only reads. */
struct sluice_window_set {
    struct bpf_spin_lock lock;
    __u32 reserved;
    __u64 touched; /* monotonic ns of the last admission; long ago = everything here is stale */
    struct sluice_window window[SLUICE_WINDOWS_PER_SET];
};
SLUICE_ASSERT_SIZE(struct sluice_window_set, 256);

/* A compiled strict window. */
struct sluice_window_limit {
    __u32 limit;   /* N; 0 = none */
    __u32 length;  /* W in window units, rounded up, plus one unit and the clock's lag */
    __u64 cell_ns; /* length of a cell where N > SLUICE_WINDOW_SLOTS, else 0 */
};
SLUICE_ASSERT_SIZE(struct sluice_window_limit, 16);

#endif
