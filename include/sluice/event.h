/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Sampled packets, dropped and passed: what the ring buffer carries. */
#ifndef SLUICE_EVENT_H
#define SLUICE_EVENT_H

#include "types.h"

/* Tokens that an event costs, so that a CPU can earn a fraction of one each tick. */
#define SLUICE_EVENT_COST 1024u

#define SLUICE_EVENT_WOULD 1u /* observe mode: counted, not dropped */
#define SLUICE_EVENT_FIRST 2u /* favoured: the first drop of this (source, verdict) in a minute */
#define SLUICE_EVENT_CONNECTION 4u /* SYN without ACK */

struct sluice_event {
    __u64 time_ns; /* monotonic */
    __u8 source[16];
    __u8 destination[16];
    __u16 source_port; /* host order; 0 where there is none */
    __u16 destination_port;
    __u8 protocol;
    __u8 verdict; /* enum sluice_verdict */
    __u8 rule;    /* sluice_rule(), or 255 where no limit is at work */
    __u8 flags;
    __u16 service;   /* stable id */
    __u16 interface; /* slot */
    __u32 cpu;
    __u64 count; /* of this verdict here (CPU, interface, service), this one included */
    __u64 policy_version;
    __u64 measured; /* how far ahead of the limit, ns; 0 where it means nothing */
};
SLUICE_ASSERT_SIZE(struct sluice_event, 80);

#define SLUICE_EVENT_NO_RULE 255u

#endif
