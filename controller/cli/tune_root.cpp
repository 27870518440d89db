#include "cli/tune_root.h"

namespace sluice::cli {

void add_root(CLI::App* command, Root& root) {
    command->add_option("--root", root, "A captured machine instead of this one")
        ->check([](const std::string& folder) {
            return folder.empty() ? std::string("names no folder") : std::string();
        })
        ->type_name("DIR");
}

Result<Machine> machine_at(const Root& root) {
    return root ? Machine::captured(*root) : Result<Machine>(Machine::live());
}

JournalFolder journals_at(const Root& root, const Session& session) {
    return JournalFolder(root.value_or("") + session.state_dir);
}

}  // namespace sluice::cli
