/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Modes and timed switches: what is in force now and what comes back by itself, in one word. */
#ifndef SLUICE_MODE_H
#define SLUICE_MODE_H

#include "types.h"

/* From lenient to strict: of gate, service and rule the smallest wins. */
enum sluice_mode {
    SLUICE_MODE_OFF = 0,
    SLUICE_MODE_OBSERVE = 1,
    SLUICE_MODE_ENFORCE = 2,
};

/* Who set what is in force. */
enum sluice_origin {
    SLUICE_ORIGIN_POLICY = 0,
    SLUICE_ORIGIN_OPERATOR = 1,
    SLUICE_ORIGIN_FLEET = 2,
};

/* Deadlines are monotonic time in units of 2^20 ns (1.05 ms), rounded up: 48 bits are 9,000 years.
 */
#define SLUICE_DEADLINE_SHIFT 20
#define SLUICE_NEVER (~0ull) /* a deadline in ns that never comes */

/*
 * A switch is one 64-bit word, so that one store changes it and the packet path alone takes it
 * back on time:
 *   bits 0..3 value now · 4..7 value after the deadline · 8..11 the policy's value
 *   bits 12..13 origin of the value now · 14 waits for a confirmation
 *   15 the value after the deadline is an override, too · 16..63 deadline, 0 = none
 * Values are modes, or the index of a policy half.
 */
struct sluice_switch {
    __u64 word;
    __u64 then_ns; /* monotonic ns at which a confirmed change ends; 0 = stays */
};
SLUICE_ASSERT_SIZE(struct sluice_switch, 16);

#define SLUICE_SWITCH_CONFIRM (1ull << 14)
#define SLUICE_SWITCH_AFTER_OVERRIDE (1ull << 15)

SLUICE_INLINE __u64 sluice_deadline_from_ns(__u64 ns) {
    return (ns + (1ull << SLUICE_DEADLINE_SHIFT) - 1) >> SLUICE_DEADLINE_SHIFT;
}

SLUICE_INLINE __u64 sluice_switch_make(__u64 now, __u64 after, __u64 policy, __u64 origin,
                                       __u64 confirm, __u64 deadline) {
    return now | after << 4 | policy << 8 | origin << 12 | confirm << 14 | deadline << 16;
}

SLUICE_INLINE __u64 sluice_switch_deadline(__u64 word) {
    return word >> 16;
}

/* The value in force at `now_ns`. */
SLUICE_INLINE __u32 sluice_switch_value(__u64 word, __u64 now_ns) {
    const __u64 deadline = sluice_switch_deadline(word);
    const __u32 expired = deadline && (now_ns >> SLUICE_DEADLINE_SHIFT) >= deadline;
    return (__u32)(expired ? word >> 4 : word) & 15;
}

/* Rules of a service: scope × dimension. */
#define SLUICE_DIMENSIONS 4
#define SLUICE_SCOPES 3
#define SLUICE_RULES (SLUICE_SCOPES * SLUICE_DIMENSIONS)

enum sluice_scope {
    SLUICE_PER_SOURCE = 0,
    SLUICE_PER_PREFIX = 1,
    SLUICE_BUDGET = 2,
};

enum sluice_dimension {
    SLUICE_CONNECTIONS = 0, /* TCP SYN without ACK */
    SLUICE_DATA = 1,        /* TCP segments with payload, UDP datagrams */
    SLUICE_PACKETS = 2,
    SLUICE_BYTES = 3, /* of the frame with its L2 header */
};

SLUICE_INLINE __u32 sluice_rule(__u32 scope, __u32 dimension) {
    return scope * SLUICE_DIMENSIONS + dimension;
}

/* The switches of one service, by stable id. */
struct sluice_service_switches {
    struct sluice_switch service;
    struct sluice_switch rule[SLUICE_RULES];
    __u64 reserved[6];
};
SLUICE_ASSERT_SIZE(struct sluice_service_switches, 256);

#endif
