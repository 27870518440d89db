// TableUse: how full a table about sources is. A full one refuses what is new; what is in it holds.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

struct TableUse {
    std::string_view name;  // of its pin
    uint64_t used = 0;      // entries, expired ones that nobody has cleared away yet too
    uint64_t capacity = 0;

    [[nodiscard]] double ratio() const {
        return static_cast<double>(used) / static_cast<double>(capacity);
    }
};

}  // namespace sluice
