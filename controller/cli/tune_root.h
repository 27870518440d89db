// --root: a captured machine, and what was done to it, instead of this one.
#pragma once

#include <optional>
#include <string>

#include "cli/command_line.h"
#include "tune/journal.h"
#include "tune/machine.h"

namespace sluice::cli {

using Root = std::optional<std::string>;

void add_root(CLI::App* command, Root& root);
Result<Machine> machine_at(const Root& root);
// What is done to a tree is remembered in it.
JournalFolder journals_at(const Root& root, const Session& session);

}  // namespace sluice::cli
