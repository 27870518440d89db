/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What is fixed when one program instance is loaded; set by controller/gate/program.cpp. */
#ifndef SLUICE_BPF_CONFIG_H
#define SLUICE_BPF_CONFIG_H

#include <sluice/gate.h>

/* Which of the gate's interfaces this instance serves. */
const volatile __u32 interface_slot = 0;
/* 1 under a dispatcher, where two generations can see the same packet while one replaces the
 * other; alone on an interface, replacement is atomic. */
const volatile __u32 chained = 0;
/* Under a dispatcher: the instance acts while the interface's generation is its own. */
const volatile __u32 generation = 0;
/* enum sluice_clock. */
const volatile __u32 clock_source = SLUICE_CLOCK_KERNEL;
/* How far the coarse clock may lag behind the fine one, ns. */
const volatile __u32 coarse_lag_ns = 0;
/* Frames longer than this are super-packets of several segments, bytes with L2 header. */
const volatile __u32 largest_frame = 1518;
/* 1 where the kernel has multi-buffer XDP and its helpers (5.18). */
const volatile __u32 multi_buffer = 1;
/* 0 in tests that compare: every packet goes the general way. */
const volatile __u32 plain_path = 1;
/* For measurements only: 1 drops every packet once it is decided and counted, so that what lies
 * behind the gate costs nothing. */
const volatile __u32 drop_all = 0;

/* Table sizes: masks where they are powers of two. */
const volatile __u32 cpu_mask = 0;
const volatile __u32 interface_slots = 1;
const volatile __u32 service_capacity = 1;
const volatile __u32 source_set_mask = 0;
const volatile __u32 window_set_mask = 0;

/* The secret of the tables' hashes, copied from the gate. */
const volatile struct sluice_seed seed = {};

#endif
