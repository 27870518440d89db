/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Who is banned, allowed, protected or in a class. What the packet path reads are flat tables;
 * what people see (`bans`, `allows`) is the listing, from which the tables can be built anew.
 */
#ifndef SLUICE_BAN_H
#define SLUICE_BAN_H

#include "hash.h"
#include "limits.h"
#include "mode.h"

/* --- what a rule says about a prefix ------------------------------------------------------- */

#define SLUICE_RULE_BAN 1u
#define SLUICE_RULE_FORCED 2u     /* a ban that beats `protected` */
#define SLUICE_RULE_ALLOW 4u      /* no per-source limits; beats every ban */
#define SLUICE_RULE_EXEMPT 8u     /* with ALLOW: no budgets either */
#define SLUICE_RULE_PROTECTED 16u /* cannot be banned; nothing more */
#define SLUICE_RULE_CLASS 32u

/* Deadlines: 40 bits of 2^20 ns (36 years of uptime); all ones = permanent, 0 = not in use. */
#define SLUICE_UNTIL_BITS 40
#define SLUICE_UNTIL_PERMANENT ((1ull << SLUICE_UNTIL_BITS) - 1)

/* --- IPv4 prefixes: 2-bit codes per /24 ---------------------------------------------------- */

enum sluice_code {
    SLUICE_CODE_NONE = 0,  /* nothing but, perhaps, exact bans */
    SLUICE_CODE_ALLOW = 1, /* all of it allowed, for good */
    SLUICE_CODE_BAN = 2,   /* all of it banned, for good, and nothing speaks against it */
    SLUICE_CODE_RULES = 3, /* look the rules up */
};

/* 64-byte lines of 256 codes: first the summary (2^16 codes, one per /16: 0 = all its /24 are 0,
 * 3 = look), then 2^24 codes, one per /24. 16 KiB stay in the first-level cache. */
struct sluice_code_line {
    __u64 word[8];
};
#define SLUICE_CODES_PER_WORD 32u
#define SLUICE_SUMMARY_LINES (65536u / 256u)
#define SLUICE_CODE_LINES (SLUICE_SUMMARY_LINES + (1u << 24) / 256u)

/* --- exact IPv4 bans: dense lines ---------------------------------------------------------- */

#define SLUICE_BAN4_SLOTS 7
struct sluice_ban4_line {
    __u32 address[SLUICE_BAN4_SLOTS]; /* host order */
    __u32 until_low[SLUICE_BAN4_SLOTS];
    __u8 until_high[SLUICE_BAN4_SLOTS];
    __u8 reserved;
};
SLUICE_ASSERT_SIZE(struct sluice_ban4_line, SLUICE_LINE);

/* --- every other rule: lines of four ------------------------------------------------------- */

#define SLUICE_RULE_SLOTS 4

/* One rule: `network` is the half of the address that the length cuts (low for IPv4, high for
 * IPv6 up to /64); value = until (40 bits) | flags << 40 | class << 48 | length << 56. */
struct sluice_rule_entry {
    __u64 network;
    __u64 value; /* 0 = free */
};
struct sluice_rule_line {
    struct sluice_rule_entry entry[SLUICE_RULE_SLOTS];
};
SLUICE_ASSERT_SIZE(struct sluice_rule_line, SLUICE_LINE);

SLUICE_INLINE __u64 sluice_rule_value(__u64 until, __u64 flags, __u64 source_class, __u64 length) {
    return until | flags << 40 | source_class << 48 | length << 56;
}
SLUICE_INLINE __u64 sluice_rule_until(__u64 value) {
    return value & SLUICE_UNTIL_PERMANENT;
}
SLUICE_INLINE __u32 sluice_rule_flags(__u64 value) {
    return (__u32)(value >> 40) & 0xff;
}
SLUICE_INLINE __u32 sluice_rule_class(__u64 value) {
    return (__u32)(value >> 48) & 0xff;
}
SLUICE_INLINE __u32 sluice_rule_length(__u64 value) {
    return (__u32)(value >> 56);
}

/* IPv6 rules longer than /64, and what found its line full: a small exact hash. Up to 4 values. */
struct sluice_overflow_key {
    struct sluice_address network;
    __u32 length; /* of 128 */
    __u32 reserved;
};
struct sluice_overflow {
    __u64 value[SLUICE_RULE_SLOTS];
};

/* --- filters: one word a line, so that a miss costs one load ------------------------------- */

/* Bits 0..62 are a Bloom filter of three bits an entry; bit 63 says that the line overflowed. */
#define SLUICE_FILTER_OVERFLOW (1ull << 63)
SLUICE_INLINE __u64 sluice_filter_bits(__u64 hash) {
    return 1ull << (hash & 31) | 1ull << ((hash >> 5 & 31) + 31) | 1ull << (hash >> 10 & 31);
}

/*
 * The live part of a table of lines: base and size in one word, so that a rebuilt half is
 * published by one store. Lines are base + (hash >> 32 & mask).
 */
struct sluice_view {
    __u64 word; /* base << 32 | mask */
};
SLUICE_INLINE __u32 sluice_view_line(__u64 view, __u64 hash) {
    return (__u32)(view >> 32) + ((__u32)(hash >> 32) & (__u32)view);
}

/* Of a rule; an exact ban's is that of its address. */
SLUICE_INLINE __u64 sluice_rule_hash(const volatile struct sluice_seed* seed,
                                     struct sluice_address network, __u32 length) {
    return sluice_hash(seed, network.high, network.low, length);
}

/* --- the listing: what people asked for ---------------------------------------------------- */

struct sluice_listing_key {
    __u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d */
    __u8 length;      /* of 128 */
    __u8 kind;        /* one of SLUICE_RULE_BAN, _ALLOW, _PROTECTED, _CLASS */
    __u16 list;       /* index into `list_names`: operator, policy, a feed's name */
};
SLUICE_ASSERT_SIZE(struct sluice_listing_key, 20);

struct sluice_listing {
    __u64 until_ns; /* monotonic; SLUICE_NEVER = permanent */
    __u64 since_s;  /* wall clock, seconds since 1970 */
    __u32 note;     /* key into `notes`: actor and reason; 0 = none */
    __u8 flags;     /* SLUICE_RULE_* */
    __u8 source_class;
    __u16 reserved;
};
SLUICE_ASSERT_SIZE(struct sluice_listing, 24);

#define SLUICE_MAX_LISTS 256u
/* "operator"; of what the fleet says under that name "fleet/operator". */
#define SLUICE_LIST_NAME_BYTES 40u
struct sluice_list_name {
    char name[SLUICE_LIST_NAME_BYTES]; /* and the closing zero */
};

#define SLUICE_NOTE_BYTES 120
struct sluice_note {
    char text[SLUICE_NOTE_BYTES]; /* "actor\0reason" */
};

/* --- bans by hand --------------------------------------------------------------------------- */

/* `bans_manual`: key = 16 address bytes (IPv4 as ::ffff:a.b.c.d), value = deadline in monotonic
 * ns, all ones = permanent. Read when `bans_manual_on` is not 0. */
struct sluice_manual_key {
    __u8 address[16];
};
struct sluice_manual {
    __u64 until_ns;
};

#endif
