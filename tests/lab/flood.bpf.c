// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Turns one live test frame into the next packet of a flood and sends it out of a device.
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>
#include <stdbool.h>

#include "flood_frame.h"

// The whole header is written anew each time: frames are recycled, and a receiver may have
// changed them (untagging a VLAN moves the MAC addresses).
const volatile __u64 header[FLOOD_HEADER_WORDS];
const volatile __u32 header_words = 0;

const volatile __u32 out_ifindex = 0;
const volatile __u32 l3_offset = 0;
const volatile __u32 l4_offset = 0;
const volatile bool ipv6 = false;
const volatile bool tcp = false;

// Sums over everything constant, so that a packet adds only what differs.
const volatile __u32 l3_sum = 0;
const volatile __u32 l4_sum = 0;

const volatile __u32 sources = 1;
// 0, or the power of two up to which numbers of sources are drawn by Zipf's law.
const volatile __u32 zipf_bits = 0;
const volatile __u32 flows = 1;
const volatile __u64 first_source_high = 0;  // host order; an IPv4 address is in the low half
const volatile __u64 first_source_low = 0;
const volatile __u64 step_high = 0;
const volatile __u64 step_low = 1;
const volatile __u16 first_port = 1024;

__u64 sent = 0;
__u32 source = 0;
__u32 flow = 0;

static __always_inline __u16 checksum(__u64 sum) {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__u16)~sum;
}

static __always_inline __u64 halves(__u64 word) {
    return (word & 0xffffffff) + (word >> 32);
}

// Of the numbers from 1 to 2^zipf_bits, n with a chance of about 1 / n: the length is drawn first.
static __always_inline __u32 zipf(__u64 packet) {
    __u64 random = (packet + 1) * 0x9e3779b97f4a7c15ull;

    random ^= random >> 29;
    random *= 0xbf58476d1ce4e5b9ull;
    random ^= random >> 32;
    __u32 length = ((__u32)(random >> 32) * (__u64)zipf_bits) >> 32;

    return (1u << (length & 31)) | ((__u32)random & ((1u << (length & 31)) - 1));
}

SEC("xdp")
int flood(struct xdp_md* ctx) {
    void* end = (void*)(long)ctx->data_end;
    void* data = (void*)(long)ctx->data;

    for (__u32 i = 0; i < FLOOD_HEADER_WORDS; i++) {
        __u64* word = data + i * sizeof(*word);

        if (i >= header_words || (void*)(word + 1) > end)
            break;
        *word = header[i];
    }

    void* l3 = data + l3_offset;
    void* l4 = data + l4_offset;
    if (l4 + FLOOD_L4_BYTES > end)
        return XDP_ABORTED;

    __u32 which = zipf_bits ? zipf(sent) : source;
    __u64 low = first_source_low + step_low * which;
    __u64 sum = l4_sum;
    if (ipv6) {
        __u64* address = l3 + 8;

        if ((void*)(address + 2) > end)
            return XDP_ABORTED;
        address[0] = bpf_cpu_to_be64(first_source_high + step_high * which);
        address[1] = bpf_cpu_to_be64(low);
        sum += halves(address[0]) + halves(address[1]);
    } else {
        __u32* address = l3 + 12;
        __u16* check = l3 + 10;

        if ((void*)(address + 1) > end)
            return XDP_ABORTED;
        *address = bpf_htonl((__u32)low);
        *check = checksum((__u64)l3_sum + *address);
        sum += *address;
    }

    __u16* port = l4;
    *port = bpf_htons((__u16)(first_port + flow));
    sum += *port;
    if (tcp) {
        __u32* sequence = l4 + 4;
        __u16* check = l4 + 16;

        *sequence = (__u32)sent * 2654435761u;
        *check = checksum(sum + *sequence);
    } else {
        __u16* check = l4 + 6;

        *check = checksum(sum);
        if (!*check)
            *check = 0xffff;
    }

    sent++;
    if (++source >= sources) {
        source = 0;
        if (++flow >= flows)
            flow = 0;
    }
    return (int)bpf_redirect(out_ifindex, 0);
}

char _license[] SEC("license") = "Dual BSD/GPL";
