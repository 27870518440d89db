/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The one list of verdicts: enum, names, counters, metric labels and documentation come from it. */
#ifndef SLUICE_VERDICT_H
#define SLUICE_VERDICT_H

#include "types.h"

/* X(name, what it means). Passes first, then drops. */
#define SLUICE_PASSES(X)                                                                    \
    X(pass_mode_off, "the gate is switched off")                                            \
    X(pass_not_ip, "not IP: ARP, LLDP and the like are none of our business")               \
    X(pass_essential, "neighbour discovery; in small measure ICMP errors and DHCP replies") \
    X(pass_allowed, "the source is allowed: no per-source limit, the budget still counts")  \
    X(pass_exempt, "the source is exempt from limits and budgets")                          \
    X(pass_reply, "over a limit, but it answers a connection that this host opened")        \
    X(pass_within, "within every limit that applies")                                       \
    X(pass_unlimited, "no limit applies")                                                   \
    X(pass_internal, "the gate could not decide (a missing table); never expected")

#define SLUICE_DROPS(X)                                                                \
    X(drop_malformed, "the stack would discard it too: impossible lengths or headers") \
    X(drop_banned, "the source is banned")                                             \
    X(drop_jailed, "the source is jailed at this service")                             \
    X(drop_source_connections, "over the source's rate of new connections")            \
    X(drop_source_data, "over the source's rate of data segments or datagrams")        \
    X(drop_source_packets, "over the source's rate of packets")                        \
    X(drop_source_bytes, "over the source's rate of bytes")                            \
    X(drop_source_window, "over the source's connections in a strict window")          \
    X(drop_prefix, "over a limit of the source's wider prefix")                        \
    X(drop_budget, "the service's budget is spent")                                    \
    X(drop_shed, "the service's budget is short and this source is among those that wait")

enum sluice_verdict {
    SLUICE_CONTINUE = -1, /* no verdict yet */
#define X(name, text) SLUICE_##name,
    SLUICE_PASSES(X) SLUICE_DROPS(X)
#undef X
        SLUICE_VERDICTS,
    SLUICE_FIRST_DROP = SLUICE_drop_malformed,
};

/* Counters: every verdict, then what each drop would have been in observe mode. */
#define SLUICE_COUNTERS (2 * SLUICE_VERDICTS - SLUICE_FIRST_DROP)

struct sluice_counter {
    __u64 packets;
    __u64 bytes; /* of the frame with its L2 header */
};

/* Counters of one (CPU slot, interface slot, service); whole cache lines. */
struct sluice_counters {
    struct sluice_counter by_verdict[(SLUICE_COUNTERS + 3) / 4 * 4];
};

SLUICE_INLINE __u32 sluice_is_drop(int verdict) {
    return verdict >= SLUICE_FIRST_DROP;
}

/* The counter of a verdict, or of its `would_` twin. */
SLUICE_INLINE __u32 sluice_counter_index(int verdict, __u32 would) {
    return (__u32)verdict + (would ? SLUICE_VERDICTS - SLUICE_FIRST_DROP : 0);
}

#endif
