#include "cli/ban_checks.h"

#include "base/text.h"
#include "cli/format.h"
#include "operate/protected_sources.h"
#include "policy/rule_id.h"

namespace sluice::cli {

Status check_source(const std::string& source) {
    if (!is_valid_name(source))
        return make_error(ErrorCode::usage,
                          "--source: " + in_quotes(source) + " is no name of a list",
                          "use up to 32 of a-z, 0-9 and -");
    if (is_reserved_list(source))
        return make_error(ErrorCode::usage,
                          "--source: " + in_quotes(source) + " is kept by Sluice itself",
                          "use another name");
    return {};
}

Status check_list(SourceRules& rules, const std::string& source) {
    const auto known = rules.knows_list(source);
    if (!known)
        return known.error();
    if (!*known)
        return make_error(ErrorCode::not_found, "there is no list " + in_quotes(source),
                          "see: sluicectl bans");
    return {};
}

Result<std::vector<ListedRule>> words_on(SourceRules& rules, const Prefix& prefix, RuleKind kind) {
    const auto found = rules.lookup(prefix.address());
    if (!found)
        return found.error();
    std::vector<ListedRule> words;
    for (const SourceMatch& match : found->matches)
        for (const ListedRule& rule : match.listed)
            if (rule.kind == kind && rule.prefix == prefix)
                words.push_back(rule);
    return words;
}

std::string describe_words(const std::vector<ListedRule>& words, uint64_t now_ns) {
    std::string text;
    for (const ListedRule& word : words) {
        text += (text.empty() ? "" : ", ") + word.list + " (";
        text += word.until_ns == SLUICE_NEVER
                    ? "for good)"
                    : format_seconds(seconds_until(word.until_ns, now_ns).get<double>()) + " left)";
    }
    return text;
}

Status check_reason(const std::string& reason, const Operator& who) {
    const size_t room = reason_room(who.to_string());
    if (reason.size() <= room)
        return {};
    return make_error(ErrorCode::usage,
                      "--reason has " + std::to_string(reason.size()) + " bytes; the gate keeps " +
                          std::to_string(room) + " beside your name",
                      "shorten it to what a colleague has to know");
}

}  // namespace sluice::cli
