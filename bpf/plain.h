/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The plain packet: TCP or UDP right behind the IP header, whole, under at most one VLAN tag, while
 * nothing in the gate waits for a deadline. Nearly all packets are plain, and floods are nothing
 * else, so they are decided here in registers. Whatever turns out not to be plain goes the general
 * way from its first byte: nothing is written before the decision is final, and both say the same
 * (tests/gate/plain_test.cpp).
 */
#ifndef SLUICE_BPF_PLAIN_H
#define SLUICE_BPF_PLAIN_H

#include "account.h"
#include "cache.h"
#include "limit.h"
#include "packet.h"
#include "parse.h"
#include "where.h"
#include "who.h"

/* Not plain: the general way decides. Beside enum sluice_verdict and XDP actions. */
#define NOT_PLAIN (-2)

/* What is read from the headers. */
struct plain {
    struct sluice_address source;
    __u32 bytes;
    __u32 ipv4;
    __u32 tcp;
    __u32 port;       /* of the destination */
    __u32 dimensions; /* bits 1 << enum sluice_dimension */
};

/* True where the gate enforces, and no switch that all packets read will change by itself. */
static __always_inline __u32 is_at_rest(const struct sluice_gate* g) {
    const __u32 slot = interface_slot & (SLUICE_MAX_INTERFACES - 1);
    const __u64 mode = READ_ONCE(g->mode), attached = READ_ONCE(g->attached[slot]);

    if (chained && READ_ONCE(g->duty[slot]) != generation) /* or in the middle of a handover */
        return 0;
    return !sluice_switch_deadline(mode | attached | READ_ONCE(g->policy)) &&
           (mode & 15) == SLUICE_MODE_ENFORCE && (attached & 15);
}

static __always_inline __u32 parse_plain_tcp(struct plain* t, const __u8* tcp, __u32 length) {
    const __u32 header = (tcp[12] >> 4) * 4u;

    if (header < sizeof(struct tcphdr) || header > length)
        return 0;
    t->tcp = 1;
    if ((tcp[13] & 0x12) == 0x02) /* SYN without ACK */
        t->dimensions |= 1u << SLUICE_CONNECTIONS;
    if (header < length)
        t->dimensions |= 1u << SLUICE_DATA;
    return 1;
}

static __always_inline __u32 parse_plain_udp(struct plain* t, const struct udphdr* udp,
                                             __u32 length) {
    const __u32 own = bpf_ntohs(udp->len);

    t->dimensions |= 1u << SLUICE_DATA;
    return own >= sizeof(*udp) && own <= length &&
           t->port != (t->ipv4 ? 68 : 546); /* DHCP may be essential */
}

/* Fills in all of `t`; false where the packet is not plain. */
static __always_inline __u32 parse_plain(struct xdp_md* ctx, struct plain* t) {
    const void* data = (const void*)(long)ctx->data;
    const void* end = (const void*)(long)ctx->data_end;
    const struct ethhdr* ethernet = data;
    const void* l3 = data + sizeof(*ethernet);
    const void* l4;
    __u32 headers = sizeof(*ethernet); /* in front of l4 */
    __u32 length;                      /* of the datagram, by its IP header */
    __u32 protocol;

    if (l3 + sizeof(struct vlan_tag) + sizeof(struct iphdr) + sizeof(struct udphdr) > end)
        return 0;
    __be16 type = ethernet->h_proto;
    if (unlikely(is_vlan(type))) {
        type = ((const struct vlan_tag*)l3)->type;
        l3 += sizeof(struct vlan_tag);
        headers += sizeof(struct vlan_tag);
    }
    t->bytes = frame_bytes(ctx);
    t->dimensions = 1u << SLUICE_PACKETS | 1u << SLUICE_BYTES;
    t->tcp = 0;

    if (likely(type == bpf_htons(ETH_P_IP))) {
        const struct iphdr* ip = l3;
        if (*(const __u8*)ip != 0x45 || ip->frag_off & bpf_htons(0x3fff))
            return 0;
        t->ipv4 = 1;
        t->source = (struct sluice_address){0, SLUICE_IPV4_LOW | bpf_ntohl(ip->saddr)};
        protocol = ip->protocol;
        length = bpf_ntohs(ip->tot_len) - (__u32)sizeof(*ip);
        headers += sizeof(*ip);
        l4 = ip + 1;
    } else if (type == bpf_htons(ETH_P_IPV6)) {
        const struct ipv6hdr* ip = l3;
        if ((const void*)(ip + 1) + sizeof(struct udphdr) > end || ip->version != 6)
            return 0;
        const __be64* words = (const __be64*)&ip->saddr;
        t->ipv4 = 0;
        t->source = (struct sluice_address){bpf_be64_to_cpu(words[0]), bpf_be64_to_cpu(words[1])};
        protocol = ip->nexthdr;
        length = bpf_ntohs(ip->payload_len);
        headers += sizeof(*ip);
        l4 = ip + 1;
    } else {
        return 0;
    }
    /* A `length` below zero has wrapped to more than any room. */
    if (length > t->bytes - headers || t->bytes > largest_frame)
        return 0;

    t->port = bpf_ntohs(((const struct udphdr*)l4)->dest);
    if (protocol == IPPROTO_UDP)
        return parse_plain_udp(t, l4, length);
    if (protocol != IPPROTO_TCP || l4 + sizeof(struct tcphdr) > end)
        return 0;
    return parse_plain_tcp(t, l4, length);
}

