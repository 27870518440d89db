/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Keyed hashing of addresses: one hash a packet, from which every table takes its bits. */
#ifndef SLUICE_HASH_H
#define SLUICE_HASH_H

#include "types.h"

/*
 * Secret odd multipliers, drawn once for a set of tables and adopted with them. Multilinear in the
 * address, then one more multiplication, so that an attacker who does not know them can aim
 * neither at a set nor at a tag.
 */
struct sluice_seed {
    __u64 high;
    __u64 low;
    __u64 mix;
    __u64 salt;
};
SLUICE_ASSERT_SIZE(struct sluice_seed, 32);

/* An address as two host-order numbers; IPv4 a.b.c.d is ::ffff:a.b.c.d. */
struct sluice_address {
    __u64 high;
    __u64 low;
};

#define SLUICE_IPV4_LOW 0x0000ffff00000000ull

SLUICE_INLINE __u32 sluice_is_ipv4(struct sluice_address a) {
    return a.high == 0 && a.low >> 32 == 0xffff;
}

SLUICE_INLINE __u64 sluice_hash(const volatile struct sluice_seed* seed, __u64 high, __u64 low,
                                __u64 salt) {
    __u64 h = high * seed->high + (low + salt) * seed->low;
    h ^= h >> 32;
    h *= seed->mix;
    return h ^ h >> 29;
}

/* Of an address, or of the network that limits count in its place. */
SLUICE_INLINE __u64 sluice_address_hash(const volatile struct sluice_seed* seed,
                                        struct sluice_address a) {
    return sluice_hash(seed, a.high, a.low, 128);
}

/* A second, independent-looking hash of an already hashed source under another salt. */
SLUICE_INLINE __u64 sluice_rehash(const volatile struct sluice_seed* seed, __u64 hash, __u64 salt) {
    __u64 h = (hash + salt * seed->salt) * seed->mix;
    return h ^ h >> 32;
}

/* A mask of the first `length` of 64 bits. */
SLUICE_INLINE __u64 sluice_mask64(__u32 length) {
    return length == 0 ? 0 : length >= 64 ? ~0ull : ~0ull << (64 - length);
}

/* The network of an address; `length` counts in 128 bits, so IPv4 /24 is 120. */
SLUICE_INLINE struct sluice_address sluice_network(struct sluice_address a, __u32 length) {
    a.high &= sluice_mask64(length);
    a.low &= length > 64 ? sluice_mask64(length - 64) : 0;
    return a;
}

#endif
