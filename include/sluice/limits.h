/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Every limit of the gate, with its reason. */
#ifndef SLUICE_LIMITS_H
#define SLUICE_LIMITS_H

/* Version of all pinned structures; a gate of another version is migrated or refused, never read.
 */
#define SLUICE_ABI_VERSION 5u

/* Services that a policy may name. Stable ids are 0 (`other`) to 1,024. */
#define SLUICE_MAX_SERVICES 1024u
#define SLUICE_SERVICE_OTHER 0u
#define SLUICE_NAME_BYTES 33u /* 32 characters and the closing zero */

/* Source classes; class 0 means "none" (scale 1). */
#define SLUICE_MAX_CLASSES 255u

/* Interfaces that one gate serves: slots of counters and of timed attachments. */
#define SLUICE_MAX_INTERFACES 8u

/* Distinct destination prefixes, and cells (destination group × port class) of the service table:
 * 2^18 cells of two bytes are 512 KiB a half, beyond what any sane policy needs. */
#define SLUICE_MAX_DESTINATIONS 4096u
#define SLUICE_MAX_CELLS (1u << 18)

/* Distinct prefix lengths in use per family for destinations and for source rules: each costs a
 * look-up a packet, so more is refused with the count. */
#define SLUICE_MAX_LENGTHS 32u

/* Headers that a parser walks before it stops: enough for real traffic (QinQinQ is three tags),
 * bounded for the verifier. Deeper VLAN stacks are malformed, deeper extension chains `other`. */
#define SLUICE_MAX_VLAN_TAGS 8
#define SLUICE_MAX_EXTENSION_HEADERS 8

/* Tolerance, period and jail are at most two days: a 40-bit time of 2^10 ns units is compared
 * within half of its 13 days, and sets untouched for a quarter of them are cleared. */
#define SLUICE_UNIT_SHIFT 10
#define SLUICE_TAT_BITS 40
#define SLUICE_MAX_SPAN_NS (2ull * 24 * 3600 * 1000000000ull)
#define SLUICE_SET_STALE_NS (1ull << (SLUICE_TAT_BITS + SLUICE_UNIT_SHIFT - 2))

/* A class may scale limits by 1/64 to 64: the cost arithmetic stays within 64 bits and 0.1 %. */
#define SLUICE_MAX_SCALE 64u

/* How long a host may go by what the fleet last said of a source: two rounds of asking, so that
 * one lost answer changes nothing. Whatever a word says, its part holds no longer. */
#define SLUICE_PART_NS 2000000000ull

/* Most units that one packet can charge in any dimension: the bytes of a super-packet. */
#define SLUICE_MAX_CHARGE (1u << 17)

/* How many charges a packet larger than the burst can leave as a debt: the segments of a 64 KiB
 * super-packet, with room to spare. What lies further ahead is a leftover of another policy. */
#define SLUICE_MAX_DEBT 64u

/* The smallest burst of bytes: a super-packet of generic XDP must fit, or it could never pass. */
#define SLUICE_MIN_BYTES_BURST 65550u

/* Lost compare-and-swaps before an admission is added unconditionally. */
#define SLUICE_CAS_TRIES 4

/* Strict windows: up to this many are logged exactly, more are counted in cells. */
#define SLUICE_WINDOW_SLOTS 16
#define SLUICE_MAX_WINDOW_LIMIT 65535u
#define SLUICE_MAX_WINDOW_NS (3600ull * 1000000000ull)

/* A budget's per-CPU lease is this much time of its rate (at least one unit). */
#define SLUICE_LEASE_NS 50000ull
/* Short budgets: how often the share of sources that wait is steered, and rotated. */
#define SLUICE_STEER_NS 100000000ull
#define SLUICE_ROTATE_NS 10000000000ull
#define SLUICE_SHED_ALL 65536u

/* Essential control traffic that passes the limits, per CPU: a busy router's error messages. */
#define SLUICE_ESSENTIAL_PER_SECOND 500u
#define SLUICE_ESSENTIAL_BURST 100u
/* Socket look-ups on behalf of packets about to be dropped, per CPU: about 3 % of a core. */
#define SLUICE_LOOKUPS_PER_SECOND 50000u
#define SLUICE_LOOKUPS_BURST 1000u

/* The policy's text is kept beside it, so that `services` and `why` can quote it; 1,024 services
 * with every limit written out are about 600 KiB. */
#define SLUICE_MAX_POLICY_TEXT (1u << 20)

#endif
