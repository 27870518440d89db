/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* The gate's settings and its per-CPU housekeeping. */
#ifndef SLUICE_GATE_H
#define SLUICE_GATE_H

#include "ban.h"
#include "limits.h"
#include "mode.h"

/* Which clock a gate reads. */
enum sluice_clock {
    SLUICE_CLOCK_KERNEL = 0,
    SLUICE_CLOCK_SET = 1, /* `test_now_ns`: tests and replay */
};

/* While a program is replaced under a dispatcher, which of the two looks whether the other one
 * has had the packet already: the second in the chain. */
enum sluice_handover {
    SLUICE_HANDOVER_NONE = 0,
    SLUICE_HANDOVER_NEW_IS_SECOND = 1,
    SLUICE_HANDOVER_OLD_IS_SECOND = 2,
};

/* One element. Line 0 is read by every packet; the rest seldom or by userspace only. */
struct sluice_gate {
    __u64 mode;           /* switch word: enum sluice_mode */
    __u64 policy;         /* switch word: the half in force, 0 or 1 */
    __u64 ban4_view;      /* struct sluice_view */
    __u64 rule_view;      /* struct sluice_view */
    __u8 rule_lengths[2]; /* how many of rule_length[] are in use: [0] IPv4, [1] IPv6 */
    __u16 parts;          /* sources may have a part of their limit only: 0 = do not look */
    __u16 reserved0[2];
    __u32 bans4;   /* exact IPv4 bans: 0 = do not look */
    __u32 codes;   /* any /24 code set: 0 = do not look */
    __u64 changes; /* of rules, switches and policy, counted when done: copies are stale then */
    __u32 test_cpu;
    __u32 test_lag_ns; /* how far the coarse clock lags behind test_now_ns */
    /* line 1: lengths of the rules in use (of 128), longest first */
    __u8 rule_length[2][SLUICE_MAX_LENGTHS];
    /* line 2: 1 as long as the interface's attachment is confirmed, 0: pass everything */
    __u64 attached[SLUICE_MAX_INTERFACES];
    /* line 3: read under a dispatcher only: generation on duty | enum sluice_handover << 32 */
    __u64 duty[SLUICE_MAX_INTERFACES];
    /* from here: userspace only */
    struct sluice_seed seed;
    __u32 abi_version;
    __u32 layout; /* hash of all map sizes and structures */
    __u64 created_s;
    __u32 tick_ns;
    __u32 lag_ns;       /* of the coarse clock, measured at load */
    __u64 mode_then_ns; /* when a confirmed change of mode ends; 0 = stays */
    __u64 next_version; /* of the next policy */
    __u64 test_now_ns;
    __u64 restored;     /* 1: holds what the daemon's disk remembers, which may be overwritten */
    __u64 rules_dirty;  /* 1: a writer is, or died, between the listing and what follows from it */
    __u64 lists_ahead;  /* 1: a writer is, or died, between a policy's allows and its limits */
    __u64 host_sources; /* hash of the host's own protected set as it was last listed; 0 = never */
    __u64 host_id[2];   /* random: who this is among the hosts of a fleet; 0 = not drawn yet */
};
SLUICE_ASSERT_SIZE(struct sluice_gate, 6 * SLUICE_LINE);

/* Charges planned for the packet in hand in one scope, by dimension. */
struct sluice_planned {
    __u64 old[SLUICE_DIMENSIONS];    /* words as read */
    __u64 wanted[SLUICE_DIMENSIONS]; /* words as they are to be */
    __u32 set;                       /* before masking */
    __u32 slots;                     /* four bits a dimension: the slot in the set, 0 = nothing */
    __u32 charged;                   /* likewise: what was charged so far */
    __u32 reserved[13];
};
SLUICE_ASSERT_SIZE(struct sluice_planned, 2 * SLUICE_LINE);

