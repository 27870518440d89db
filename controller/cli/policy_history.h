// sluicectl policy history: the versions of the fleet's policy, and which hosts have which.
#pragma once

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"

namespace sluice::cli {

Result<Answer> policy_history(const Session& session);
void show_policy_history(const Json& data, Screen& screen);

}  // namespace sluice::cli
