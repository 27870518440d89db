#include "operate/ban_guard.h"

#include <algorithm>

namespace sluice {

namespace {

// The rule with this flag on the prefix itself or on one around it.
const SourceMatch* covering(const SourceLookup& found, const Prefix& prefix, uint32_t flag) {
    for (const SourceMatch& match : found.matches)
        if ((match.flags & flag) != 0 && match.prefix.contains(prefix))
            return &match;
    return nullptr;
}

std::string reason_of(const ListedRule& rule) {
    return rule.reason.empty() ? "list " + rule.list : rule.reason;
}

std::string reasons(const SourceMatch& match) {
    std::string text;
    for (const ListedRule& rule : match.listed)
        if (rule.kind == RuleKind::protect)
            text += (text.empty() ? "" : ", ") + reason_of(rule);
    return text.empty() ? "a rule without a name" : text;
}

bool is_grace(const SourceMatch& match) {
    return std::ranges::all_of(match.listed, [](const ListedRule& rule) {
        return rule.kind != RuleKind::protect || rule.list == kGrace;
    });
}

std::string around(const SourceMatch& match, const Prefix& prefix) {
    return match.prefix == prefix ? "" : " by " + match.prefix.to_string();
}

Error is_protected(const Prefix& prefix, const std::string& by, std::string_view why,
                   bool by_grace = false) {
    return failed(prefix.to_string() + " is protected" + by + ": " + std::string(why),
                  by_grace ? "wait until that is over; or insist: --force"
                           : "to insist: --force, which can cut this host or you off");
}

}  // namespace

Status check_ban(SourceRules& rules, const Prefix& prefix, bool forced,
                 const std::vector<ProtectedSource>& guarded) {
    const auto found = rules.lookup(prefix.address());
    if (!found)
        return found.error();
    if (const SourceMatch* allow = covering(*found, prefix, SLUICE_RULE_ALLOW))
        return failed(prefix.to_string() + " is allowed" + around(*allow, prefix) +
                          ", and an allow beats every ban",
                      "un-allow it first: sluicectl unallow " + allow->prefix.to_string());
    if (forced)
        return {};
    if (is_too_wide(prefix))
        return failed(prefix.to_string() + " is too wide to be banned by mistake: shorter than " +
                          (prefix.family() == Family::ipv4 ? "/8" : "/19"),
                      "to insist: --force");
    if (const SourceMatch* guard = covering(*found, prefix, SLUICE_RULE_PROTECTED))
        return is_protected(prefix, around(*guard, prefix), reasons(*guard), is_grace(*guard));
    for (const ProtectedSource& source : guarded)
        if (Prefix::host(source.address).contains(prefix))
            return is_protected(prefix, "", source.reason);
    return {};
}

Result<std::vector<std::string>> spared_inside(SourceRules& rules, const Prefix& prefix,
                                               const std::vector<ProtectedSource>& guarded) {
    std::vector<std::string> spared;
    if (prefix.is_host())
        return spared;
    const auto spare = [&](const Prefix& inside, std::string_view why) {
        std::string text = inside.to_string() + " (" + std::string(why) + ')';
        if (prefix.contains(inside) && std::ranges::find(spared, text) == spared.end())
            spared.push_back(std::move(text));
    };
    for (const RuleKind kind : {RuleKind::protect, RuleKind::allow}) {
        const auto list = rules.list(kind);
        if (!list)
            return list.error();
        for (const ListedRule& rule : list->rules)
            spare(rule.prefix, kind == RuleKind::allow ? "allowed" : reason_of(rule));
    }
    for (const ProtectedSource& source : guarded)
        spare(Prefix::host(source.address), source.reason);
    return spared;
}

}  // namespace sluice
