/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * All limits of a service: first every one is read, then, when all agree, all are charged. The
 * stages are subprograms, so that the verifier does not multiply their paths.
 */
#ifndef SLUICE_BPF_APPLY_H
#define SLUICE_BPF_APPLY_H

#include "budget.h"
#include "limit.h"
#include "packet.h"
#include "socket.h"
#include "window.h"

/* The tables that limits need; a subprogram gets numbers and finds them again. */
static __always_inline int open_tables(struct packet* p) {
    p->gate = table_at(gate, 0);
    p->cpu = table_at(cpus, p->f->cpu_slot);
    p->policy = table_at(policy, p->f->half);
    p->service = table_at(services, service_row_of(p));
    return p->gate && p->cpu && p->policy && p->service;
}

/* Limits of the source, its window, its prefix: read, and planned, but not charged. */
SUBPROGRAM int check_source_side(struct facts* f) {
    struct packet packet = {.f = f};
    struct packet* p = &packet;
    int verdict = SLUICE_CONTINUE;

    if (!f || !open_tables(p))
        return SLUICE_pass_internal;
    const struct sluice_service* s = p->service;
    if (s->source_limits || s->jail_ns)
        verdict = check_source_limits(p);
    if (verdict == SLUICE_CONTINUE && s->window.limit && COUNTS(p, SLUICE_CONNECTIONS))
        verdict = check_window(p);
    if (verdict == SLUICE_CONTINUE && s->prefix_limits)
        verdict = check_prefix_limits(p);
    return verdict;
}

/* The budget of the service. */
SUBPROGRAM int check_service_side(struct facts* f) {
    struct packet packet = {.f = f};

    if (!f || !open_tables(&packet))
        return SLUICE_pass_internal;
    return check_budget(&packet);
}

/* Everybody agreed. A limit that another CPU exhausted meanwhile refuses, and what was charged
 * before is taken back. */
SUBPROGRAM int charge(struct facts* f) {
    struct packet packet = {.f = f};
    struct packet* p = &packet;

    if (!f || !open_tables(p))
        return SLUICE_pass_internal;
    int verdict = charge_scope(p, SLUICE_PER_SOURCE, p->service->source);
    if (verdict == SLUICE_CONTINUE)
        verdict = charge_scope(p, SLUICE_PER_PREFIX, p->service->prefix);
    if (verdict == SLUICE_CONTINUE && p->cpu->window_key)
        verdict = charge_window(p);
    if (unlikely(verdict != SLUICE_CONTINUE)) {
        take_back(p, SLUICE_PER_SOURCE, p->service->source);
        take_back(p, SLUICE_PER_PREFIX, p->service->prefix);
        p->cpu->taken_back++;
        return verdict;
    }
    charge_budget(p);
    p->cpu->dither += DITHER_STEP;
    return SLUICE_CONTINUE;
}

SUBPROGRAM int is_own_reply(struct xdp_md* ctx, struct facts* f) {
    struct packet packet = {.ctx = ctx, .f = f};

    return f && open_tables(&packet) && is_reply(&packet);
}

/* Over a limit of its own that is of this mode: what the service does with such a source. */
SUBPROGRAM int punish(struct xdp_md* ctx, struct facts* f, __u32 mode) {
    struct packet packet = {.ctx = ctx, .f = f};

    if (f && open_tables(&packet))
        jail(&packet, mode);
    return 0;
}

static __always_inline __u32 offends(int verdict) {
    return verdict >= SLUICE_drop_source_connections && verdict <= SLUICE_drop_source_window;
}

static __always_inline void forget_plans(struct sluice_cpu* cpu) {
    WRITE_ONCE(cpu->would, SLUICE_CONTINUE);
    cpu->window_key = 0;
    cpu->lasts = 0;
    cpu->planned[SLUICE_PER_SOURCE].slots = cpu->planned[SLUICE_PER_SOURCE].charged = 0;
    cpu->planned[SLUICE_PER_PREFIX].slots = cpu->planned[SLUICE_PER_PREFIX].charged = 0;
}

/* First every limit is read, then, when all agree, all are charged: a drop changes nothing. */
static __always_inline int apply_limits(struct packet* p) {
    const __u32 allowed = p->f->source_flags & SLUICE_RULE_ALLOW;
    const struct sluice_service* s = table_at(services, service_row_of(p));
    int verdict = SLUICE_CONTINUE;

    if (p->f->source_flags & SLUICE_RULE_EXEMPT)
        return SLUICE_pass_exempt;
    if (!s)
        return SLUICE_pass_internal;
    const __u32 personal = s->source_limits | s->prefix_limits | s->window.limit;
    if (!personal && !s->budget_limits)
        return allowed ? SLUICE_pass_allowed : SLUICE_pass_unlimited;

    packet_now(p);
    forget_plans(p->cpu);
    if (personal && !allowed)
        verdict = check_source_side(p->f);
    if (unlikely(s->jail_ns) && (offends(verdict) || offends(READ_ONCE(p->cpu->would)))) {
        p->cpu->lasts = 0; /* the next one meets the jail */
        punish(p->ctx, p->f, offends(verdict) ? SLUICE_MODE_ENFORCE : SLUICE_MODE_OBSERVE);
    }
    if (verdict == SLUICE_CONTINUE && s->budget_limits)
        verdict = check_service_side(p->f);
    if (verdict == SLUICE_CONTINUE)
        verdict = charge(p->f);

    const int would = READ_ONCE(p->cpu->would);
    if (unlikely(verdict == SLUICE_CONTINUE && would != SLUICE_CONTINUE)) {
        p->f->mode = SLUICE_MODE_OBSERVE;
        verdict = would;
    }
    if (verdict == SLUICE_CONTINUE)
        return allowed ? SLUICE_pass_allowed : SLUICE_pass_within;
    if (s->flags & SLUICE_SERVICE_REPLY_EXEMPT && is_own_reply(p->ctx, p->f))
        return SLUICE_pass_reply;
    return verdict;
}

#endif
