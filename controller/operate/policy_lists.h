// The part of a policy that lives in the rules about sources: its allows and its classes.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/operator.h"
#include "policy/policy.h"

namespace sluice {

// Makes the list "policy" exactly what the policy says.
Status install_lists(SourceRules& rules, const Policy& policy, const Operator& who);

// For a policy that may be taken back: new allows hold for `confirm` only, old ones stay until
// install_lists() comes with the confirmation. Refused where the classes change: their numbers
// belong to one policy, and would mean something else after the way back.
Status install_lists_for_a_time(SourceRules& rules, const Policy& before, const Policy& policy,
                                std::chrono::nanoseconds confirm, const Operator& who);

}  // namespace sluice
