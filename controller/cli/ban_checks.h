// What `ban` and `bans` check alike.
#pragma once

#include <string>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/operator.h"

namespace sluice::cli {

// The name of a list that operators may write to.
Status check_source(const std::string& source);

// That somebody ever wrote to the list: a name that was mistyped is no empty list.
Status check_list(SourceRules& rules, const std::string& source);

// That all of the reason is kept beside who gives it.
Status check_reason(const std::string& reason, const Operator& who);

}  // namespace sluice::cli
