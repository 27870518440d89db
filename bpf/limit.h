/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Limits per source and per wider prefix. First every limit is read, and what a charge would be
 * is planned; charging is for later, when all agree. A drop reads one cache line and writes none.
 */
#ifndef SLUICE_BPF_LIMIT_H
#define SLUICE_BPF_LIMIT_H

#include "modes.h"
#include "packet.h"
#include "socket.h"

/* Low-discrepancy steps (2^64 ÷ golden ratio): however packets of several sources interleave,
 * each one's costs round fairly. */
#define DITHER_STEP 0x9e3779b97f4a7c15ull

/* The slot of one dimension in struct sluice_planned. */
static __always_inline __u32 nibble(__u32 slots, __u32 d) {
    return slots >> 4 * d & SLUICE_SET_WORDS;
}

/* Slots are 1 to 7, as words lie behind `touched`; the mask is for the verifier. */
static __always_inline __u64* slot_word(struct sluice_source_set* set, __u32 slot) {
    return (__u64*)set + (slot & SLUICE_SET_WORDS);
}

/* Where a tag's word is unless somebody else was there first: one comparison finds most. */
static __always_inline __u32 preferred_slot(__u64 tag) {
    return (__u32)(tag & SLUICE_SET_WORDS ?: SLUICE_SET_WORDS);
}

static __always_inline __u32 find_slot(struct sluice_source_set* set, __u64 tag) {
    const __u32 first = preferred_slot(tag);
    if (likely(READ_ONCE(*slot_word(set, first)) >> SLUICE_TAT_BITS == tag))
        return first;
#pragma unroll
    for (__u32 i = 0; i < SLUICE_SET_WORDS; i++)
        if (READ_ONCE(set->word[i]) >> SLUICE_TAT_BITS == tag)
            return i + 1;
    return 0;
}

/* The slot for a newcomer: an idle one, best its preferred one, else the one that is nearest to
 * idle. `taken` are slots that the packet in hand already uses. */
SUBPROGRAM __u32 choose_slot(__u32 set_index, __u64 now_units, __u32 taken, __u64 tag) {
    struct sluice_source_set* set = table_at(sources, set_index & source_set_mask);
    __s64 best_ahead = ~(1ull << 63);
    __u32 best = 1;

    if (!set)
        return best;
    const __u32 first = preferred_slot(tag);
    if (!(taken & 1u << first) && sluice_ahead(READ_ONCE(*slot_word(set, first)), now_units) <= 0)
        return first;
    for (__u32 i = 0; i < SLUICE_SET_WORDS; i++) {
        if (taken & 2u << i)
            continue;
        const __s64 ahead = sluice_ahead(READ_ONCE(set->word[i]), now_units);
        if (ahead <= 0)
            return i + 1;
        if (ahead < best_ahead) {
            best_ahead = ahead;
            best = i + 1;
        }
    }
    return best;
}

/* A set that nobody visited for days holds times that could wrap: the first visitor clears it. */
SUBPROGRAM int clear_stale(__u32 set_index, __u64 now, __u32 cpu_slot) {
    struct sluice_source_set* set = table_at(sources, set_index & source_set_mask);
    struct sluice_cpu* cpu = table_at(cpus, cpu_slot);
    if (!set || !cpu)
        return 0;
    const __u64 touched = READ_ONCE(set->touched);
    if (__sync_val_compare_and_swap(&set->touched, touched, now) != touched)
        return 0; /* somebody else is at it */
    if (since(now, touched) < SLUICE_SET_STALE_NS)
        return 0;
    for (int i = 0; i < SLUICE_SET_WORDS; i++)
        WRITE_ONCE(set->word[i], 0);
    cpu->sets_cleared++;
    return 0;
}

static __always_inline struct sluice_source_set* visit_set(struct packet* p, __u32 index) {
    struct sluice_source_set* set = table_at(sources, index & source_set_mask);
    if (set && unlikely(since(p->f->now_ns, READ_ONCE(set->touched)) > SLUICE_TOUCH_NS))
        clear_stale(index, p->f->now_ns, p->f->cpu_slot);
    return set;
}

/* What will be owed at least before the coarse clock moves on. */
static __always_inline __u64 least_owed(__u64 owed) {
    const __u64 lag = sluice_units(coarse_lag_ns);
    return owed > lag ? owed - lag : 0;
}

