// Which of a cluster's slots a key belongs to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::redis {

inline constexpr size_t kSlots = 16'384;

// CRC16 of the hash tag, which is what stands between the first "{" and the next "}"; of the whole
// key where nothing does.
uint16_t slot_of(std::string_view key);

}  // namespace sluice::redis
