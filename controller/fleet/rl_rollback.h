// The one command that writes another limiter's keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "redis/command.h"

namespace sluice {

// Makes the policy at `key` these fields and values, in turns; what it has now goes, its time to
// live as well. Answers "ok".
redis::Command rl_rollback_command(std::string_view key, std::span<const std::string> words);

}  // namespace sluice
