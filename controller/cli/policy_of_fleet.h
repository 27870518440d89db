// The fleet's policy from the command line: push, promote, rollback, history, and a version's text.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace sluice::cli {

// Below `policy`.
void add_policy_of_fleet(CommandLine& line, CLI::App* policy);

// "7" or "v7"
Result<Answer> show_fleet_version(const std::string& version, const Session& session);
void print_fleet_version(const Json& data, Screen& screen);

}  // namespace sluice::cli
