// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
/*
 * The gate: who sent it, where it goes, is it within the limits there. Each step either names a
 * verdict or says CONTINUE; there is one exit, which counts.
 */
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>

#include "account.h"
#include "apply.h"
#include "cache.h"
#include "duty.h"
#include "packet.h"
#include "parse.h"
#include "plain.h"
#include "where.h"
#include "who.h"

/* The general way: any packet, step by step. */
static __noinline int decide(struct xdp_md* ctx) {
    struct facts facts = {};
    struct packet packet = {.ctx = ctx, .f = &facts};
    struct packet* p = &packet;

    if (!begin(p) || !is_on_duty(p))
        return XDP_PASS;

    int verdict = facts.mode == SLUICE_MODE_OFF ? SLUICE_pass_mode_off : SLUICE_CONTINUE;
    if (verdict == SLUICE_CONTINUE)
        verdict = parse_source(p); /* L2, addresses */
    if (verdict == SLUICE_CONTINUE)
        verdict = check_source(p); /* allow, ban, class */
    if (verdict == SLUICE_CONTINUE)
        verdict = parse_upper(p); /* extension headers, fragments, ports */
    if (verdict == SLUICE_CONTINUE)
        verdict = find_service(p);
    if (verdict == SLUICE_CONTINUE)
        verdict = apply_limits(p);
    const int action = account(p, verdict);
    keep_general_verdict(p, verdict);
    return action;
}

/* Most packets are plain, and decided in registers; the rest is for the general way. */
SEC("xdp")
int sluice(struct xdp_md* ctx) {
    const int action = plain_path ? decide_plain(ctx) : NOT_PLAIN;

    return likely(action != NOT_PLAIN) ? action : decide(ctx);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