/* What a word owes by the clock that its limit asks for. */
static __always_inline __u64 owed_now(struct packet* p, const struct sluice_limit* limit,
                                      __u64 word, __u64 cost) {
    const __u64 owed = sluice_owed(word, sluice_units(p->f->now_ns), limit->span, cost);
    /* Not exact, or over the limit whatever the exact time. */
    p->cpu->lasts = likely(!limit->exact) || !sluice_admits(least_owed(owed), limit->span, cost);
    if (likely(p->cpu->lasts))
        return owed;
    return sluice_owed(word, sluice_units(exact_now(p)), limit->span, cost);
}

/* --- jail ---------------------------------------------------------------------------------- */

static __always_inline __u64 jail_tag(__u32 mode, __u32 tag) {
    return sluice_tag(tag, mode == SLUICE_MODE_ENFORCE ? SLUICE_JAIL : SLUICE_SHADOW_JAIL);
}

static __always_inline __u32 is_jailed(struct packet* p, struct sluice_source_set* set, __u32 mode,
                                       __u32 tag) {
    const __u32 slot = find_slot(set, jail_tag(mode, tag));
    return slot && sluice_ahead(READ_ONCE(*slot_word(set, slot)), sluice_units(p->f->now_ns)) > 0;
}

/* --- parts of a limit that hosts share ------------------------------------------------------ */

/* Lowers the scales of a source (its hash, as limits count it) to the parts that it has here.
 * Which limits those are, as bits 1 << dimension. */
SUBPROGRAM __u32 apply_parts(__u64 hash, __u32 service_id, __u32 cpu_slot, __u64 now_units) {
    const struct sluice_slot place = sluice_source_slot(&seed, hash, service_id, SLUICE_PER_SOURCE);
    struct sluice_source_set* set = table_at(sources, place.set & source_set_mask);
    struct sluice_cpu* cpu = table_at(cpus, cpu_slot);
    __u32 parts = 0;

    if (!set || !cpu)
        return 0;
    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        const __u32 slot = find_slot(set, sluice_tag(place.tag, SLUICE_PART(d)));
        if (likely(!slot))
            continue;
        const __u32 inverse = sluice_inverse_part(READ_ONCE(*slot_word(set, slot)), now_units);
        cpu->inverse_scale[d] = sluice_both_scales(cpu->inverse_scale[d], inverse);
        parts |= (inverse != SLUICE_SCALE_ONE) << d;
    }
    return parts;
}

/* --- check --------------------------------------------------------------------------------- */

static __always_inline int limit_verdict(__u32 scope, __u32 d) {
    return scope == SLUICE_PER_SOURCE ? SLUICE_drop_source_connections + (int)d
                                      : SLUICE_drop_prefix;
}

/* A class, and the fleet, scale what one source may do, not what its neighbourhood may. */
static __always_inline __u64 planned_cost(struct packet* p, __u32 scope,
                                          const struct sluice_limit* limits, __u32 d) {
    const __u32 inverse_scale =
        scope == SLUICE_PER_SOURCE ? p->cpu->inverse_scale[d] : SLUICE_SCALE_ONE;
    return sluice_cost(&limits[d], d == SLUICE_BYTES ? p->f->bytes : p->f->segments, inverse_scale,
                       p->cpu->dither);
}

