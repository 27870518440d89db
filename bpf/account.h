/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The single exit: counters, a sampled event, and the XDP action. */
#ifndef SLUICE_BPF_ACCOUNT_H
#define SLUICE_BPF_ACCOUNT_H

#include "packet.h"

/* A jiffy count shifted by this changes about once a minute at any usual HZ (16 s to 164 s). */
#define MINUTE_SHIFT 14
/* Tokens that a CPU may hold: what a burst after a quiet time shows. */
#define EVENT_TOKENS_MAX (1000 * SLUICE_EVENT_COST)

/* What was decided before a service was looked for has none yet. */
static __always_inline void find_policy(struct packet* p) {
    if (!p->policy)
        p->policy = table_at(policy, switch_value(p, READ_ONCE(p->gate->policy)) & 1);
}

static __always_inline __u32 earn_tokens(__u32 tokens, __u64 earned) {
    return tokens + earned > EVENT_TOKENS_MAX ? EVENT_TOKENS_MAX : tokens + (__u32)earned;
}

/* A CPU's first packet of a tick. */
static __always_inline __u32 is_new_tick(const struct sluice_cpu* cpu, __u64 tick) {
    return cpu->refilled != tick_number(tick);
}
static __always_inline void refill_tokens(struct packet* p, __u32 tick) {
    struct sluice_cpu* cpu = p->cpu;

    find_policy(p);
    const __u64 rate = p->policy ? p->policy->event_tokens_per_tick : 0;
    const __u64 earned = (__u64)(tick - cpu->refilled) * rate;
    cpu->event_tokens = earn_tokens(cpu->event_tokens, earned);
    cpu->first_tokens = earn_tokens(cpu->first_tokens, earned);
    cpu->pass_tokens = earn_tokens(cpu->pass_tokens, earned);
    if (cpu->cache_credit || tick % SLUICE_CACHE_RETRY_TICKS == 0)
        cpu->cache_credit = SLUICE_CACHE_TRIAL;
    cpu->refilled = tick;
}

/* Where this CPU remembers that it reported (source, verdict), and what it writes there: the same
 * for about a minute. */
struct memory {
    __u32* seen;
    __u32 stamp;
};

static __always_inline struct memory memory_of(__u32 cpu_slot, __u64 source_hash, int verdict) {
    struct sluice_recent* r = table_at(recent, cpu_slot);
    const __u64 hash = source_hash + (__u64)verdict * SLUICE_TAG_STEP;
    const __u32 minute = (__u32)(bpf_jiffies64() >> MINUTE_SHIFT) & 0xffff;

    return (struct memory){r ? &r->seen[hash & (SLUICE_RECENT_SLOTS - 1)] : NULL,
                           (__u32)(hash >> 32) << 16 | minute};
}

/* Whether it was not reported yet; it is from now on. */
static __always_inline __u32 is_first(struct packet* p, int verdict) {
    const struct memory memory = memory_of(p->f->cpu_slot, p->f->source_hash, verdict);
    if (!memory.seen || *memory.seen == memory.stamp)
        return 0;
    *memory.seen = memory.stamp;
    return 1;
}

/* Whether drop_tokens() would find any. */
static __always_inline __u32 may_report(const struct sluice_cpu* cpu, __u32 cpu_slot,
                                        __u64 source_hash, int verdict) {
    if (cpu->event_tokens >= SLUICE_EVENT_COST)
        return 1;
    if (cpu->first_tokens < SLUICE_EVENT_COST)
        return 0;
    const struct memory memory = memory_of(cpu_slot, source_hash, verdict);
    return !memory.seen || *memory.seen != memory.stamp;
}

/* What pays for the event of a drop; NULL: nothing does. */
static __always_inline __u32* drop_tokens(struct packet* p, int verdict, __u32* flags) {
    struct sluice_cpu* cpu = p->cpu;

    if (likely(cpu->event_tokens < SLUICE_EVENT_COST && cpu->first_tokens < SLUICE_EVENT_COST))
        return NULL;
    if (is_first(p, verdict) && cpu->first_tokens >= SLUICE_EVENT_COST) {
        *flags |= SLUICE_EVENT_FIRST;
        return &cpu->first_tokens;
    }
    return cpu->event_tokens >= SLUICE_EVENT_COST ? &cpu->event_tokens : NULL;
}

