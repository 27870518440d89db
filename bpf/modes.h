/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Off, observe or enforce: the most lenient of gate, service and rule. Asked only when a rule
 * says no, so a packet within its limits never reads a switch. */
#ifndef SLUICE_BPF_MODES_H
#define SLUICE_BPF_MODES_H

#include "packet.h"

/* Asks for the service's own switch only. */
#define WHOLE_SERVICE SLUICE_RULES

/* The smallest of the gate's mode, the service's and the rule's. */
SUBPROGRAM __u32 effective_mode(__u32 gate_mode, __u32 service_id, __u32 rule) {
    struct facts facts = {};
    struct packet clock = {.gate = table_at(gate, 0), .f = &facts};
    const struct sluice_service_switches* s = table_at(switches, service_id);
    if (!clock.gate || !s)
        return SLUICE_MODE_OFF;
    __u32 mode = switch_value(&clock, READ_ONCE(s->service.word));
    if (rule < SLUICE_RULES) {
        const __u32 own = switch_value(&clock, READ_ONCE(s->rule[rule].word));
        mode = own < mode ? own : mode;
    }
    return mode < gate_mode ? mode : gate_mode;
}

static __always_inline __u32 rule_mode(struct packet* p, __u32 rule) {
    return effective_mode(p->f->mode, p->f->service_id, rule);
}

/*
 * A rule says no. True where that drops the packet now; in observe mode the first such verdict is
 * remembered and the rules that are enforced still get their say; a rule that is off says nothing.
 */
static __always_inline __u32 exceeds(struct packet* p, __u32 rule, int verdict, __u64 over_units) {
    const __u32 mode = rule_mode(p, rule);
    const __u32 first = READ_ONCE(p->cpu->would) == SLUICE_CONTINUE;

    if (mode == SLUICE_MODE_OFF || (mode == SLUICE_MODE_OBSERVE && !first))
        return 0;
    p->cpu->rule = rule;
    p->cpu->over_units = over_units;
    if (mode == SLUICE_MODE_ENFORCE)
        return 1;
    WRITE_ONCE(p->cpu->would, verdict);
    return 0;
}

/* In observe mode something has said no already, so only what is enforced is charged. */
static __always_inline __u32 is_charged(struct packet* p, __u32 rule) {
    return likely(READ_ONCE(p->cpu->would) == SLUICE_CONTINUE) ||
           rule_mode(p, rule) == SLUICE_MODE_ENFORCE;
}

#endif
