/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Drops that hold until the next tick, when the coarse clock moves on. A source that is banned or
 * over its limit is so for the rest of the tick, whatever else it sends to the same port: each CPU
 * keeps such verdicts until then, and a flood of few sources costs one look here in place of all
 * tables. Changes by sluicectl and sluiced end it at once; anything else may be a tick late.
 */
#ifndef SLUICE_BPF_CACHE_H
#define SLUICE_BPF_CACHE_H

#include "account.h"
#include "packet.h"

/* Of packets that get the same verdict: the source's hash, what the limits read of the packet,
 * and a time in which nothing that they depend on changes. */
static __always_inline __u64 cache_key(const struct sluice_gate* g, __u64 tick, __u64 source_hash,
                                       __u32 tcp, __u32 port, __u32 dimensions, __u32 bytes) {
    const __u64 what = (__u64)bytes << 32 | dimensions << 20 | tcp << 16 | port;

    return source_hash + what * seed.salt + tick * seed.mix + READ_ONCE(g->changes) * seed.high;
}

static __always_inline struct sluice_cached* cache_entry(__u32 cpu_slot, __u64 source_hash) {
    struct sluice_cache* cache = table_at(verdict_cache, cpu_slot);
    return cache ? &cache->entry[source_hash & (SLUICE_CACHE_ENTRIES - 1)] : NULL;
}

/* `verdict` is a drop that lasts, and no event of it is to be sent before the next tick. */
static __always_inline void keep_verdict(struct sluice_cached* entry, __u64 key, __u32 service,
                                         int verdict) {
    entry->key = key;
    entry->service = (__u16)service;
    entry->verdict = (__u16)verdict;
}

/* Budgets change whenever anybody else spends, windows by the fine clock. */
static __always_inline __u32 is_kept(int verdict) {
    return (verdict >= SLUICE_drop_jailed && verdict < SLUICE_drop_source_window) ||
           verdict == SLUICE_drop_prefix;
}

/* What the general way decided, where the plain one left the key. */
static __always_inline void keep_general_verdict(struct packet* p, int verdict) {
    const __u64 key = p->cpu->cache_key;
    struct sluice_cached* entry;

    if (likely(!key))
        return;
    p->cpu->cache_key = 0;
    if (!is_kept(verdict) || !p->cpu->lasts || p->f->mode != SLUICE_MODE_ENFORCE ||
        may_report(p->cpu, p->f->cpu_slot, p->f->source_hash, verdict))
        return;
    entry = cache_entry(p->f->cpu_slot, p->f->source_hash);
    if (entry)
        keep_verdict(entry, key, p->f->service_id, verdict);
}

#endif
