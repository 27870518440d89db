/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the stack knows of the packet's flow. Asked only when a packet is about to be dropped. */
#ifndef SLUICE_BPF_SOCKET_H
#define SLUICE_BPF_SOCKET_H

#include "packet.h"

/* Set of: the flow has completed a handshake or a connect(); its local port is listened on. */
#define FLOW_PROVEN 1u
#define FLOW_LISTENED 2u

enum {
    ESTABLISHED = 1,
    SYN_SENT = 2,
    FIN_WAIT1 = 4,
    FIN_WAIT2 = 5,
    CLOSE_WAIT = 8,
    LAST_ACK = 9,
    LISTEN = 10,
    CLOSING = 11,
};
#define PROVEN_STATES                                                                            \
    (1u << ESTABLISHED | 1u << SYN_SENT | 1u << FIN_WAIT1 | 1u << FIN_WAIT2 | 1u << CLOSE_WAIT | \
     1u << LAST_ACK | 1u << CLOSING)

struct flow {
    struct bpf_sock_tuple tuple;
    __u32 ipv4;
    __u32 tcp;
};

static __always_inline __u32 tuple_size(const struct flow* f) {
    return f->ipv4 ? sizeof(f->tuple.ipv4) : sizeof(f->tuple.ipv6);
}

static __always_inline __u32 tcp_state(struct xdp_md* ctx, struct flow* f) {
    struct bpf_sock* socket =
        bpf_skc_lookup_tcp(ctx, &f->tuple, tuple_size(f), BPF_F_CURRENT_NETNS, 0);
    if (!socket)
        return 0;
    const __u32 state = socket->state;
    bpf_sk_release(socket);
    return state & 31;
}

static __noinline __u32 look_up_flow(struct xdp_md* ctx, struct flow* f) {
    if (!f->tcp) {
        struct bpf_sock* socket =
            bpf_sk_lookup_udp(ctx, &f->tuple, tuple_size(f), BPF_F_CURRENT_NETNS, 0);
        if (!socket)
            return 0;
        /* A connected datagram socket counts as established; an open one is a listener. */
        const __u32 proven = socket->state == ESTABLISHED;
        bpf_sk_release(socket);
        return proven ? FLOW_PROVEN : FLOW_LISTENED;
    }

    __u32 result = 1u << tcp_state(ctx, f) & PROVEN_STATES ? FLOW_PROVEN : 0;
    /* No flow comes from port 0, so only a listener can answer to it. */
    if (f->ipv4)
        f->tuple.ipv4.sport = 0;
    else
        f->tuple.ipv6.sport = 0;
    if (tcp_state(ctx, f) == LISTEN)
        result |= FLOW_LISTENED;
    return result;
}

static __always_inline __u32 flow_of(struct packet* p) {
    if (!p->f->has_ports)
        return 0;
    if (!take_token(&p->cpu->lookup_ns, p->f->now_ns, SLUICE_LOOKUPS_PER_SECOND,
                    SLUICE_LOOKUPS_BURST)) {
        p->cpu->lookups_refused++;
        return 0;
    }
    struct flow f = {.ipv4 = p->f->ipv4, .tcp = p->f->protocol == IPPROTO_TCP};
    if (p->f->ipv4) {
        f.tuple.ipv4.saddr = bpf_htonl((__u32)p->f->source.low);
        f.tuple.ipv4.daddr = bpf_htonl((__u32)p->f->destination.low);
        f.tuple.ipv4.sport = bpf_htons(p->f->source_port);
        f.tuple.ipv4.dport = bpf_htons(p->f->destination_port);
    } else {
        f.tuple.ipv6.saddr[0] = bpf_htonl((__u32)(p->f->source.high >> 32));
        f.tuple.ipv6.saddr[1] = bpf_htonl((__u32)p->f->source.high);
        f.tuple.ipv6.saddr[2] = bpf_htonl((__u32)(p->f->source.low >> 32));
        f.tuple.ipv6.saddr[3] = bpf_htonl((__u32)p->f->source.low);
        f.tuple.ipv6.daddr[0] = bpf_htonl((__u32)(p->f->destination.high >> 32));
        f.tuple.ipv6.daddr[1] = bpf_htonl((__u32)p->f->destination.high);
        f.tuple.ipv6.daddr[2] = bpf_htonl((__u32)(p->f->destination.low >> 32));
        f.tuple.ipv6.daddr[3] = bpf_htonl((__u32)p->f->destination.low);
        f.tuple.ipv6.sport = bpf_htons(p->f->source_port);
        f.tuple.ipv6.dport = bpf_htons(p->f->destination_port);
    }
    return look_up_flow(p->ctx, &f);
}

/* A download or an answer that this host asked for: proven, on a port that nobody listens on. */
static __always_inline __u32 is_reply(struct packet* p) {
    return !COUNTS(p, SLUICE_CONNECTIONS) && flow_of(p) == FLOW_PROVEN;
}

#endif
