// SourceRules::counts() for those who ask again and again: with a million bans it takes most of a
// second.
#pragma once

#include <sluice/gate.h>

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "gate/source_rules.h"
#include "gate/tables.h"

namespace sluice {

class RuleCounter {
  public:
    // Counted anew only where the gate is another one, something changed, or something ended. Of
    // `tables`, what was swept since shows after some seconds.
    // Errors as those of SourceRules::counts().
    Result<RuleCounts> of(Tables& tables);

  private:
    struct Counted {
        sluice_seed seed;  // secret and random: each gate's own
        uint64_t changes;
        uint64_t at_ns;
        RuleCounts counts;
    };
    [[nodiscard]] bool still_holds(const Tables& tables) const;

    std::optional<Counted> last_;
};

}  // namespace sluice