/* Reads every limit of one scope that applies to the packet, and plans its charges. */
static __always_inline int check_scope(struct packet* p, __u32 scope,
                                       const struct sluice_limit* limits, __u32 limited,
                                       __u64 hash) {
    const struct sluice_slot place = sluice_source_slot(&seed, hash, p->f->service_id, scope);
    struct sluice_planned* planned = &p->cpu->planned[scope];
    struct sluice_source_set* set = visit_set(p, place.set);
    const __u32 jails = scope == SLUICE_PER_SOURCE && p->service->jail_ns;
    int outcome = SLUICE_CONTINUE;
    __u32 slots = 0, taken = 0, plan = 0;

    if (!set)
        return SLUICE_pass_internal;
    planned->set = place.set;
    if (unlikely(jails)) {
        const __u32 mode = rule_mode(p, WHOLE_SERVICE);
        if (mode != SLUICE_MODE_OFF && is_jailed(p, set, mode, place.tag)) {
            p->f->mode = mode;
            p->cpu->lasts = 1;
            return SLUICE_drop_jailed;
        }
    }

    limited &= p->f->dimensions;
    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        if (!(limited & 1u << d))
            continue;
        const __u32 slot = opaque(p, find_slot(set, sluice_tag(place.tag, d)), SLUICE_SET_WORDS);
        slots |= slot << 4 * d;
        taken |= 1u << slot;
    }

    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        if (!(limited & 1u << d))
            continue;
        const struct sluice_limit* limit = &limits[d];
        const __u64 cost = planned_cost(p, scope, limits, d);
        __u32 slot = nibble(slots, d);
        __u64 owed = 0;
        if (unlikely(!slot)) {
            slot = choose_slot(place.set, sluice_units(p->f->now_ns), taken,
                               sluice_tag(place.tag, d)) &
                   SLUICE_SET_WORDS;
            taken |= 1u << slot;
        }
        const __u64 word = READ_ONCE(*slot_word(set, slot));
        /* A newcomer starts afresh, or, where the policy says so, with its victim's debt. */
        if (likely(nibble(slots, d)) || p->policy->share_on_full)
            owed = owed_now(p, limit, word, cost);

        if (unlikely(!sluice_admits(owed, limit->span, cost))) {
            const int verdict = limit_verdict(scope, d);
            if (exceeds(p, sluice_rule(scope, d), verdict, owed)) {
                outcome = verdict;
                break;
            }
            continue;
        }
        plan |= slot << 4 * d;
        planned->old[d] = word;
        planned->wanted[d] =
            sluice_word(sluice_tag(place.tag, d), sluice_units(p->f->now_ns) + owed + cost);
    }
    planned->slots = plan;
    return outcome;
}

#define MASKED(address, mask) \
    ((struct sluice_address){(address).high & (mask).high, (address).low & (mask).low})

/* The source as limits count it: an address, or the network that the policy names. */
static __always_inline __u64 limited_source(const struct packet* p) {
    return sluice_address_hash(&seed, MASKED(p->f->source, p->policy->source_mask[!p->f->ipv4]));
}

static __always_inline int check_source_limits(struct packet* p) {
    const __u32 inverse_scale = p->policy->inverse_scale[p->f->source_class & SLUICE_MAX_CLASSES];
    const __u64 hash = limited_source(p);

    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++)
        p->cpu->inverse_scale[d] = inverse_scale;
    if (unlikely(READ_ONCE(p->gate->parts)))
        apply_parts(hash, p->f->service_id, p->f->cpu_slot, sluice_units(p->f->now_ns));
    return check_scope(p, SLUICE_PER_SOURCE, p->service->source, p->service->source_limits, hash);
}

static __always_inline int check_prefix_limits(struct packet* p) {
    const __u64 hash =
        sluice_address_hash(&seed, MASKED(p->f->source, p->service->prefix_mask[!p->f->ipv4]));
    return check_scope(p, SLUICE_PER_PREFIX, p->service->prefix, p->service->prefix_limits, hash);
}

/* Whoever is over a limit with proof of who he is goes to jail; `mode` is that of the limit, so
 * what was only observed drops nothing later. */
static __always_inline void jail(struct packet* p, __u32 mode) {
    const struct sluice_slot place =
        sluice_source_slot(&seed, limited_source(p), p->f->service_id, SLUICE_PER_SOURCE);
    struct sluice_source_set* set = table_at(sources, place.set & source_set_mask);
    const __u32 slots = p->cpu->planned[SLUICE_PER_SOURCE].slots;
    __u32 taken = 0;

    if (!set)
        return;
    if (!(p->service->flags & SLUICE_SERVICE_SPOOFABLE) &&
        (p->f->protocol != IPPROTO_TCP || COUNTS(p, SLUICE_CONNECTIONS) ||
         !(flow_of(p) & FLOW_PROVEN)))
        return;
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++)
        taken |= 1u << nibble(slots, d);

    const __u64 now = sluice_units(p->f->now_ns);
    const __u64 end = sluice_units(p->f->now_ns + p->service->jail_ns);
    const __u64 tag = jail_tag(mode, place.tag);
    __u64* word = slot_word(set, choose_slot(place.set, now, taken, tag));
    const __u64 old = READ_ONCE(*word);
    __sync_val_compare_and_swap(word, old, sluice_word(tag, end));
}

/* --- charge -------------------------------------------------------------------------------- */

enum charged {
    CHARGE_REFUSED = 0, /* another CPU spent what was free */
    CHARGE_DONE = 1,
    CHARGE_SKIPPED = 2, /* the slot went to somebody else meanwhile: the packet passes */
    CHARGE_FORCED = 3,  /* added after too many lost races */
};

/* Where a word is and whose: set, slot and tag in two numbers. */
static __always_inline __u64 word_name(__u64 tag, __u32 slot) {
    return tag << 3 | slot;
}

