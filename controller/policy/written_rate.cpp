#include "policy/written_rate.h"

#include <variant>

#include "base/quantities.h"
#include "policy/find_service.h"

namespace sluice {

std::string written_rate(const Limit& limit, Dimension dimension) {
    if (const auto* window = std::get_if<StrictWindow>(&limit))
        return std::to_string(window->limit) + " per " + format_duration(window->window);
    const Rate rate = std::get<TokenBucket>(limit).rate;
    return dimension == Dimension::bytes ? format_byte_rate(rate) : format_rate(rate);
}

std::string written_rate(const Policy& policy, std::string_view service, Rule rule) {
    const Service* found = find_service(policy, service);
    if (found == nullptr)
        return {};
    if (rule.scope == Scope::budget) {
        const auto budget = found->budget.find(rule.dimension);
        return budget == found->budget.end() ? "" : written_rate(budget->second, rule.dimension);
    }
    const Limits& limits = rule.scope == Scope::per_source ? found->per_source : found->per_prefix;
    const auto limit = limits.find(rule.dimension);
    return limit == limits.end() ? "" : written_rate(limit->second, rule.dimension);
}

}  // namespace sluice
