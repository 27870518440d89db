/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Every map of the gate. Sizes written as 1 are set at load from the policy and the machine
 * (controller/gate/tables.cpp); all maps are pinned under these names.
 */
#ifndef SLUICE_BPF_MAPS_H
#define SLUICE_BPF_MAPS_H

#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>
#include <sluice/ban.h>
#include <sluice/budget.h>
#include <sluice/event.h>
#include <sluice/gate.h>
#include <sluice/service.h>
#include <sluice/source.h>
#include <sluice/verdict.h>

/* A flat table that userspace maps into its memory. */
#define FLAT_TABLE(map_name, elements, value_type) \
    struct {                                       \
        __uint(type, BPF_MAP_TYPE_ARRAY);          \
        __uint(map_flags, BPF_F_MMAPABLE);         \
        __uint(max_entries, elements);             \
        __type(key, __u32);                        \
        __type(value, value_type);                 \
    } map_name SEC(".maps")

#define HASH_TABLE(map_name, elements, key_type, value_type) \
    struct {                                                 \
        __uint(type, BPF_MAP_TYPE_HASH);                     \
        __uint(map_flags, BPF_F_NO_PREALLOC);                \
        __uint(max_entries, elements);                       \
        __type(key, key_type);                               \
        __type(value, value_type);                           \
    } map_name SEC(".maps")

/* Settings, switches. */
FLAT_TABLE(gate, 1, struct sluice_gate);
FLAT_TABLE(switches, 1, struct sluice_service_switches);                /* by service id */
FLAT_TABLE(interfaces, SLUICE_MAX_INTERFACES, struct sluice_interface); /* userspace only */

/* Who: rules about sources. */
FLAT_TABLE(prefix_codes, SLUICE_CODE_LINES, struct sluice_code_line);
FLAT_TABLE(rule_lines, 1, struct sluice_rule_line); /* two halves, see rule_view */
FLAT_TABLE(rule_filter, 1, __u64);                  /* a word a line */
HASH_TABLE(rule_overflow, 1, struct sluice_overflow_key, struct sluice_overflow);
FLAT_TABLE(ban4_lines, 1, struct sluice_ban4_line); /* two halves, see ban4_view */
FLAT_TABLE(ban4_filter, 1, __u64);
HASH_TABLE(ban4_overflow, 1, __u32, __u64); /* address in host order → deadline, 2^20 ns */
HASH_TABLE(bans_manual, 4096, struct sluice_manual_key, struct sluice_manual);
FLAT_TABLE(bans_manual_on, 1, __u32);
/* What was asked for, by whom; userspace only. */
HASH_TABLE(listing, 1, struct sluice_listing_key, struct sluice_listing);
FLAT_TABLE(list_names, SLUICE_MAX_LISTS, struct sluice_list_name);
HASH_TABLE(notes, 65536, __u32, struct sluice_note);

/* What: the policy, in two halves. */
FLAT_TABLE(policy, 2, struct sluice_policy);
FLAT_TABLE(services, 1, struct sluice_service); /* half × capacity + id */
FLAT_TABLE(ports, 2 * SLUICE_HALF_PORT_LINES, struct sluice_port_line);
FLAT_TABLE(cells, 2 * SLUICE_HALF_CELL_LINES, struct sluice_cell_line);
HASH_TABLE(destinations, 2 * SLUICE_MAX_DESTINATIONS, struct sluice_destination_key, __u32);
FLAT_TABLE(service_names, SLUICE_MAX_SERVICES + 1, struct sluice_service_name);
FLAT_TABLE(policy_text, 2, struct sluice_policy_text);

/* How much: state. */
FLAT_TABLE(sources, 1, struct sluice_source_set);
FLAT_TABLE(budgets, 1, struct sluice_budget); /* by service id */
FLAT_TABLE(leases, 1, struct sluice_lease);   /* CPU slot × capacity + id */
FLAT_TABLE(shares, 1, struct sluice_share);   /* service id × dimensions + dimension */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sluice_window_set);
} windows SEC(".maps");

/* What happened. */
FLAT_TABLE(counters, 1, struct sluice_counters); /* (CPU × interfaces + slot) × capacity + id */
FLAT_TABLE(cpus, 1, struct sluice_cpu);
FLAT_TABLE(recent, 1, struct sluice_recent);
FLAT_TABLE(verdict_cache, 1, struct sluice_cache); /* by CPU slot */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
} events SEC(".maps");

#endif