static __always_inline __u64* named_word(__u32 set_index, __u64 name) {
    struct sluice_source_set* set = table_at(sources, set_index & source_set_mask);
    return set ? slot_word(set, (__u32)name) : NULL;
}

/* The word changed since it was read: decide anew on what it holds now. */
SUBPROGRAM __u32 charge_again(__u32 set_index, __u64 name, __u64 span, __u64 cost,
                              __u64 now_units) {
    const __u64 tag = name >> 3;
    __u64* word = named_word(set_index, name);

    if (!word)
        return CHARGE_SKIPPED;
    for (int i = 0; i < SLUICE_CAS_TRIES; i++) {
        const __u64 old = READ_ONCE(*word);
        if (old >> SLUICE_TAT_BITS != tag)
            return CHARGE_SKIPPED;
        const __u64 owed = sluice_owed(old, now_units, span, cost);
        if (!sluice_admits(owed, span, cost))
            return CHARGE_REFUSED;
        if (__sync_val_compare_and_swap(word, old, sluice_word(tag, now_units + owed + cost)) ==
            old)
            return CHARGE_DONE;
    }
    /* A carry out of the time would change the tag; once in 13 days that packet goes free. */
    if ((READ_ONCE(*word) & SLUICE_TAT_MASK) + cost <= SLUICE_TAT_MASK)
        __sync_fetch_and_add(word, cost);
    return CHARGE_FORCED;
}

SUBPROGRAM int give_back(__u32 set_index, __u64 name, __u64 cost) {
    const __u64 tag = name >> 3;
    __u64* word = named_word(set_index, name);

    for (int i = 0; i < SLUICE_CAS_TRIES && word; i++) {
        const __u64 old = READ_ONCE(*word);
        if (old >> SLUICE_TAT_BITS != tag ||
            __sync_val_compare_and_swap(word, old, sluice_word(tag, old - cost)) == old)
            break;
    }
    return 0;
}

static __always_inline void count_replaced(struct sluice_cpu* cpu,
                                           const struct sluice_policy* rules, __u64 old, __u64 new,
                                           __u64 now_units) {
    if (likely(old >> SLUICE_TAT_BITS == new >> SLUICE_TAT_BITS) ||
        sluice_ahead(old, now_units) <= 0)
        return;
    if (rules->share_on_full)
        cpu->shared_live++;
    else
        cpu->evicted_live++;
}

static __always_inline int charge_scope(struct packet* p, __u32 scope,
                                        const struct sluice_limit* limits) {
    struct sluice_planned* planned = &p->cpu->planned[scope];
    struct sluice_source_set* set = table_at(sources, planned->set & source_set_mask);

    if (!set)
        return SLUICE_CONTINUE;
    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        const __u32 slot = nibble(planned->slots, d);
        if (!slot || !is_charged(p, sluice_rule(scope, d)))
            continue;
        const __u64 old = planned->old[d], wanted = planned->wanted[d];
        __u32 charged = CHARGE_DONE;
        if (likely(__sync_val_compare_and_swap(slot_word(set, slot), old, wanted) == old))
            count_replaced(p->cpu, p->policy, old, wanted, sluice_units(p->f->now_ns));
        else
            charged = charge_again(planned->set, word_name(wanted >> SLUICE_TAT_BITS, slot),
                                   limits[d].span, planned_cost(p, scope, limits, d),
                                   sluice_units(p->f->now_ns));
        if (unlikely(charged == CHARGE_REFUSED)) {
            p->cpu->lasts = 0; /* it may be given back */
            const int verdict = limit_verdict(scope, d);
            if (exceeds(p, sluice_rule(scope, d), verdict, limits[d].span))
                return verdict;
        }
        if (charged == CHARGE_FORCED)
            p->cpu->cas_forced++;
        if (charged & 1) /* done or forced */
            planned->charged |= slot << 4 * d;
    }
    return SLUICE_CONTINUE;
}

/* Undoes what this packet has charged so far. */
static __always_inline void take_back(struct packet* p, __u32 scope,
                                      const struct sluice_limit* limits) {
    const struct sluice_planned* planned = &p->cpu->planned[scope];

    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        const __u32 slot = nibble(planned->charged, d);
        if (slot)
            give_back(planned->set, word_name(planned->wanted[d] >> SLUICE_TAT_BITS, slot),
                      planned_cost(p, scope, limits, d));
    }
}

#endif
