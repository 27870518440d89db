// A service of a policy by its name, and what it says.
#pragma once

#include <algorithm>
#include <string_view>

#include "policy/policy.h"

namespace sluice {

// nullptr where the policy has none of that name.
inline const Service* find_service(const Policy& policy, std::string_view name) {
    const auto found = std::ranges::find(policy.services, name, &Service::name);
    return found == policy.services.end() ? nullptr : &*found;
}

// Whether anybody can be too fast for it.
inline bool limits_anybody(const Service& service) {
    return !service.per_source.empty() || !service.per_prefix.empty() || !service.budget.empty();
}

}  // namespace sluice
