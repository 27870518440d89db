// A command done by the daemon, where there is one: it knows what it enforces, and lets in who may
// not touch the tables himself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/session.h"

namespace sluice::cli {

// Nothing where this process has to do it itself: no daemon, another gate's daemon, or a command
// that reads or writes files with the rights of whoever asks.
std::optional<Result<Answer>> through_daemon(const std::string& command, int count,
                                             const char* const* arguments, const Session& session);

// What the daemon answers to these words; nothing likewise.
std::optional<Result<Answer>> ask_daemon(const std::vector<std::string>& words,
                                         const Session& session);

// Why none could be asked: nobody is there, or it lets this user in for nothing. `hint` is for the
// first.
Error unreached(const Session& session, std::string hint);

// Commands that the daemon does for nobody.
bool is_for_oneself(const std::string& command);

}  // namespace sluice::cli
