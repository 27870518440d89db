#include "redis/slot.h"

namespace sluice::redis {

namespace {

// CRC-16/XMODEM. A key has a few dozen bytes and each command goes over the network: no table.
uint16_t crc16(std::string_view bytes) {
    constexpr unsigned kPolynomial = 0x1021;
    unsigned crc = 0;
    for (const char byte : bytes) {
        crc ^= static_cast<unsigned>(static_cast<unsigned char>(byte)) << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 0x8000U) != 0 ? crc << 1 ^ kPolynomial : crc << 1;
    }
    return static_cast<uint16_t>(crc);
}

std::string_view hash_tag(std::string_view key) {
    const size_t open = key.find('{');
    if (open == std::string_view::npos)
        return key;
    const size_t close = key.find('}', open + 1);
    if (close == std::string_view::npos || close == open + 1)
        return key;
    return key.substr(open + 1, close - open - 1);
}

}  // namespace

uint16_t slot_of(std::string_view key) {
    return static_cast<uint16_t>(crc16(hash_tag(key)) % kSlots);
}

}  // namespace sluice::redis
