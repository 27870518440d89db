/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Who sent it: allowed, protected, banned, in a class. Decided before anything that a sender can
 * shape (extension headers, fragments, ports) is looked at. */
#ifndef SLUICE_BPF_WHO_H
#define SLUICE_BPF_WHO_H

#include "packet.h"
#include "parse.h"

/* Neighbour discovery that cannot have crossed a router: without it the link is dead, and nobody
 * off the link can forge the hop limit. */
static __always_inline __u32 is_neighbour_discovery(struct packet* p) {
    if (p->f->ipv4 || p->f->protocol != IPPROTO_ICMPV6 || p->malformed)
        return 0;
    const struct ipv6hdr* ip = header_at(p, p->l3, sizeof(*ip));
    if (!ip || ip->hop_limit != 255)
        return 0;
    const __u8* icmp = header_at(p, p->l4, ICMP_HEADER); /* type, code */
    return icmp && icmp[0] >= 133 && icmp[0] <= 137 && icmp[1] == 0;
}

static __always_inline __u32 code_at(__u32 line_index, __u32 position) {
    const struct sluice_code_line* line = table_at(prefix_codes, line_index);
    return line ? (__u32)(READ_ONCE(line->word[position >> 5 & 7]) >> (position & 31) * 2) & 3
                : SLUICE_CODE_RULES;
}

/* The code of an IPv4 source's /24; the summary spares sources of untouched /16s a cache miss. */
static __always_inline __u32 prefix_code(__u32 address) {
    const __u32 wide = address >> 16;
    if (code_at(wide >> 8, wide) == SLUICE_CODE_NONE)
        return SLUICE_CODE_NONE;
    const __u32 net = address >> 8;
    return code_at(SLUICE_SUMMARY_LINES + (net >> 8), net);
}

/* What all rules that cover an address say together: SLUICE_RULE_* | class << 8. */
struct rules_match {
    __u32 flags;
    __u32 source_class;
};

static __always_inline void add_rule(struct packet* p, struct rules_match* match, __u64 value) {
    if (!is_live(p, sluice_rule_until(value)))
        return;
    match->flags |= sluice_rule_flags(value);
    if (!match->source_class) /* lengths come longest first */
        match->source_class = sluice_rule_class(value);
}

/* One length: filter word, line, and the overflow where the line has one. */
static __always_inline void match_length(struct packet* p, struct rules_match* match,
                                         struct sluice_address address, __u32 length) {
    const struct sluice_address network = sluice_network(address, length);
    const __u64 hash = sluice_rule_hash(&seed, network, length);
    const __u32 index = sluice_view_line(READ_ONCE(p->gate->rule_view), hash);
    const __u64 bits = sluice_filter_bits(hash);
    const __u64* filter = table_at(rule_filter, index);
    if (!filter || (READ_ONCE(*filter) & bits) != bits)
        return;

    const struct sluice_rule_line* line = table_at(rule_lines, index);
    if (!line)
        return;
    const __u64 half = length > 64 ? network.low : network.high;
    for (int i = 0; i < SLUICE_RULE_SLOTS; i++) {
        const __u64 value = READ_ONCE(line->entry[i].value);
        if (READ_ONCE(line->entry[i].network) == half && sluice_rule_length(value) == length)
            add_rule(p, match, value);
    }
    if (likely(!(READ_ONCE(*filter) & SLUICE_FILTER_OVERFLOW)))
        return;

    const struct sluice_overflow_key key = {.network = network, .length = length};
    const struct sluice_overflow* overflow = bpf_map_lookup_elem(&rule_overflow, &key);
    if (!overflow)
        return;
    for (int i = 0; i < SLUICE_RULE_SLOTS; i++)
        if (overflow->value[i])
            add_rule(p, match, READ_ONCE(overflow->value[i]));
}

/* All lengths in use; a subprogram, so that packets without rules do not carry its registers. */
SUBPROGRAM __u64 match_rules(__u64 high, __u64 low, __u32 ipv6) {
    struct sluice_gate* g = table_at(gate, 0);
    if (!g)
        return 0;
    struct facts facts = {};
    struct packet clock = {.gate = g, .f = &facts};
    struct rules_match match = {};
    const struct sluice_address address = {high, low};
    const __u32 count = g->rule_lengths[ipv6 & 1];

    for (__u32 i = 0; i < SLUICE_MAX_LENGTHS && i < count; i++)
        match_length(&clock, &match, address, g->rule_length[ipv6 & 1][i]);
    return match.flags | (__u64)match.source_class << 32;
}

