// sluicectl policy promote, rollback: which version the fleet is to have, in one command.
#pragma once

#include <optional>
#include <string>

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"

namespace sluice::cli {

struct PromoteOptions {
    std::optional<std::string> version;  // nothing: the canary
    bool force = false;
};
// A canary that holds back more than the others do, from many sources a little each, is refused
// unless somebody insists; so is a version that some of its hosts can't have.
Result<Answer> promote_policy(const PromoteOptions& options, const Session& session);
struct RollbackOptions {
    std::optional<std::string> version;  // nothing: ends the canary, or what was current before
    bool force = false;
};
Result<Answer> rollback_policy(const RollbackOptions& options, const Session& session);
void show_point(const Json& data, Screen& screen);

}  // namespace sluice::cli
