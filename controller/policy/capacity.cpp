#include "policy/capacity.h"

#include "policy/rule_id.h"

namespace sluice {

double per_second(Rate rate) {
    return static_cast<double>(rate.count) / std::chrono::duration<double>(rate.per).count();
}

std::vector<std::string> above_capacity(const Policy& policy) {
    std::vector<std::string> above;
    for (const Service& service : policy.services)
        for (const auto& [dimension, most] : service.capacity) {
            const auto budget = service.budget.find(dimension);
            if (budget == service.budget.end() ||
                per_second(budget->second.rate) <= per_second(most))
                continue;
            const auto format = dimension == Dimension::bytes ? format_byte_rate : format_rate;
            above.push_back(format_rule_id({service.name, {Scope::budget, dimension}}) + " = " +
                            format(budget->second.rate) + " is above its capacity of " +
                            format(most));
        }
    return above;
}

}  // namespace sluice
