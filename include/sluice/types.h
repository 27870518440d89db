/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What C, C++ and BPF need to read the same structures. */
#ifndef SLUICE_TYPES_H
#define SLUICE_TYPES_H

#include <linux/types.h>

#ifdef __cplusplus
#define SLUICE_ASSERT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes), #type)
#else
#define SLUICE_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), #type)
#endif

#ifdef __bpf__
#define SLUICE_INLINE static inline __attribute__((always_inline, unused))
#else
#define SLUICE_INLINE static inline
#endif

/* One cache line: the unit in which every hot structure is counted. */
#define SLUICE_LINE 64

#endif
