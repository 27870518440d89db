/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The service's budget: spent from this CPU's lease, which is refilled from the host's bucket in
 * chunks. When the bucket is short, new connections wait first, then whole sources: serving half
 * of the users well beats serving every user half.
 */
#ifndef SLUICE_BPF_BUDGET_H
#define SLUICE_BPF_BUDGET_H

#include "limit.h"
#include "modes.h"
#include "packet.h"

/* A bucket below this fraction of its burst is short. */
#define SHORT_FRACTION 4

/* Sums of more than this are not steered by: the service was idle. */
#define STEER_IDLE_NS (10 * SLUICE_STEER_NS)

/* How much of the burst is spent, ns. What lies further ahead than the debt of a super-packet is a
 * leftover of another policy, and counts as nothing. */
static __always_inline __u64 spent_ns(__u64 tat, __u64 now,
                                      const struct sluice_budget_limit* limit) {
    const __u64 most = 2 * limit->burst_ns + SLUICE_MAX_DEBT * limit->lease_ns + SLUICE_STEER_NS;
    return tat <= now || tat - now > most ? 0 : tat - now;
}

static __always_inline __u32 is_short(__u64 tat, __u64 now,
                                      const struct sluice_budget_limit* limit) {
    return spent_ns(tat, now, limit) > limit->burst_ns - limit->burst_ns / SHORT_FRACTION;
}

/* Those who wait may have what nobody else asks for. */
static __always_inline __u32 is_plenty(__u64 tat, __u64 now,
                                       const struct sluice_budget_limit* limit) {
    return spent_ns(tat, now, limit) < limit->burst_ns / 2;
}

/* What holds of a budget, and which terms those are: 0 for the policy's own. */
struct terms {
    const struct sluice_budget_limit* limit;
    __u32 number;
};

static __always_inline struct terms terms_of(const struct sluice_service* service, __u32 service_id,
                                             __u32 d, __u64 now) {
    const struct terms own = {.limit = &service->budget[d], .number = 0};
    if (likely(!(service->flags & SLUICE_SERVICE_SHARED(d))))
        return own;
    const struct sluice_share* share = table_at(shares, service_id * SLUICE_DIMENSIONS + d);
    const __u32 number = share ? READ_ONCE(share->number) : 0;
    if (!share || !number)
        return own;
    const struct sluice_terms* terms = &share->terms[number & 1];
    if (now >= READ_ONCE(share->until_ns))
        return (struct terms){.limit = &terms->after, .number = 2 * number + 1};
    return (struct terms){.limit = &terms->now, .number = 2 * number};
}

/* Units leased from the shared bucket: at least `needed`, or 0 where it is dry. */
SUBPROGRAM __u32 refill(__u32 service_row, __u32 service_id, __u32 d, __u32 needed, __u64 now) {
    struct sluice_budget* budget = table_at(budgets, service_id);
    const struct sluice_service* service = table_at(services, service_row);
    if (!budget || !service || d >= SLUICE_DIMENSIONS)
        return needed;
    const struct sluice_budget_limit* limit = terms_of(service, service_id, d, now).limit;
    __u64* tat_ns = &budget->tat_ns[d];
    const __u64 lease = limit->lease ? limit->lease : 1;
    const __u64 leases = (needed + lease - 1) / lease;
    const __u64 price = leases * limit->lease_ns;
    /* A packet larger than the whole burst passes a full bucket only, and leaves a debt. */
    const __u64 least = price < limit->burst_ns ? price : limit->burst_ns;

    for (int i = 0; i < SLUICE_CAS_TRIES; i++) {
        const __u64 old = READ_ONCE(*tat_ns);
        const __u64 spent = spent_ns(old, now, limit);
        if (spent + least > limit->burst_ns)
            return 0;
        if (__sync_val_compare_and_swap(tat_ns, old, now + spent + price) == old)
            return (__u32)(leases * lease);
    }
    __sync_fetch_and_add(tat_ns, price);
    return (__u32)(leases * lease);
}

/* Ten times a second, whoever comes first works out which share of the sources has to wait. */
SUBPROGRAM int steer(__u32 service_row, __u32 service_id, __u64 now) {
    struct sluice_budget* budget = table_at(budgets, service_id);
    const struct sluice_service* service = table_at(services, service_row);
    if (!budget || !service)
        return 0;
    const __u64 before = READ_ONCE(budget->steered_ns);
    const __u64 elapsed = since(now, before);
    if (elapsed < SLUICE_STEER_NS ||
        __sync_val_compare_and_swap(&budget->steered_ns, before, now) != before)
        return 0;
    if (since(now, budget->rotated_ns) >= SLUICE_ROTATE_NS) {
        budget->rotated_ns = now;
        budget->rotation++;
    }
    for (int d = 0; d < SLUICE_DIMENSIONS; d++) {
        const struct sluice_budget_limit* limit = terms_of(service, service_id, d, now).limit;
        const __u64 total = READ_ONCE(budget->demand[d]);
        const __u64 asked = total - budget->steered_demand[d];
        __u32 shed = 0;

        budget->steered_demand[d] = total;
        if (limit->lease_ns && asked && elapsed < STEER_IDLE_NS) {
            const __u64 free = elapsed * limit->lease / limit->lease_ns;
            const __u32 begun = READ_ONCE(budget->shed[d]) != 0;
            if (asked > free && (begun || is_short(budget->tat_ns[d], now, limit)))
                shed = (__u32)((asked - free) * SLUICE_SHED_ALL / asked);
        }
        WRITE_ONCE(budget->shed[d], shed);
    }
    return 0;
}

