// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// What the others are measured against: the least that any XDP program can do to a packet.
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>

SEC("xdp.frags")
int bare(struct xdp_md* ctx) {
    (void)ctx;
    return XDP_DROP;
}

// In front of a limiter of the stack, where an XDP program must be for a fair comparison.
SEC("xdp.frags")
int pass(struct xdp_md* ctx) {
    (void)ctx;
    return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
