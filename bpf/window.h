/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Strict windows of new connections: read by every SYN, written (under a lock) only to admit. */
#ifndef SLUICE_BPF_WINDOW_H
#define SLUICE_BPF_WINDOW_H

#include "limit.h"
#include "modes.h"
#include "packet.h"

/* Longer than any window that a policy may have, in window units. */
#define LONGEST_WINDOW ((__u32)(2 * SLUICE_MAX_WINDOW_NS >> SLUICE_WINDOW_SHIFT))

static __always_inline __u32 window_set(__u64 key) {
    return (__u32)(key >> 32) & window_set_mask;
}

static __always_inline __u32 window_time(__u64 now_ns) {
    const __u32 time = (__u32)(now_ns >> SLUICE_WINDOW_SHIFT);
    return time ? time : 1; /* 0 means free */
}

static __always_inline __u32 window_age(__u32 time, __u32 at) {
    return (__s32)(time - at) > 0 ? time - at : 0;
}

/* Log: the window is full while the N-th last admission is still in it. */
static __always_inline __u32 is_log_full(const struct sluice_window* w, __u32 time, __u32 length,
                                         __u32 limit) {
    const __u32 at = READ_ONCE(w->slot[(READ_ONCE(w->head) - limit) % SLUICE_WINDOW_SLOTS]);
    return at && window_age(time, at) < length;
}

/* A cell's count where its epoch is one of the last 16, else 0; without a branch, whose two ways
 * in sixteen cells would be 65,536 paths to the verifier. */
static __always_inline __u32 live_count(__u32 cell, __u32 epoch) {
    const __u32 age = (epoch - (cell >> 16)) & 0xffff;
    __u32 live = (age - SLUICE_WINDOW_SLOTS) >> 31;
    asm volatile("" : "+r"(live));
    return (cell & 0xffff) * live;
}

static __always_inline __u32 count_cells(const struct sluice_window* w, __u32 epoch) {
    __u32 count = 0;
    for (__u32 i = 0; i < SLUICE_WINDOW_SLOTS; i++)
        count += live_count(READ_ONCE(w->slot[i]), epoch);
    return count;
}

/* Which window of the set holds `key`; SLUICE_WINDOWS_PER_SET where none does. */
static __always_inline __u32 find_window(const struct sluice_window_set* set, __u64 key) {
    for (__u32 i = 0; i < SLUICE_WINDOWS_PER_SET; i++)
        if (READ_ONCE(set->window[i].key) == key)
            return i;
    return SLUICE_WINDOWS_PER_SET;
}

/* Without the lock: a full window is full, whatever else happens meanwhile. */
SUBPROGRAM __u32 is_window_full(__u32 service_row, __u64 key, __u32 limit, __u64 now) {
    const struct sluice_window_set* set = table_at(windows, window_set(key));
    const struct sluice_service* s = table_at(services, service_row);
    if (!set || !s)
        return 0;
    const struct sluice_window_limit* window = &s->window;
    const __u32 time = window_time(now);
    const __u32 index = find_window(set, key);

    if (index >= SLUICE_WINDOWS_PER_SET ||
        since(now, READ_ONCE(set->touched)) > SLUICE_SET_STALE_NS)
        return 0;
    const struct sluice_window* w = &set->window[index];
    if (window_age(time, READ_ONCE(w->newest)) >= window->length)
        return 0;
    if (window->cell_ns)
        return count_cells(w, (__u32)(now / window->cell_ns)) >= limit;
    return is_log_full(w, time, window->length, limit);
}

static __always_inline void clear_window(struct sluice_window* w, __u64 key, __u32 head) {
    w->key = key;
    w->newest = 0;
    w->head = head;
    for (int i = 0; i < SLUICE_WINDOW_SLOTS; i++)
        w->slot[i] = 0;
}

/* Under the set's lock: the window of `key`, made anew from the one that is nearest to empty. */
static __always_inline __u32 claim_window(struct sluice_window_set* set, __u64 key, __u32 time,
                                          __u32 length, __u32 head, __u32* evicted) {
    __u32 index = find_window(set, key);
    if (index < SLUICE_WINDOWS_PER_SET)
        return index;
    __u32 best_age = 0;
    index = 0;
    for (__u32 i = 0; i < SLUICE_WINDOWS_PER_SET; i++) {
        const __u32 age = set->window[i].key ? window_age(time, set->window[i].newest) : ~0u;
        if (age >= best_age) {
            best_age = age;
            index = i;
        }
    }
    *evicted = best_age < length;
    clear_window(&set->window[index], key, head);
    return index;
}

