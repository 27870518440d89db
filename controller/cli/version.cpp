// sluicectl version.
#include <sluice/limits.h>

#include "cli/command_line.h"

namespace sluice::cli {

namespace {

Result<Answer> run(const Session&) {
    Answer answer;
    answer.data = {{"version", SLUICE_VERSION}, {"abi", SLUICE_ABI_VERSION}};
    return answer;
}

void show(const Json& data, Screen& screen) {
    screen.line("sluicectl " + data["version"].get<std::string>() + " (ABI " + data["abi"].dump() +
                ')');
}

}  // namespace

void add_version(CommandLine& line) {
    line.handle(line.add("version", "Version of this program and of the tables that it speaks"),
                run, show);
}

}  // namespace sluice::cli