/* The deadline of an address in its line, 0 = not there. It stands there once; a stale copy beside
 * it has no deadline. */
static __always_inline __u64 ban4_until(const struct sluice_ban4_line* line, __u32 address) {
    __u64 until = 0;
    for (int i = 0; i < SLUICE_BAN4_SLOTS; i++)
        if (READ_ONCE(line->address[i]) == address)
            until |= READ_ONCE(line->until_low[i]) | (__u64)READ_ONCE(line->until_high[i]) << 32;
    return until;
}

/* Exact IPv4 bans: a filter word, then a line of seven. */
static __always_inline __u32 is_banned_ipv4(struct packet* p) {
    const __u32 address = (__u32)p->f->source.low;
    const __u32 index = sluice_view_line(READ_ONCE(p->gate->ban4_view), p->f->source_hash);
    const __u64 bits = sluice_filter_bits(p->f->source_hash);
    const __u64* filter = table_at(ban4_filter, index);
    if (!filter || (READ_ONCE(*filter) & bits) != bits)
        return 0;

    const struct sluice_ban4_line* line = table_at(ban4_lines, index);
    if (!line)
        return 0;
    const __u64 until = ban4_until(line, address);
    if (until && is_live(p, until))
        return 1;
    if (likely(!(READ_ONCE(*filter) & SLUICE_FILTER_OVERFLOW)))
        return 0;
    const __u64* over = bpf_map_lookup_elem(&ban4_overflow, &address);
    return over && is_live(p, READ_ONCE(*over));
}

/* Bans that somebody made with bpftool alone. */
static __always_inline __u32 is_banned_by_hand(struct packet* p) {
    const __u32* on = table_at(bans_manual_on, 0);
    if (likely(!on || !READ_ONCE(*on)))
        return 0;
    struct {
        __be64 high, low;
    } key = {bpf_cpu_to_be64(p->f->source.high), bpf_cpu_to_be64(p->f->source.low)};
    const struct sluice_manual* manual = bpf_map_lookup_elem(&bans_manual, &key);
    if (!manual)
        return 0;
    const __u64 until = READ_ONCE(manual->until_ns);
    return until == SLUICE_NEVER || exact_now(p) < until;
}

/* Allow beats ban, whatever the lengths; protected beats a ban that was not forced. */
static __always_inline int check_source(struct packet* p) {
    struct sluice_gate* const g = p->gate;
    __u32 code = SLUICE_CODE_NONE;

    if (unlikely(is_neighbour_discovery(p)))
        return SLUICE_pass_essential;

    p->f->source_hash = sluice_address_hash(&seed, p->f->source);
    if (p->f->ipv4) {
        if (READ_ONCE(g->codes))
            code = prefix_code((__u32)p->f->source.low);
    } else if (g->rule_lengths[1]) {
        code = SLUICE_CODE_RULES;
    }
    if (code == SLUICE_CODE_BAN)
        return SLUICE_drop_banned;
    if (code == SLUICE_CODE_ALLOW)
        p->f->source_flags = SLUICE_RULE_ALLOW;
    if (code == SLUICE_CODE_RULES) {
        const __u64 match = match_rules(p->f->source.high, p->f->source.low, !p->f->ipv4);
        p->f->source_flags = (__u32)match;
        p->f->source_class = (__u32)(match >> 32) & SLUICE_MAX_CLASSES;
    }

    if (p->f->source_flags & SLUICE_RULE_ALLOW)
        return SLUICE_CONTINUE;
    if (p->f->source_flags & SLUICE_RULE_FORCED)
        return SLUICE_drop_banned;
    if (p->f->source_flags & SLUICE_RULE_PROTECTED)
        return SLUICE_CONTINUE;
    if (p->f->source_flags & SLUICE_RULE_BAN)
        return SLUICE_drop_banned;
    if (p->f->ipv4 && READ_ONCE(g->bans4) && is_banned_ipv4(p))
        return SLUICE_drop_banned;
    if (unlikely(is_banned_by_hand(p)))
        return SLUICE_drop_banned;
    return SLUICE_CONTINUE;
}

#endif