enum admitted {
    WINDOW_FULL = 0,
    WINDOW_ADMITTED = 1,
    WINDOW_ADMITTED_EVICTING = 2, /* a live window of another source made room */
};

SUBPROGRAM __u32 admit_to_window(__u32 service_row, __u64 key, __u32 limit, __u64 now) {
    struct sluice_window_set* set = table_at(windows, window_set(key));
    const struct sluice_service* s = table_at(services, service_row);
    if (!set || !s)
        return WINDOW_ADMITTED;
    const __u32 time = window_time(now), length = s->window.length;
    const __u32 epoch = s->window.cell_ns ? (__u32)(now / s->window.cell_ns) : 0;
    const __u32 head = s->window.cell_ns ? SLUICE_WINDOW_CELLS : 0; /* of a cleared window */
    __u32 evicted = 0, admitted = 0;

    bpf_spin_lock(&set->lock);
    /* What is over must be gone before its 32-bit times could be taken for new ones. */
    const __u32 all = since(now, set->touched) > SLUICE_SET_STALE_NS;
    for (int i = 0; i < SLUICE_WINDOWS_PER_SET; i++)
        if (all || window_age(time, set->window[i].newest) > LONGEST_WINDOW)
            clear_window(&set->window[i], 0, 0);
    set->touched = now;

    __u32 index = claim_window(set, key, time, length, head, &evicted);
    if (index >= SLUICE_WINDOWS_PER_SET)
        index = 0;
    struct sluice_window* w = &set->window[index];
    /* All of it is over, or was counted in another way by another policy. */
    if (window_age(time, w->newest) >= length || (w->head & SLUICE_WINDOW_CELLS) != head)
        clear_window(w, key, head);
    if (head) {
        for (__u32 i = 0; i < SLUICE_WINDOW_SLOTS; i++)
            if (((epoch - (w->slot[i] >> 16)) & 0xffff) >= SLUICE_WINDOW_SLOTS)
                w->slot[i] = 0;
        if (count_cells(w, epoch) < limit) {
            __u32* cell = &w->slot[epoch % SLUICE_WINDOW_SLOTS];
            *cell = (epoch & 0xffff) << 16 | ((*cell & 0xffff) + 1);
            admitted = 1;
        }
    } else if (!is_log_full(w, time, length, limit)) {
        w->slot[w->head % SLUICE_WINDOW_SLOTS] = time;
        w->head = (w->head + 1) % SLUICE_WINDOW_CELLS;
        admitted = 1;
    }
    if (admitted)
        w->newest = time;
    bpf_spin_unlock(&set->lock);

    return !admitted ? WINDOW_FULL : evicted ? WINDOW_ADMITTED_EVICTING : WINDOW_ADMITTED;
}

static __always_inline __u32 scaled_window(const struct packet* p) {
    const __u32 limit = p->service->window.limit;
    const __u32 inverse = p->policy->inverse_scale[p->f->source_class & SLUICE_MAX_CLASSES];
    if (likely(inverse == SLUICE_SCALE_ONE || inverse == 0))
        return limit;
    const __u64 scaled = (__u64)limit * SLUICE_SCALE_ONE / inverse;
    return scaled ? (__u32)scaled : 1;
}

static __always_inline int check_window(struct packet* p) {
    const __u32 rule = sluice_rule(SLUICE_PER_SOURCE, SLUICE_CONNECTIONS);
    const __u64 key =
        sluice_rehash(&seed, limited_source(p), p->f->service_id + 1) | 1; /* 0 means free */

    const __u32 limit = scaled_window(p);
    if (!is_window_full(service_row_of(p), key, limit, p->f->now_ns)) {
        p->cpu->window_key = key;
        p->cpu->window_limit = limit;
        return SLUICE_CONTINUE;
    }
    return exceeds(p, rule, SLUICE_drop_source_window, 0) ? SLUICE_drop_source_window
                                                          : SLUICE_CONTINUE;
}

static __always_inline int charge_window(struct packet* p) {
    const __u32 rule = sluice_rule(SLUICE_PER_SOURCE, SLUICE_CONNECTIONS);
    if (!is_charged(p, rule))
        return SLUICE_CONTINUE;
    const __u32 admitted =
        admit_to_window(service_row_of(p), p->cpu->window_key, p->cpu->window_limit, p->f->now_ns);
    if (admitted == WINDOW_ADMITTED_EVICTING)
        p->cpu->windows_evicted_live++;
    if (admitted != WINDOW_FULL)
        return SLUICE_CONTINUE;
    return exceeds(p, rule, SLUICE_drop_source_window, 0) ? SLUICE_drop_source_window
                                                          : SLUICE_CONTINUE;
}

#endif
