#include "operate/apply_policy.h"

#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "operate/policy_lists.h"
#include "operate/protected_sources.h"

namespace sluice {

namespace {

// install_policy() would refuse it too, but only after the lists have changed.
Status refuse_while_pending(const Tables& tables) {
    for (const SwitchEntry& entry : list_switches(tables))
        if (entry.id == "policy" && entry.waits_for_confirmation)
            return failed("the policy in force waits for its confirmation",
                          "keep it with: sluicectl confirm policy; or wait until it is taken back");
    return {};
}

Result<Policy> policy_before(const Tables& tables) {
    auto before = current_policy(tables);
    if (before)
        return std::move(before->policy);
    if (before.error().code == ErrorCode::not_found)
        return Policy{};
    return before.error();
}

}  // namespace

Result<uint64_t> apply_policy(Tables& tables, const ConfigFile& config,
                              std::optional<std::chrono::nanoseconds> confirm,
                              const Operator& who) {
    for (const Status& status : {settle_policy(tables), refuse_while_pending(tables)})
        if (!status)
            return status.error();
    const auto before = policy_before(tables);
    if (!before)
        return before.error();
    SourceRules rules(tables);
    if (const Status guarded = refresh_protection(tables, rules, who); !guarded)
        return guarded.error();
    const Status lists =
        confirm ? install_lists_for_a_time(rules, *before, config.policy, *confirm, who)
                : install_lists(rules, config.policy, who);
    if (!lists)
        return lists.error();
    auto version =
        install_policy(tables, config.policy, config.text, config.source, {.confirm = confirm});
    if (!version)
        (void)install_lists(rules, *before, who);
    return version;
}

}  // namespace sluice
