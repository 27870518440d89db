/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Whether this instance acts at all: attached for good or confirmed, and not replaced. */
#ifndef SLUICE_BPF_DUTY_H
#define SLUICE_BPF_DUTY_H

#include "packet.h"

/* Under a dispatcher the generation before may still be there, before or behind this one: exactly
 * one of the two acts on each packet, also on those in flight when the duty changes hands. */
static __always_inline __u32 has_the_duty(struct packet* p, __u32 slot) {
    const __u64 duty = READ_ONCE(p->gate->duty[slot]);
    const __u32 handover = (__u32)(duty >> 32);
    __u32 acts = (__u32)duty == generation;
    const __u32 is_second = handover == SLUICE_HANDOVER_NEW_IS_SECOND   ? acts
                            : handover == SLUICE_HANDOVER_OLD_IS_SECOND ? !acts
                                                                        : 0;
    if (is_second)
        acts = !p->cpu->handled;
    p->cpu->handled = acts;
    return acts;
}

/* An attachment that nobody confirmed in time passes everything. */
static __always_inline __u32 is_on_duty(struct packet* p) {
    const __u32 slot = interface_slot & (SLUICE_MAX_INTERFACES - 1);
    if (chained && !has_the_duty(p, slot))
        return 0;
    return switch_value(p, READ_ONCE(p->gate->attached[slot]));
}

/* What every packet needs: settings, this CPU's record, its length, the gate's mode. */
static __always_inline __u32 begin(struct packet* p) {
    p->gate = table_at(gate, 0);
    if (!p->gate)
        return 0;
    p->f->cpu_slot = this_cpu(p->gate);
    p->cpu = table_at(cpus, p->f->cpu_slot);
    if (!p->cpu)
        return 0;
    p->f->bytes = frame_bytes(p->ctx);
    p->f->mode = switch_value(p, READ_ONCE(p->gate->mode));
    return 1;
}

#endif