/* Passes are sampled evenly in time, each tick's first packet, so that they cost nothing else. */
static __always_inline __u32* pass_tokens(struct packet* p, __u32 new_tick) {
    const __u32 has_source = (p->f->source.high | p->f->source.low) != 0;

    return unlikely(new_tick) && has_source && p->cpu->pass_tokens >= SLUICE_EVENT_COST
               ? &p->cpu->pass_tokens
               : NULL;
}

static __always_inline void fill_event(struct packet* p, struct sluice_event* e, int verdict,
                                       __u32 flags, __u64 count) {
    const __be64 source[2] = {bpf_cpu_to_be64(p->f->source.high),
                              bpf_cpu_to_be64(p->f->source.low)};
    const __be64 destination[2] = {bpf_cpu_to_be64(p->f->destination.high),
                                   bpf_cpu_to_be64(p->f->destination.low)};
    const __u32 is_limit = verdict > SLUICE_drop_jailed;
    const __u32 connection = COUNTS(p, SLUICE_CONNECTIONS) ? SLUICE_EVENT_CONNECTION : 0;

    e->time_ns = exact_now(p);
    __builtin_memcpy(e->source, source, sizeof(e->source));
    __builtin_memcpy(e->destination, destination, sizeof(e->destination));
    e->source_port = p->f->source_port;
    e->destination_port = p->f->destination_port;
    e->protocol = p->f->protocol;
    e->verdict = (__u8)verdict;
    e->rule = is_limit ? (__u8)p->cpu->rule : SLUICE_EVENT_NO_RULE;
    e->flags = (__u8)(flags | connection);
    e->service = (__u16)p->f->service_id;
    e->interface = (__u16)interface_slot;
    e->cpu = p->f->cpu_slot;
    e->count = count;
    e->policy_version = p->policy ? p->policy->version : 0;
    e->measured = is_limit ? p->cpu->over_units << SLUICE_UNIT_SHIFT : 0;
}

static __always_inline void report(struct packet* p, int verdict, __u32 would, __u64 count) {
    const __u64 tick = current_tick(p->gate);
    const __u32 new_tick = is_new_tick(p->cpu, tick);
    __u32 flags = would ? SLUICE_EVENT_WOULD : 0;

    if (unlikely(new_tick))
        refill_tokens(p, tick_number(tick));
    __u32* tokens =
        sluice_is_drop(verdict) ? drop_tokens(p, verdict, &flags) : pass_tokens(p, new_tick);
    if (likely(!tokens))
        return;
    *tokens -= SLUICE_EVENT_COST;
    struct sluice_event* event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);
    if (!event) {
        p->cpu->events_lost++;
        return;
    }
    find_policy(p);
    fill_event(p, event, verdict, flags, count);
    bpf_ringbuf_submit(event, 0);
}

static __always_inline struct sluice_counters* counters_of(__u32 cpu_slot, __u32 service_id) {
    return table_at(counters,
                    (cpu_slot * interface_slots + interface_slot) * service_capacity + service_id);
}

static __always_inline int account(struct packet* p, int verdict) {
    const __u32 is_drop = sluice_is_drop(verdict);
    const __u32 would = is_drop && p->f->mode != SLUICE_MODE_ENFORCE;
    const __u32 index = sluice_counter_index(verdict, would);
    struct sluice_counters* c = counters_of(p->f->cpu_slot, p->f->service_id);

    if (likely(c && index < SLUICE_COUNTERS)) {
        c->by_verdict[index].packets++;
        c->by_verdict[index].bytes += p->f->bytes;
        report(p, verdict, would, c->by_verdict[index].packets);
    }
    return drop_all || (is_drop && !would) ? XDP_DROP : XDP_PASS;
}

#endif