/* CONTINUE, drop_banned, or NOT_PLAIN where a rule says anything else about the source. */
static __always_inline int check_plain_source(const struct sluice_gate* g, const struct plain* t,
                                              __u64 hash) {
    const __u32* by_hand = table_at(bans_manual_on, 0);
    __u32 code = SLUICE_CODE_NONE;

    if (t->ipv4) {
        if (READ_ONCE(g->codes))
            code = prefix_code((__u32)t->source.low);
    } else if (g->rule_lengths[1]) {
        code = SLUICE_CODE_RULES;
    }
    if (code == SLUICE_CODE_RULES) {
        const __u32 flags = (__u32)match_rules(t->source.high, t->source.low, !t->ipv4);
        code = !flags                    ? SLUICE_CODE_NONE
               : flags & SLUICE_RULE_BAN ? SLUICE_CODE_BAN
                                         : SLUICE_CODE_RULES;
        if (flags & ~(SLUICE_RULE_BAN | SLUICE_RULE_FORCED))
            return NOT_PLAIN;
    }
    if (code == SLUICE_CODE_BAN)
        return SLUICE_drop_banned;
    if (code != SLUICE_CODE_NONE || !by_hand || READ_ONCE(*by_hand))
        return NOT_PLAIN;
    if (!t->ipv4 || !READ_ONCE(g->bans4))
        return SLUICE_CONTINUE;

    const __u32 index = sluice_view_line(READ_ONCE(g->ban4_view), hash);
    const __u64 bits = sluice_filter_bits(hash);
    const __u64* filter = table_at(ban4_filter, index);
    if (!filter)
        return NOT_PLAIN;
    const __u64 word = READ_ONCE(*filter);
    if (likely((word & bits) != bits))
        return SLUICE_CONTINUE;
    const struct sluice_ban4_line* line = table_at(ban4_lines, index);
    if (!line)
        return NOT_PLAIN;
    const __u64 until = ban4_until(line, (__u32)t->source.low);
    if (until == SLUICE_UNTIL_PERMANENT || (until && is_surely_live(until, coarse_clock(g))))
        return SLUICE_drop_banned;
    return until || word & SLUICE_FILTER_OVERFLOW ? NOT_PLAIN : SLUICE_CONTINUE;
}

/* Over a limit: a drop only where that is all there is to it. */
static __always_inline int refuse_plain(const struct plain* t, const struct sluice_service* s,
                                        struct sluice_cpu* cpu, __u64 now, __u32 d) {
    const struct sluice_service_switches* w = table_at(switches, s->id);
    if (!w)
        return NOT_PLAIN;
    const __u64 whole = READ_ONCE(w->service.word), rule = READ_ONCE(w->rule[d].word);
    if (sluice_switch_deadline(whole | rule) || (whole & 15) != SLUICE_MODE_ENFORCE ||
        (rule & 15) != SLUICE_MODE_ENFORCE)
        return NOT_PLAIN;
    if (s->flags & SLUICE_SERVICE_REPLY_EXEMPT && !(t->dimensions & 1u << SLUICE_CONNECTIONS)) {
        if (has_token(cpu->lookup_ns, now, SLUICE_LOOKUPS_PER_SECOND, SLUICE_LOOKUPS_BURST))
            return NOT_PLAIN; /* it may be a reply: ask the socket */
        cpu->lookups_refused++;
    }
    return SLUICE_drop_source_connections + (int)d;
}

