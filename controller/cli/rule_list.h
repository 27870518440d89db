// Lists of bans and allows, as data and as a table.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "gate/source_rules.h"

namespace sluice::cli {

struct RuleQuery {
    RuleKind kind = RuleKind::ban;
    std::optional<std::string> source{};
    size_t limit = 0;  // 0 = all
};

Result<Answer> list_rules(const Session& session, const RuleQuery& query);
void show_rules(const Json& data, Screen& screen);

}  // namespace sluice::cli