/* Of one CPU. */
struct sluice_cpu {
    __u64 dither;       /* Weyl sequence that rounds costs */
    __u64 essential_ns; /* GCRA of essential traffic */
    __u64 lookup_ns;    /* GCRA of socket look-ups */
    __u64 reserved0;
    __u32 refilled;     /* jiffies of the last refill of the next three: others begin a tick */
    __u32 event_tokens; /* any sampled drop; an event costs SLUICE_EVENT_COST */
    __u32 first_tokens; /* kept for the first drop of a (source, verdict) */
    __u32 pass_tokens;  /* of what passes */
    __u64 handled;      /* 1: the generation before has had the current packet */
    __u32 cache_credit; /* looks into the verdict cache that are left before it has to pay */
    __u32 reserved1;
    /* line 1 */
    __u64 evicted_live;
    __u64 shared_live; /* newcomers that inherited a live word */
    __u64 cas_forced;  /* admissions added after SLUICE_CAS_TRIES lost */
    __u64 taken_back;  /* charges undone because a later one failed */
    __u64 sets_cleared;
    __u64 windows_evicted_live;
    __u64 zero; /* always 0, which the verifier cannot know: see opaque() */
    __u64 lookups_refused;
    /* Of the packet in hand: handed from check to charge. */
    __s32 would;       /* the first drop that observe mode let through, or SLUICE_CONTINUE */
    __u32 rule;        /* that decided */
    __u64 over_units;  /* how far ahead of the limit */
    __u64 window_key;  /* of the strict window to admit to; 0 = none */
    __u64 cache_key;   /* left by the plain way for the general one; 0 = none */
    __u64 events_lost; /* the ring buffer was full */
    __u32 window_limit;
    __u32 lasts; /* 1: whoever is refused now is refused until the coarse clock moves on */
    __u32 inverse_scale[SLUICE_DIMENSIONS]; /* of the source, by class and by part */
    struct sluice_planned planned[2];       /* per source, per prefix */
};
SLUICE_ASSERT_SIZE(struct sluice_cpu, 7 * SLUICE_LINE);

/* How an instance is attached. */
enum sluice_attachment {
    SLUICE_DETACHED = 0,
    SLUICE_ATTACHED_LINK = 1,       /* alone, by a pinned bpf_link */
    SLUICE_ATTACHED_DISPATCHER = 2, /* beside others, under libxdp's dispatcher */
};

/* Who holds an interface slot. */
struct sluice_interface {
    char name[16];
    __u32 index;
    __u32 attachment; /* enum sluice_attachment */
    __u32 native;     /* 1: in the driver, 0: generic */
    __u32 program_id;
    __u32 generation;
    __u32 largest_frame;
    __u64 netns; /* inode of the network namespace that the index belongs to */
    __u64 reserved[2];
};
SLUICE_ASSERT_SIZE(struct sluice_interface, SLUICE_LINE);

/* Drops that hold for the rest of a tick, of one CPU; see bpf/cache.h. An entry serves one source.
 * As many as a CPU can see several times within a tick: 256 KiB stay in its second-level cache. */
#define SLUICE_CACHE_ENTRIES 16384u
/* Looks without a hit that a CPU affords in a tick, and how many more a hit earns: with more
 * sources than entries the cache would cost more than it saves. */
#define SLUICE_CACHE_TRIAL 4096u
#define SLUICE_CACHE_EARNS 16u
/* Once it did not pay, it is tried again each so many ticks. */
#define SLUICE_CACHE_RETRY_TICKS 8u

struct sluice_cached {
    __u64 key; /* 0 = none */
    __u16 service;
    __u16 verdict;
    __u32 reserved;
};
struct sluice_cache {
    struct sluice_cached entry[SLUICE_CACHE_ENTRIES];
};
SLUICE_ASSERT_SIZE(struct sluice_cached, 16);

/* Recently reported (source, verdict): hash in the high half, minute in the low one. */
#define SLUICE_RECENT_SLOTS 1024u
struct sluice_recent {
    __u32 seen[SLUICE_RECENT_SLOTS];
};

#endif
