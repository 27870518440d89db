// Single words that the packet path reads while they change.
#pragma once

#include <linux/types.h>

#include <cstdint>

namespace sluice {

// What was written before is visible to whoever sees the new word.
inline void publish(__u64& word, uint64_t value) {
    __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

inline uint64_t published(const __u64& word) {
    return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

}  // namespace sluice
