/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Where it goes: (destination, protocol, port) → service, in the half of the policy in force. */
#ifndef SLUICE_BPF_WHERE_H
#define SLUICE_BPF_WHERE_H

#include "packet.h"

/* The group of the longest destination prefix that the policy names, or 0. */
SUBPROGRAM __u32 destination_group(__u64 high, __u64 low, __u32 half) {
    const struct sluice_address address = {high, low};
    const struct sluice_policy* rules = table_at(policy, half);
    const __u32 count = rules ? rules->destination_lengths : 0;

    for (__u32 i = 0; i < SLUICE_MAX_LENGTHS && i < count; i++) {
        const __u32 length = rules->destination_length[i];
        const struct sluice_address network = sluice_network(address, length);
        const struct sluice_destination_key key = {
            .high = network.high, .low = network.low, .length = length, .half = half};
        const __u32* group = bpf_map_lookup_elem(&destinations, &key);
        if (group)
            return *group;
    }
    return 0;
}

/* `line` is where the protocol's numbers begin. */
static __always_inline __u32 port_class(__u32 half, __u32 line, __u32 number) {
    const struct sluice_port_line* numbers =
        table_at(ports, half * SLUICE_HALF_PORT_LINES + line + (number >> 5));
    return numbers ? numbers->port_class[number & 31] : 0;
}

static __always_inline __u32 class_of(const struct packet* p) {
    if (!p->f->has_ports)
        return port_class(p->f->half, SLUICE_PROTOCOL_LINES, p->f->protocol);
    const __u32 line = p->f->protocol == IPPROTO_TCP ? SLUICE_TCP_LINES : SLUICE_UDP_LINES;
    return port_class(p->f->half, line, p->f->destination_port);
}

static __always_inline int find_service(struct packet* p) {
    p->f->half = switch_value(p, READ_ONCE(p->gate->policy)) & 1;
    p->policy = table_at(policy, p->f->half);
    if (!p->policy)
        return SLUICE_pass_internal;

    p->f->service_id = SLUICE_SERVICE_OTHER;
    if (likely(p->fragment != LATER_FRAGMENT)) {
        __u32 cell = class_of(p);
        if (likely(!p->policy->destination_lengths)) {
            p->f->service_id = cell; /* nothing but the port says where to */
            return SLUICE_CONTINUE;
        }
        cell += p->policy->port_classes *
                destination_group(p->f->destination.high, p->f->destination.low, p->f->half);
        const struct sluice_cell_line* line =
            table_at(cells, p->f->half * SLUICE_HALF_CELL_LINES + (cell >> 5));
        if (line)
            p->f->service_id = line->service[cell & 31];
    }
    return SLUICE_CONTINUE;
}

#endif