/* Reads every limit of the source that applies, then charges all of them or none. */
static __always_inline int apply_plain_limits(const struct plain* t, __u64 now,
                                              const struct sluice_policy* rules,
                                              const struct sluice_service* s, __u32 limited,
                                              __u64 hash, struct sluice_cpu* cpu) {
    const struct sluice_slot place = sluice_source_slot(&seed, hash, s->id, SLUICE_PER_SOURCE);
    struct sluice_source_set* set = table_at(sources, place.set & source_set_mask);
    __u64 old[SLUICE_DIMENSIONS], cost[SLUICE_DIMENSIONS], wanted[SLUICE_DIMENSIONS];
    __u32 slot[SLUICE_DIMENSIONS];
    __u32 taken = 0;

    if (!set)
        return NOT_PLAIN;
    const __u64 units = sluice_units(now);
    if (since(now, READ_ONCE(set->touched)) > SLUICE_TOUCH_NS)
        return NOT_PLAIN;
#pragma unroll
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        if (!(limited & 1u << d))
            continue;
        const struct sluice_limit* limit = &s->source[d];
        const __u64 tag = sluice_tag(place.tag, d);
        __u64 owed = 0;
        slot[d] = find_slot(set, tag);
        cost[d] =
            sluice_cost(limit, d == SLUICE_BYTES ? t->bytes : 1, SLUICE_SCALE_ONE, cpu->dither);
        if (likely(slot[d])) {
            old[d] = READ_ONCE(*slot_word(set, slot[d]));
            owed = sluice_owed(old[d], units, limit->span, cost[d]);
        } else if (!rules->share_on_full) {
            slot[d] = choose_slot(place.set, units, taken, tag) & SLUICE_SET_WORDS;
            old[d] = READ_ONCE(*slot_word(set, slot[d]));
        }
        if (!slot[d] || taken & 1u << slot[d])
            return NOT_PLAIN;
        taken |= 1u << slot[d];
        if (!sluice_admits(owed, limit->span, cost[d]) &&
            (!limit->exact || !sluice_admits(least_owed(owed), limit->span, cost[d])))
            return refuse_plain(t, s, cpu, now, d);
        if (unlikely(limit->exact))
            return NOT_PLAIN; /* charged by the fine clock */
        wanted[d] = sluice_word(tag, units + owed + cost[d]);
    }
#pragma unroll
    for (__u32 d = 0; d < SLUICE_DIMENSIONS; d++) {
        if (!(limited & 1u << d))
            continue;
        if (likely(__sync_val_compare_and_swap(slot_word(set, slot[d]), old[d], wanted[d]) ==
                   old[d])) {
            count_replaced(cpu, rules, old[d], wanted[d], units);
            continue;
        }
        for (__u32 e = 0; e < d; e++)
            if (limited & 1u << e)
                give_back(place.set, word_name(wanted[e] >> SLUICE_TAT_BITS, slot[e]), cost[e]);
        return NOT_PLAIN; /* another CPU was faster */
    }
    cpu->dither += DITHER_STEP;
    return SLUICE_pass_within;
}

/* The rest of the way of a packet whose verdict is known already. */
static __always_inline int count_cached(struct sluice_cpu* cpu, __u32 cpu_slot,
                                        const struct sluice_cached* entry, __u32 bytes) {
    const __u32 verdict = entry->verdict;
    struct sluice_counters* c = counters_of(cpu_slot, entry->service);

    if (!c || verdict >= SLUICE_COUNTERS)
        return NOT_PLAIN;
    if (cpu->cache_credit < SLUICE_CACHE_TRIAL)
        cpu->cache_credit += SLUICE_CACHE_EARNS;
    c->by_verdict[verdict].packets++;
    c->by_verdict[verdict].bytes += bytes;
    return XDP_DROP;
}

