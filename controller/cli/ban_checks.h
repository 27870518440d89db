// What commands about bans and allows ask alike.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/operator.h"

namespace sluice::cli {

// The name of a list that operators may write to.
Status check_source(const std::string& source);

// That somebody ever wrote to the list: a name that was mistyped is no empty list.
Status check_list(SourceRules& rules, const std::string& source);

// What lists say of exactly this prefix.
Result<std::vector<ListedRule>> words_on(SourceRules& rules, const Prefix& prefix, RuleKind kind);
// "operator (59 min 58 s left), feed (for good)", for the audit log; empty without any.
std::string describe_words(const std::vector<ListedRule>& words, uint64_t now_ns);

// That all of the reason is kept beside who gives it.
Status check_reason(const std::string& reason, const Operator& who);

}  // namespace sluice::cli
