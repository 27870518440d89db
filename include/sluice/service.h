/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The compiled policy: which service a packet belongs to, and what limits hold there. */
#ifndef SLUICE_SERVICE_H
#define SLUICE_SERVICE_H

#include "gcra.h"
#include "mode.h"
#include "window.h"

/* A compiled budget: leases of `lease` units that cost `lease_ns` each. */
struct sluice_budget_limit {
    __u64 burst_ns; /* burst ÷ rate; 0 = no limit, only counted */
    __u64 lease_ns; /* time of one lease at the rate */
    __u32 lease;    /* units, at least 1 */
    __u32 flush;    /* demand that a CPU may hold back before it adds it to the shared sum */
    __u32 exact;    /* 1: too small a burst for the coarse clock */
    __u32 reserved;
};
SLUICE_ASSERT_SIZE(struct sluice_budget_limit, 32);

#define SLUICE_SERVICE_REPLY_EXEMPT 1u /* replies to this host's own connections pass */
#define SLUICE_SERVICE_SPOOFABLE 2u    /* a SYN or a datagram is evidence enough for a jail */
/* The budget of this dimension is the fleet's: the service's own limit holds without a share. */
#define SLUICE_SERVICE_SHARED(dimension) (16u << (dimension))

/* One service in one half of the policy. */
struct sluice_service {
    /* line 0: what applies at all; masks are bits 1 << dimension */
    __u8 source_limits;
    __u8 prefix_limits;
    __u8 budget_limits;
    __u8 flags;
    __u32 id;      /* stable */
    __u64 jail_ns; /* 0 = police */
    struct sluice_window_limit window;
    struct { /* host bits cleared by these give the wider prefix */
        __u64 high, low;
    } prefix_mask[2]; /* [0] IPv4, [1] IPv6 */
    /* lines 1 to 4 */
    struct sluice_limit source[SLUICE_DIMENSIONS];
    struct sluice_limit prefix[SLUICE_DIMENSIONS];
    struct sluice_budget_limit budget[SLUICE_DIMENSIONS];
};
SLUICE_ASSERT_SIZE(struct sluice_service, 320);

/* Port classes: every port of TCP and UDP, then every other protocol, belongs to one. */
#define SLUICE_PORT_LINES (65536u / 32u)
struct sluice_port_line {
    __u16 port_class[32];
};
SLUICE_ASSERT_SIZE(struct sluice_port_line, SLUICE_LINE);
/* Lines of one half: TCP ports, UDP ports, protocols. */
#define SLUICE_TCP_LINES 0u
#define SLUICE_UDP_LINES SLUICE_PORT_LINES
#define SLUICE_PROTOCOL_LINES (2 * SLUICE_PORT_LINES)
#define SLUICE_HALF_PORT_LINES (2 * SLUICE_PORT_LINES + 256u / 32u)

/* cell[group × classes + class] = service id, in lines of 32. */
struct sluice_cell_line {
    __u16 service[32];
};
#define SLUICE_HALF_CELL_LINES (SLUICE_MAX_CELLS / 32u)

/* Destination prefix → group; group 0 is "any other". */
struct sluice_destination_key {
    __u64 high, low; /* network */
    __u32 length;    /* of 128 */
    __u32 half;
};

/* What all services share, one per half. */
struct sluice_policy {
    __u64 version; /* counts applied policies on this gate */
    __u32 port_classes;
    __u32 destination_lengths; /* how many of the next are in use, longest first */
    __u8 destination_length[SLUICE_MAX_LENGTHS];
    struct { /* host bits cleared by these give the source that limits count */
        __u64 high, low;
    } source_mask[2]; /* [0] IPv4, [1] IPv6 */
    __u32 inverse_scale[SLUICE_MAX_CLASSES + 1];
    __u64 event_tokens_per_tick; /* that a CPU earns, twice: for any event, and for first ones */
    __u32 share_on_full;         /* on_table_full = "share" */
    __u32 reserved;
};

/* Who has which stable id. */
struct sluice_service_name {
    char name[SLUICE_NAME_BYTES];
    __u8 reserved[7];
    __u64 removed_ns; /* monotonic; 0 = in use or never used */
};
SLUICE_ASSERT_SIZE(struct sluice_service_name, 48);

/* The text that a half was compiled from. */
struct sluice_policy_text {
    __u64 applied_s;  /* wall clock, seconds since 1970 */
    char source[256]; /* the file's name */
    __u32 length;
    char text[SLUICE_MAX_POLICY_TEXT - 4];
};

#endif
