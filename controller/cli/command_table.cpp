// Every command of sluicectl, in the order of the help.
#include "cli/command_line.h"

namespace sluice::cli {

void add_all_commands(CommandLine& line) {
    add_attach(line);
    add_detach(line);
    add_status(line);
    add_ban(line);
    add_bans(line);
    add_allow(line);
    add_mode(line);
    add_switch(line);
    add_confirm(line);
    add_services(line);
    add_budget(line);
    add_sync(line);
    add_top(line);
    add_why(line);
    add_policy(line);
    add_init(line);
    add_events(line);
    add_audit(line);
    add_completion(line);
    add_version(line);
}

}  // namespace sluice::cli
