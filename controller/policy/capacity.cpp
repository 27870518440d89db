#include "policy/capacity.h"

#include "policy/rule_id.h"

namespace sluice {

double per_second(Rate rate) {
    return static_cast<double>(rate.count) / std::chrono::duration<double>(rate.per).count();
}

namespace {

// Nothing where it is not above.
std::string compared(const Service& service, Dimension dimension, const Budgets& budgets,
                     Rate most) {
    const auto budget = budgets.find(dimension);
    if (budget == budgets.end() || per_second(budget->second.rate) <= per_second(most))
        return {};
    const auto format = dimension == Dimension::bytes ? format_byte_rate : format_rate;
    return format_rule_id({service.name, {Scope::budget, dimension}}) + " = " +
           format(budget->second.rate) + " is above its capacity of " + format(most);
}

}  // namespace

std::vector<std::string> above_capacity(const Policy& policy) {
    std::vector<std::string> above;
    for (const Service& service : policy.services)
        for (const auto& [dimension, most] : service.capacity) {
            if (std::string text = compared(service, dimension, service.budget, most);
                !text.empty())
                above.push_back(std::move(text));
            for (const Schedule& schedule : service.schedules)
                if (const std::string text = compared(service, dimension, schedule.budget, most);
                    !text.empty())
                    above.push_back("schedule " + schedule.name + ": " + text);
        }
    return above;
}

}  // namespace sluice
