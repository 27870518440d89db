#include "fleet/rl_config.h"

#include <algorithm>
#include <utility>

#include "operate/policy_compiles.h"
#include "policy/config_text.h"
#include "policy/find_service.h"
#include "policy/parse.h"
#include "policy/rule_id.h"
#include "policy/service_change.h"

namespace sluice {

namespace {

struct Change {
    ServiceChange change;
    std::vector<RuleId> rules;
};

bool is_overridden(const std::vector<PolicyOverride>& overrides, const std::string& service,
                   const std::string& rule) {
    return std::ranges::any_of(overrides, [&](const PolicyOverride& entry) {
        return entry.change.service == service &&
               std::ranges::any_of(entry.change.values,
                                   [&](const auto& value) { return value.first == rule; });
    });
}

std::vector<std::pair<Dimension, Limit>> limits_of(const RlCeiling& ceiling) {
    return {{Dimension::connections, ceiling.connections}, {Dimension::data, ceiling.data}};
}

Change change_of(const Service& own, const RlService& service, bool may_enforce,
                 const std::vector<PolicyOverride>& overrides) {
    Change made{{service.service, {}}, {}};
    for (const auto& [dimension, limit] : limits_of(*service.ceiling)) {
        const Rule rule{Scope::per_source, dimension};
        const std::string name = format_rule(rule);
        if (is_overridden(overrides, service.service, name) ||
            (!may_enforce && own.per_source.contains(dimension)))
            continue;
        made.change.values.emplace_back(name, limit_toml(limit));
        if (!may_enforce)
            made.change.values.emplace_back("modes." + name, mode_name(Mode::observe));
        made.rules.push_back({service.service, rule});
    }
    return made;
}

Result<ConfigFile> changed(const ConfigFile& config, const std::vector<Change>& changes) {
    auto tree = read_toml(config.text, config.source);
    if (!tree)
        return tree.error();
    for (const Change& change : changes)
        if (const Status done = change_service(*tree, change.change); !done)
            return done.error();
    std::string source = config.source + std::string(kWithRlLimits);
    auto policy = read_policy(*tree, source);
    if (!policy)
        return policy.error();
    if (const Status compiled = compiles_here(*policy); !compiled)
        return compiled.error();
    std::string text = "# " + source + '\n' + config_text(*tree);
    if (const Status fits = check_config_size(text); !fits)
        return fits.error();
    return ConfigFile{*std::move(policy), std::move(text), std::move(source)};
}

}  // namespace

RlLaid with_rl_limits(const ConfigFile& config, const std::vector<RlService>& services,
                      const std::vector<PolicyOverride>& overrides) {
    RlLaid laid{config, {}, {}};
    if (!config.policy.rl)
        return laid;
    const bool may_enforce = config.policy.rl->users_per_source.has_value();
    std::vector<Change> changes;
    for (const RlService& service : services) {
        const Service* own = find_service(config.policy, service.service);
        if (own == nullptr || !service.ceiling)
            continue;
        Change change = change_of(*own, service, may_enforce, overrides);
        if (!change.rules.empty())
            changes.push_back(std::move(change));
    }
    // One after the other only where they do not do together.
    auto all = changes.empty() ? Result(config) : changed(config, changes);
    if (!all) {
        std::vector<Change> fitting;
        all = config;
        for (Change& change : std::exchange(changes, {})) {
            fitting.push_back(change);
            auto with = changed(config, fitting);
            if (with) {
                all = std::move(with);
                continue;
            }
            fitting.pop_back();
            laid.left_out.push_back(change.change.service + ": " + with.error().message);
        }
        changes = std::move(fitting);
    }
    laid.config = *std::move(all);
    for (const Change& change : changes)
        laid.in_force.insert(laid.in_force.end(), change.rules.begin(), change.rules.end());
    return laid;
}

std::string format_rl_limits(const RlService& service) {
    if (!service.ceiling)
        return "as the policy says";
    std::string text;
    for (const auto& [dimension, limit] : limits_of(*service.ceiling))
        text += (text.empty() ? "" : " ") + format_rule({Scope::per_source, dimension}) + '=' +
                limit_toml(limit);
    return text;
}

}  // namespace sluice
