/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What is known about the packet in hand; each step fills in its part. */
#ifndef SLUICE_BPF_PACKET_H
#define SLUICE_BPF_PACKET_H

#include <bpf/bpf_endian.h>
#include <linux/in.h>

#include "config.h"
#include "maps.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define READ_ONCE(x) (*(const volatile typeof(x)*)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x)*)&(x) = (value))

/* A loop that stays one: four copies of a long body cost more cache than its counter. */
#define NO_UNROLL _Pragma("clang loop unroll(disable)")

/* A rare and bulky step of its own: global, so that the verifier checks it once, not on every path
 * that leads there. Takes numbers, not pointers. */
#define SUBPROGRAM __attribute__((noinline))

/* An element of an array map; NULL only where the index is out of range. */
#define table_at(map, index)                  \
    ({                                        \
        __u32 index_ = (index);               \
        bpf_map_lookup_elem(&(map), &index_); \
    })

/* Found by parsing and by asking who sent it: numbers only, so that a subprogram can be handed it.
 */
struct facts {
    struct sluice_address source;
    struct sluice_address destination;
    __u64 source_hash; /* of the address */
    __u64 now_ns;      /* the best reading so far; 0 until somebody asks, always set for limits */
    __u32 cpu_slot;
    __u32 bytes;        /* the frame with its L2 header */
    __u32 segments;     /* as sent on the wire; more than one in a super-packet */
    __u32 source_flags; /* SLUICE_RULE_* */
    __u32 source_class;
    __u32 half; /* of the policy */
    __u32 service_id;
    __u32 mode; /* enum sluice_mode that the verdict is subject to */
    __u16 source_port;
    __u16 destination_port;
    __u8 ipv4;
    __u8 protocol;
    __u8 has_ports;
    __u8 dimensions; /* bits 1 << enum sluice_dimension that this packet counts in */
};

struct packet {
    struct xdp_md* ctx;
    struct sluice_gate* gate;
    struct sluice_cpu* cpu;
    struct sluice_policy* policy;
    struct sluice_service* service;
    struct facts* f;

    /* while parsing */
    __u32 l3;         /* offset of the IP header */
    __u32 l4;         /* offset behind it and its extension headers */
    __u32 end;        /* where the sender says the datagram ends */
    __u32 malformed;  /* found before bans were asked, told after */
    __u32 fragment;   /* enum fragment */
    __u8 scratch[40]; /* the header in hand, where it is not in the linear part */
};

enum fragment {
    NOT_FRAGMENTED = 0,
    FIRST_FRAGMENT = 1,
    LATER_FRAGMENT = 2,
};

#define COUNTS(p, dimension) ((p)->f->dimensions & 1u << (dimension))

/* The same number, of which the verifier knows only that it is within `mask`: it would otherwise
 * follow every combination separately, and there are thousands. */
static __always_inline __u32 opaque(const struct packet* p, __u32 number, __u32 mask) {
    return (number + (__u32)READ_ONCE(p->cpu->zero)) & mask;
}

/* Where the packet's service stands in `services`. */
static __always_inline __u32 service_row_of(const struct packet* p) {
    return p->f->half * service_capacity + p->f->service_id;
}

/* This CPU's slot in tables that have one for each. */
static __always_inline __u32 this_cpu(const struct sluice_gate* g) {
    return (clock_source == SLUICE_CLOCK_SET ? READ_ONCE(g->test_cpu)
                                             : bpf_get_smp_processor_id()) &
           cpu_mask;
}

static __always_inline __u32 frame_bytes(struct xdp_md* ctx) {
    return multi_buffer ? (__u32)bpf_xdp_get_buff_len(ctx) : (__u32)(ctx->data_end - ctx->data);
}

/* --- clocks: monotonic ns ------------------------------------------------------------------ */

/* A few ns to read, up to coarse_lag_ns behind. */
static __always_inline __u64 coarse_clock(const struct sluice_gate* g) {
    return clock_source == SLUICE_CLOCK_SET ? READ_ONCE(g->test_now_ns) - READ_ONCE(g->test_lag_ns)
                                            : bpf_ktime_get_coarse_ns();
}

/* Exact, and half the price of a whole decision: only where it changes the outcome. */
static __always_inline __u64 exact_clock(const struct sluice_gate* g) {
    return clock_source == SLUICE_CLOCK_SET ? READ_ONCE(g->test_now_ns) : bpf_ktime_get_ns();
}

/* Moves on with the coarse clock, at a tenth of its price; the test clock ticks each 4 ms or so. */
static __always_inline __u64 current_tick(const struct sluice_gate* g) {
    return clock_source == SLUICE_CLOCK_SET ? coarse_clock(g) : bpf_jiffies64();
}
#define TEST_TICK_SHIFT 22
static __always_inline __u32 tick_number(__u64 tick) {
    return (__u32)(clock_source == SLUICE_CLOCK_SET ? tick >> TEST_TICK_SHIFT : tick);
}

/* One reading serves the whole packet. */
static __always_inline __u64 packet_now(struct packet* p) {
    if (!p->f->now_ns)
        p->f->now_ns = coarse_clock(p->gate);
    return p->f->now_ns;
}

static __always_inline __u64 exact_now(struct packet* p) {
    p->f->now_ns = exact_clock(p->gate);
    return p->f->now_ns;
}

/* Time since `then`. Another packet may have read a finer clock: what lies ahead is just now. */
static __always_inline __u64 since(__u64 now, __u64 then) {
    return now > then ? now - then : 0;
}

/* A switch word's value; the clock is asked only where a deadline is set. */
static __always_inline __u32 switch_value(struct packet* p, __u64 word) {
    if (likely(!sluice_switch_deadline(word)))
        return (__u32)word & 15;
    return sluice_switch_value(word, exact_now(p));
}

/* Whether a deadline (40 bits of 2^20 ns) is still to come, whatever the coarse clock's lag. */
static __always_inline __u32 is_surely_live(__u64 until, __u64 coarse_now) {
    return (coarse_now + coarse_lag_ns) >> SLUICE_DEADLINE_SHIFT < until;
}

/* Whether it is still to come; near its end the fine clock decides. */
static __always_inline __u32 is_live(struct packet* p, __u64 until) {
    if (until == SLUICE_UNTIL_PERMANENT || is_surely_live(until, packet_now(p)))
        return 1;
    return exact_now(p) >> SLUICE_DEADLINE_SHIFT < until;
}

/* A small token bucket for housekeeping, in one per-CPU word. */
static __always_inline __u32 has_token(__u64 tat_ns, __u64 now, __u64 per_second, __u64 burst) {
    const __u64 cost = 1000000000ull / per_second;
    return (tat_ns > now ? tat_ns - now : 0) + cost <= burst * cost;
}

static __always_inline __u32 take_token(__u64* tat_ns, __u64 now, __u64 per_second, __u64 burst) {
    if (!has_token(*tat_ns, now, per_second, burst))
        return 0;
    *tat_ns = (*tat_ns > now ? *tat_ns : now) + 1000000000ull / per_second;
    return 1;
}

#endif