/* Whether this source, as limits count it, is among those that wait until the next rotation: other
 * addresses of the same network draw the same lot. */
static __always_inline __u32 waits(const struct packet* p, const struct sluice_budget* budget,
                                   __u32 d) {
    const __u32 shed = READ_ONCE(budget->shed[d]);
    if (likely(!shed))
        return 0;
    return sluice_lot(&seed, limited_source(p), READ_ONCE(budget->rotation)) < shed;
}

static __always_inline void count_demand(struct sluice_budget* budget, struct sluice_lease* lease,
                                         const struct sluice_budget_limit* limit, __u32 d,
                                         __u32 units) {
    lease->demand[d] += units;
    if (lease->demand[d] < limit->flush)
        return;
    __sync_fetch_and_add(&budget->demand[d], lease->demand[d]);
    lease->demand[d] = 0;
}

/* Makes sure that the lease holds `units`; nothing is spent yet. */
static __always_inline __u32 has_units(struct packet* p, struct sluice_lease* lease,
                                       const struct sluice_budget_limit* limit, __u32 d,
                                       __u32 units) {
    if (likely(lease->units[d] >= units))
        return 1;
    /* Found dry in this tick already: nothing new before the next, unless the burst is tiny. */
    if (!limit->exact && lease->dry[d] == sluice_dry(p->f->now_ns))
        return 0;
    const __u64 now = limit->exact ? exact_now(p) : p->f->now_ns;
    const __u32 leased =
        refill(service_row_of(p), p->f->service_id, d, units - lease->units[d], now);
    if (leased)
        lease->units[d] += leased;
    else
        lease->dry[d] = sluice_dry(now);
    return leased != 0;
}

/* What the packet counts for in a dimension; 0 = nothing. */
static __always_inline __u32 units_of(const struct packet* p, __u32 d) {
    return !COUNTS(p, d) ? 0 : d == SLUICE_BYTES ? p->f->bytes : p->f->segments;
}

static __always_inline int check_budget(struct packet* p) {
    struct sluice_budget* budget = table_at(budgets, p->f->service_id);
    struct sluice_lease* lease =
        table_at(leases, p->f->cpu_slot * service_capacity + p->f->service_id);
    if (!budget || !lease)
        return SLUICE_pass_internal;
    if (unlikely(since(p->f->now_ns, READ_ONCE(budget->steered_ns)) >= SLUICE_STEER_NS))
        steer(service_row_of(p), p->f->service_id, p->f->now_ns);

    const __u32 opens = COUNTS(p, SLUICE_CONNECTIONS);
    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        if (!(p->service->budget_limits & 1u << d))
            continue;
        const struct terms terms = terms_of(p->service, p->f->service_id, d, p->f->now_ns);
        const struct sluice_budget_limit* limit = terms.limit;
        const __u32 units = units_of(p, d);
        int verdict = SLUICE_CONTINUE;

        if (units)
            count_demand(budget, lease, limit, d, units);
        if (unlikely(!limit->burst_ns))
            continue;
        /* What was leased under other terms goes with them. */
        if (unlikely(lease->terms[d] != terms.number)) {
            lease->terms[d] = terms.number;
            lease->units[d] = 0;
        }
        /* A new connection will want of all that is short, so it waits first. */
        if (opens && d != SLUICE_CONNECTIONS &&
            is_short(READ_ONCE(budget->tat_ns[d]), p->f->now_ns, limit))
            verdict = SLUICE_drop_budget;
        else if (units && waits(p, budget, d) &&
                 !is_plenty(READ_ONCE(budget->tat_ns[d]), p->f->now_ns, limit))
            verdict = SLUICE_drop_shed;
        else if (units && !has_units(p, lease, limit, d, units))
            verdict = SLUICE_drop_budget;

        if (unlikely(verdict != SLUICE_CONTINUE) &&
            exceeds(p, sluice_rule(SLUICE_BUDGET, d), verdict, 0))
            return verdict;
    }
    return SLUICE_CONTINUE;
}

/* Nobody else spends from this CPU's lease, so what was checked can be charged; a budget that is
 * off or only observed may lack the units, and goes without. */
static __always_inline void charge_budget(struct packet* p) {
    struct sluice_lease* lease =
        table_at(leases, p->f->cpu_slot * service_capacity + p->f->service_id);
    if (!lease)
        return;
    NO_UNROLL
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        const __u32 units = units_of(p, d);
        if ((p->service->budget_limits & 1u << d) && units && lease->units[d] >= units &&
            is_charged(p, sluice_rule(SLUICE_BUDGET, d)))
            lease->units[d] -= units;
    }
}

#endif
