#include "operate/policy_lists.h"

#include <algorithm>
#include <set>
#include <vector>

namespace sluice {

namespace {

std::vector<RuleEntry> entries_of(const Policy& policy) {
    std::vector<RuleEntry> entries;
    for (const Allow& allow : policy.sources.allow)
        entries.push_back(
            {.prefix = allow.prefix, .kind = RuleKind::allow, .exempt = allow.exempt});
    // The packet path finds a class's scale by its place in the file; 0 means "none".
    uint8_t number = 0;
    for (const SourceClass& source_class : policy.classes) {
        ++number;
        for (const Prefix& prefix : source_class.prefixes)
            entries.push_back(
                {.prefix = prefix, .kind = RuleKind::classify, .source_class = number});
    }
    return entries;
}

Status replace(SourceRules& rules, const std::vector<RuleEntry>& entries, const Operator& who) {
    const auto replaced =
        rules.replace_list(kPolicyList, entries, {.reason = "the policy", .actor = who.name});
    return replaced ? Status{} : replaced.error().with_context("the policy's allows and classes");
}

bool same_classes(const Policy& a, const Policy& b) {
    return std::equal(a.classes.begin(), a.classes.end(), b.classes.begin(), b.classes.end(),
                      [](const SourceClass& x, const SourceClass& y) {
                          return x.name == y.name && x.prefixes == y.prefixes;
                      });
}

}  // namespace

Status install_lists(SourceRules& rules, const Policy& policy, const Operator& who) {
    return replace(rules, entries_of(policy), who);
}

Status install_lists_for_a_time(SourceRules& rules, const Policy& before, const Policy& policy,
                                std::chrono::nanoseconds confirm, const Operator& who) {
    if (!same_classes(before, policy))
        return failed("a policy with other classes cannot be taken back by itself",
                      "apply the new classes first, without --confirm; then the rest with it");
    auto entries = entries_of(before);
    std::set<Prefix> standing;
    for (const Allow& allow : before.sources.allow)
        standing.insert(allow.prefix);
    for (const Allow& allow : policy.sources.allow)
        if (!standing.contains(allow.prefix))
            entries.push_back({.prefix = allow.prefix,
                               .kind = RuleKind::allow,
                               .ttl = confirm,
                               .exempt = allow.exempt});
    return replace(rules, entries, who);
}

}  // namespace sluice
