#include "operate/apply_policy.h"

#include <algorithm>

#include "gate/make_anew.h"
#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "operate/policy_lists.h"
#include "operate/protected_sources.h"
#include "operate/table_needs.h"
#include "policy/find_service.h"

namespace sluice {

namespace {

Result<Policy> policy_before(const Tables& tables) {
    auto before = current_policy(tables);
    if (before)
        return std::move(before->policy);
    if (before.error().code == ErrorCode::not_found)
        return Policy{};
    return before.error();
}

bool waits_for_confirmation(const Tables& tables) {
    const auto switches = list_switches(tables);
    return std::ranges::any_of(switches, [](const SwitchEntry& entry) {
        return entry.id == "policy" && entry.waits_for_confirmation;
    });
}

// Allows and classes first, then the limits. All or nothing.
Result<uint64_t> apply_in_order(Tables& tables, SourceRules& rules, const Policy& before,
                                const ConfigFile& config,
                                std::optional<std::chrono::nanoseconds> confirm,
                                const Operator& who) {
    const Status lists = confirm
                             ? install_lists_for_a_time(rules, before, config.policy, *confirm, who)
                             : install_lists(rules, config.policy, who);
    if (!lists)
        return lists.error();
    auto version =
        install_policy(tables, config.policy, config.text, config.source, {.confirm = confirm});
    if (!version)
        (void)install_lists(rules, before, who);
    return version;
}

}  // namespace

Status may_apply_policy(Tables& tables) {
    if (const Status settled = settle_policy(tables); !settled)
        return settled;
    if (waits_for_confirmation(tables))
        return failed("the policy in force waits for its confirmation",
                      "keep it with: sluicectl confirm policy; or wait until it is taken back");
    return {};
}

Result<uint64_t> apply_policy(Tables& tables, const ConfigFile& config,
                              std::optional<std::chrono::nanoseconds> confirm,
                              const Operator& who) {
    // install_policy() would refuse it too, but only after the lists have changed.
    if (const Status free = may_apply_policy(tables); !free)
        return free.error();
    const auto before = policy_before(tables);
    if (!before)
        return before.error();
    SourceRules rules(tables);
    if (const Status guarded = refresh_protection(tables, rules, who); !guarded)
        return guarded.error();
    tables.settings().lists_ahead = 1;
    auto version = apply_in_order(tables, rules, *before, config, confirm, who);
    tables.settings().lists_ahead = 0;
    return version;
}

std::vector<std::string> remarks_on(const Tables& tables, const Policy& policy) {
    std::vector<std::string> remarks;
    if (std::ranges::none_of(policy.services, limits_anybody))
        remarks.emplace_back("no service has a limit: only bans drop anything");
    if (const auto cpus = cpu_count())
        for (const std::string& shortfall : shortfalls(tables.sizes, needed_sizes(policy, *cpus)))
            remarks.push_back("made for less than this policy asks for: " + shortfall +
                              "; to change that, " + std::string(kMakeAnew));
    return remarks;
}

Status mend_policy(Tables& tables, const Operator& who) {
    if (tables.settings().lists_ahead == 0)
        return {};
    for (const Status& status : {settle_policy(tables), restate_policy(tables)})
        if (!status)
            return status;
    // One that waits was complete: its allows end by themselves.
    if (!waits_for_confirmation(tables)) {
        const auto policy = policy_before(tables);
        if (!policy)
            return policy.error();
        SourceRules rules(tables);
        if (const Status lists = install_lists(rules, *policy, who); !lists)
            return lists;
    }
    tables.settings().lists_ahead = 0;
    return {};
}

}  // namespace sluice
