/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Headers into struct packet. A header is read where it lies, or copied when it is outside the
 * linear part. What the stack would discard is malformed; what is merely unknown has no ports.
 */
#ifndef SLUICE_BPF_PARSE_H
#define SLUICE_BPF_PARSE_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

#include "packet.h"

/* No header starts behind this: 8 tags, 8 extension headers of 2 KiB; also what the verifier wants.
 */
#define LARGEST_OFFSET 0x4fff

/* `size` bytes at `offset`: in place where the linear part has them, else in p->scratch until the
 * next call; NULL where the frame is shorter. */
static __always_inline const void* header_at(struct packet* p, __u32 offset, __u32 size) {
    const void* data = (const void*)(long)p->ctx->data;
    const void* data_end = (const void*)(long)p->ctx->data_end;

    if (offset > LARGEST_OFFSET)
        return NULL;
    if (likely(data + offset + size <= data_end))
        return data + offset;
    if (!multi_buffer || bpf_xdp_load_bytes(p->ctx, offset, p->scratch, size))
        return NULL;
    return p->scratch;
}

static __always_inline __u32 is_vlan(__be16 type) {
    return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

struct vlan_tag {
    __be16 control;
    __be16 type;
};

/* --- L2 ------------------------------------------------------------------------------------ */

static __always_inline int parse_link(struct packet* p, __be16* type) {
    const struct ethhdr* ethernet = header_at(p, 0, sizeof(*ethernet));
    if (!ethernet)
        return SLUICE_drop_malformed;

    *type = ethernet->h_proto;
    p->l3 = sizeof(*ethernet);
    if (likely(!is_vlan(*type)))
        return SLUICE_CONTINUE;

    for (int i = 0; i < SLUICE_MAX_VLAN_TAGS && is_vlan(*type); i++) {
        const struct vlan_tag* tag = header_at(p, p->l3, sizeof(*tag));
        if (!tag)
            return SLUICE_drop_malformed;
        *type = tag->type;
        p->l3 += sizeof(*tag);
    }
    return is_vlan(*type) ? SLUICE_drop_malformed : SLUICE_CONTINUE;
}

/* --- L3: addresses first, so that bans come before anything that could hide them ------------ */

static __always_inline int parse_ipv4(struct packet* p) {
    const struct iphdr* ip = header_at(p, p->l3, sizeof(*ip));
    if (!ip)
        return SLUICE_drop_malformed;

    p->f->ipv4 = 1;
    p->f->protocol = ip->protocol;
    p->f->source.high = 0;
    p->f->source.low = SLUICE_IPV4_LOW | bpf_ntohl(ip->saddr);
    p->f->destination.high = 0;
    p->f->destination.low = SLUICE_IPV4_LOW | bpf_ntohl(ip->daddr);

    const __u32 header = ip->ihl * 4u;
    __u32 total = bpf_ntohs(ip->tot_len);
    if (total == 0 && p->f->bytes > largest_frame) /* larger than the field can say */
        total = p->f->bytes - p->l3;
    p->l4 = p->l3 + header;
    p->end = p->l3 + total;
    p->malformed =
        ip->version != 4 || header < sizeof(*ip) || total < header || p->end > p->f->bytes;

    const __u16 fragment = bpf_ntohs(ip->frag_off);
    const __u32 offset = fragment & 0x1fff;
    if (unlikely(fragment & 0x3fff)) {
        p->fragment = offset ? LATER_FRAGMENT : FIRST_FRAGMENT;
        if (offset == 1 && p->f->protocol == IPPROTO_TCP) /* would overwrite the flags */
            p->malformed = 1;
    }
    return SLUICE_CONTINUE;
}

static __always_inline int parse_ipv6(struct packet* p) {
    const struct ipv6hdr* ip = header_at(p, p->l3, sizeof(*ip));
    if (!ip)
        return SLUICE_drop_malformed;

    const __be32* source = ip->saddr.s6_addr32;
    const __be32* destination = ip->daddr.s6_addr32;
    p->f->protocol = ip->nexthdr;
    p->f->source.high = (__u64)bpf_ntohl(source[0]) << 32 | bpf_ntohl(source[1]);
    p->f->source.low = (__u64)bpf_ntohl(source[2]) << 32 | bpf_ntohl(source[3]);
    p->f->destination.high = (__u64)bpf_ntohl(destination[0]) << 32 | bpf_ntohl(destination[1]);
    p->f->destination.low = (__u64)bpf_ntohl(destination[2]) << 32 | bpf_ntohl(destination[3]);

    const __u32 payload = bpf_ntohs(ip->payload_len);
    p->l4 = p->l3 + sizeof(*ip);
    p->end = payload ? p->l4 + payload : p->f->bytes; /* 0: a jumbogram */
    p->malformed = ip->version != 6 || p->end > p->f->bytes;
    return SLUICE_CONTINUE;
}

/* Ethernet, tags, and the IP header's own fields. */
static __always_inline int parse_source(struct packet* p) {
    __be16 type;
    const int verdict = parse_link(p, &type);
    if (verdict != SLUICE_CONTINUE)
        return verdict;
    if (likely(type == bpf_htons(ETH_P_IP)))
        return parse_ipv4(p);
    if (type == bpf_htons(ETH_P_IPV6))
        return parse_ipv6(p);
    return SLUICE_pass_not_ip;
}

/* --- L4 ------------------------------------------------------------------------------------ */

/* The two bytes that all IPv6 extension headers start with, and a fragment header's next two. */
struct extension {
    __u8 next;
    __u8 length;
    __be16 offset;
};

#define IPV6_FRAGMENT 44
#define IPV6_AUTHENTICATION 51
#define IPV6_MOBILITY 135
#define IPV6_HIP 139
#define IPV6_SHIM 140

static __always_inline __u32 is_extension(__u8 header) {
    return header == IPPROTO_HOPOPTS || header == IPPROTO_ROUTING || header == IPV6_FRAGMENT ||
           header == IPV6_AUTHENTICATION || header == IPPROTO_DSTOPTS || header == IPV6_MOBILITY ||
           header == IPV6_HIP || header == IPV6_SHIM;
}

/* Walks to the upper layer. Its own subprogram: rare, and large for the verifier. Returns the new
 * offset | protocol << 32 | fragment << 40, or 0 where a header is cut short. */
SUBPROGRAM __u64 skip_extensions(struct xdp_md* ctx, __u32 offset, __u32 protocol, __u32 end) {
    struct packet cursor = {.ctx = ctx};
    __u64 fragment = NOT_FRAGMENTED;

    for (int i = 0; i < SLUICE_MAX_EXTENSION_HEADERS; i++) {
        if (!is_extension(protocol))
            break;
        const struct extension* header = header_at(&cursor, offset, sizeof(*header));
        if (!header)
            return 0;
        const __u32 next = header->next;
        __u32 length = (header->length + 1u) * 8;
        if (protocol == IPV6_AUTHENTICATION)
            length = (header->length + 2u) * 4;
        if (protocol == IPV6_FRAGMENT) {
            const __u32 position = bpf_ntohs(header->offset) >> 3;
            length = 8;
            if (position == 1 && next == IPPROTO_TCP)
                return 0;
            if (position) {
                fragment = LATER_FRAGMENT;
            } else if (header->offset) {
                fragment = FIRST_FRAGMENT;
            }
        }
        offset += length;
        protocol = next;
        if (offset > end)
            return 0;
        if (fragment == LATER_FRAGMENT)
            break;
    }
    return offset | (__u64)protocol << 32 | fragment << 40;
}

#define TCP_FLAGS_END 14

static __always_inline int parse_tcp(struct packet* p) {
    /* A first fragment may end behind the flags; the stack waits for the rest. */
    const __u32 needed = p->fragment ? TCP_FLAGS_END : sizeof(struct tcphdr);
    if (p->l4 + needed > p->end)
        return SLUICE_drop_malformed;
    const __u8* tcp = header_at(p, p->l4, TCP_FLAGS_END);
    if (!tcp)
        return SLUICE_drop_malformed;

    const __u32 length = (tcp[12] >> 4) * 4u;
    const __u32 flags = tcp[13];
    if (length < sizeof(struct tcphdr) || (!p->fragment && p->l4 + length > p->end))
        return SLUICE_drop_malformed;

    p->f->source_port = (__u16)(tcp[0] << 8 | tcp[1]);
    p->f->destination_port = (__u16)(tcp[2] << 8 | tcp[3]);
    p->f->has_ports = 1;
    if ((flags & 0x12) == 0x02) /* SYN without ACK */
        p->f->dimensions |= 1u << SLUICE_CONNECTIONS;
    if (p->l4 + length < p->end)
        p->f->dimensions |= 1u << SLUICE_DATA;
    p->l4 += length;
    return SLUICE_CONTINUE;
}

static __always_inline int parse_udp(struct packet* p) {
    const struct udphdr* udp = header_at(p, p->l4, sizeof(*udp));
    if (!udp || p->l4 + sizeof(*udp) > p->end)
        return SLUICE_drop_malformed;

    const __u32 length = bpf_ntohs(udp->len);
    if (length < sizeof(*udp) && (p->f->ipv4 || length != 0) && p->f->bytes <= largest_frame)
        return SLUICE_drop_malformed;
    if (!p->fragment && p->l4 + length > p->end)
        return SLUICE_drop_malformed;

    p->f->source_port = bpf_ntohs(udp->source);
    p->f->destination_port = bpf_ntohs(udp->dest);
    p->f->has_ports = 1;
    p->f->dimensions |= 1u << SLUICE_DATA;
    p->l4 += sizeof(*udp);
    return SLUICE_CONTINUE;
}

#define ICMP_HEADER 8 /* of both families, at least */

/* An error message tells its receiver why a connection hangs: let it through in small measure. */
static __always_inline int parse_icmp(struct packet* p, __u32* essential) {
    if (p->l4 + ICMP_HEADER > p->end)
        return p->fragment ? SLUICE_CONTINUE : SLUICE_drop_malformed;
    const __u8* icmp = header_at(p, p->l4, ICMP_HEADER);
    if (!icmp)
        return SLUICE_drop_malformed;
    const __u8 type = icmp[0];
    /* Errors: unreachable (and too big), time exceeded, parameter problem. */
    *essential = p->f->ipv4 ? type == 3 || type == 11 || type == 12 : type >= 1 && type <= 4;
    p->l4 += ICMP_HEADER;
    return SLUICE_CONTINUE;
}

static __always_inline __u32 is_dhcp_reply(const struct packet* p) {
    return p->f->ipv4 ? p->f->source_port == 67 && p->f->destination_port == 68
                      : p->f->source_port == 547 && p->f->destination_port == 546;
}

/* Segments on the wire: more than one only in a frame that generic receive offload put together. */
static __always_inline __u32 segments_of(const struct packet* p) {
    if (likely(p->f->bytes <= largest_frame))
        return 1;
    const __u32 headers = p->l4 > p->l3 ? p->l4 - p->l3 : 0;
    const __u32 payload = p->end > p->l4 ? p->end - p->l4 : 0;
    const __u32 mtu = largest_frame - (__u32)sizeof(struct ethhdr) - (__u32)sizeof(struct vlan_tag);
    const __u32 room = mtu > headers ? mtu - headers : 1;
    return payload > room ? (payload + room - 1) / room : 1;
}

/* Extension headers, fragments, ports; and what of it is essential control traffic. */
static __always_inline int parse_upper(struct packet* p) {
    __u32 essential = 0;
    int verdict = SLUICE_CONTINUE;

    p->f->dimensions = 1u << SLUICE_PACKETS | 1u << SLUICE_BYTES;
    p->f->segments = 1;
    if (p->malformed)
        return SLUICE_drop_malformed;
    if (!p->f->ipv4 && unlikely(is_extension(p->f->protocol))) {
        const __u64 upper = skip_extensions(p->ctx, p->l4, p->f->protocol, p->end);
        if (!upper)
            return SLUICE_drop_malformed;
        p->l4 = (__u32)upper;
        p->f->protocol = (__u8)(upper >> 32);
        p->fragment = (__u8)(upper >> 40);
    }
    if (unlikely(p->fragment == LATER_FRAGMENT))
        return SLUICE_CONTINUE; /* no ports are ever read from it */

    if (likely(p->f->protocol == IPPROTO_TCP)) {
        verdict = parse_tcp(p);
    } else if (p->f->protocol == IPPROTO_UDP) {
        verdict = parse_udp(p);
        essential = is_dhcp_reply(p);
    } else if (p->f->protocol == (p->f->ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6)) {
        verdict = parse_icmp(p, &essential);
    }
    if (verdict != SLUICE_CONTINUE)
        return verdict;

    p->f->segments = segments_of(p);
    if (unlikely(essential) && !p->fragment &&
        take_token(&p->cpu->essential_ns, packet_now(p), SLUICE_ESSENTIAL_PER_SECOND,
                   SLUICE_ESSENTIAL_BURST))
        return SLUICE_pass_essential;
    return SLUICE_CONTINUE;
}

#endif
