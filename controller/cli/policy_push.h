// sluicectl policy push: a file becomes the next version of the fleet's policy.
#pragma once

#include <optional>
#include <string>

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"

namespace sluice::cli {

struct PolicyPushOptions {
    std::string path;
    std::optional<std::string> base;
    std::optional<std::string> canary;
    std::string reason;
    bool force = false;
    bool dry_run = false;
};
Result<Answer> push_policy(const PolicyPushOptions& options, const Session& session);
void show_push(const Json& data, Screen& screen);

}  // namespace sluice::cli
