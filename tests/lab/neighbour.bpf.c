// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Somebody else's XDP program: counts what gets to it and lets it pass.
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>

__u64 seen = 0;

SEC("xdp")
int neighbour(struct xdp_md* ctx) {
    (void)ctx;
    __sync_fetch_and_add(&seen, 1);
    return XDP_PASS;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