/* What is to be known of a verdict beside itself. */
struct plain_verdict {
    struct sluice_cached* entry; /* where it may be kept, */
    __u64 key;                   /* and under which key */
    __u32 service_id;
    __u32 lasts; /* whoever is refused now is refused until the next tick */
};

/* A pass, a drop, or NOT_PLAIN: what the limits of the packet's service say. */
static __always_inline int check_plain_limits(const struct sluice_gate* g, const struct plain* t,
                                              __u64 hash, __u32 cpu_slot, struct sluice_cpu* cpu,
                                              struct plain_verdict* v) {
    const __u32 half = (__u32)READ_ONCE(g->policy) & 1;
    const struct sluice_policy* rules = table_at(policy, half);
    if (!rules || rules->destination_lengths)
        return NOT_PLAIN;
    v->service_id = port_class(half, t->tcp ? SLUICE_TCP_LINES : SLUICE_UDP_LINES, t->port);
    const struct sluice_service* s = table_at(services, half * service_capacity + v->service_id);
    if (!s)
        return NOT_PLAIN;
    /* Whether it is a reply that may pass depends on more than the cache knows. */
    v->lasts =
        !(s->flags & SLUICE_SERVICE_REPLY_EXEMPT) || t->dimensions & 1u << SLUICE_CONNECTIONS;
    if (s->prefix_limits || s->budget_limits || s->jail_ns || s->window.limit) {
        cpu->cache_key = v->lasts ? v->key : 0;
        return NOT_PLAIN;
    }
    if (!s->source_limits)
        return SLUICE_pass_unlimited;
    const __u32 limited = s->source_limits & t->dimensions;
    if (!limited)
        return SLUICE_pass_within;
    const struct sluice_address counted = MASKED(t->source, rules->source_mask[!t->ipv4]);
    const __u32 is_itself = counted.low == t->source.low && counted.high == t->source.high;
    const __u64 source = is_itself ? hash : sluice_address_hash(&seed, counted);
    const __u64 now = coarse_clock(g);
    if (unlikely(READ_ONCE(g->parts)) && apply_parts(source, s->id, cpu_slot, sluice_units(now))) {
        cpu->cache_key = v->lasts ? v->key : 0;
        return NOT_PLAIN;
    }
    return apply_plain_limits(t, now, rules, s, limited, source, cpu);
}

/* An XDP action, or NOT_PLAIN. */
static __noinline int decide_plain(struct xdp_md* ctx) {
    struct plain packet;
    struct plain_verdict v = {.service_id = SLUICE_SERVICE_OTHER, .lasts = 1};
    const struct sluice_gate* g = table_at(gate, 0);

    if (!g || !is_at_rest(g) || !parse_plain(ctx, &packet))
        return NOT_PLAIN;
    const __u64 hash = sluice_address_hash(&seed, packet.source);
    const __u64 tick = current_tick(g);
    const __u32 cpu_slot = this_cpu(g);
    struct sluice_cpu* cpu = table_at(cpus, cpu_slot);
    if (!cpu || unlikely(is_new_tick(cpu, tick))) /* account() has to do with its first packet */
        return NOT_PLAIN;
    if (cpu->cache_credit) {
        v.entry = cache_entry(cpu_slot, hash);
        v.key = cache_key(g, tick, hash, packet.tcp, packet.port, packet.dimensions, packet.bytes);
        if (v.entry && v.entry->key == v.key)
            return count_cached(cpu, cpu_slot, v.entry, packet.bytes);
        cpu->cache_credit--;
    }
    int verdict = check_plain_source(g, &packet, hash);
    if (verdict == SLUICE_CONTINUE)
        verdict = check_plain_limits(g, &packet, hash, cpu_slot, cpu, &v);

    const __u32 is_drop = sluice_is_drop(verdict);
    if (verdict == NOT_PLAIN || (is_drop && may_report(cpu, cpu_slot, hash, verdict)))
        return NOT_PLAIN;
    struct sluice_counters* c = counters_of(cpu_slot, v.service_id);
    if (!c)
        return NOT_PLAIN;
    c->by_verdict[verdict].packets++;
    c->by_verdict[verdict].bytes += packet.bytes;
    if (is_drop && v.lasts && v.entry)
        keep_verdict(v.entry, v.key, v.service_id, verdict);
    return drop_all || is_drop ? XDP_DROP : XDP_PASS;
}

#endif
