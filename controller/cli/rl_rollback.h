// sluicectl policy rollback --rl: a dated policy of a gateway's route made its policy again. The
// one command that writes another limiter's keys.
#pragma once

#include <string>

#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"

namespace sluice::cli {

// The stamp is YYYYMMDDHH, as in the key. One that makes no sense is not written back.
Result<Answer> rollback_rl(const std::string& route, const std::string& stamp,
                           const Session& session);
void show_rollback_rl(const Json& data, Screen& screen);

}  // namespace sluice::cli
