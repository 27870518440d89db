// RuleLengths: the prefix lengths that the packet path looks up, longest first, by family.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <vector>

#include "gate/rule_key.h"
#include "gate/tables.h"

namespace sluice {

using LengthSet = std::bitset<129>;  // of 128

class RuleLengths {
  public:
    explicit RuleLengths(const Tables& tables) : tables_(&tables) {}

    [[nodiscard]] std::span<const uint8_t> in_use(Family family) const;
    // Refused where the packet path would have too many to look up.
    Status add(Family family, uint32_t length) const;
    // Whether all of these could be in use.
    static Status check(Family family, const LengthSet& lengths);
    // Takes away what is not in the set.
    Status keep_only(Family family, const LengthSet& lengths) const;

  private:
    const Tables* tables_;
};

}  // namespace sluice
