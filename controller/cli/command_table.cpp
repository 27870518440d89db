// Every command of sluicectl, in the order of the help.
#include <algorithm>
#include <array>
#include <string_view>

#include "cli/command_line.h"

namespace sluice::cli {

namespace {

struct Entry {
    void (*add)(CommandLine&);
    std::array<std::string_view, 3> names;
};

constexpr Entry kCommands[] = {
    {add_attach, {"attach"}},
    {add_detach, {"detach"}},
    {add_status, {"status"}},
    {add_ban, {"ban", "unban"}},
    {add_bans, {"bans"}},
    {add_allow, {"allow", "unallow", "allows"}},
    {add_mode, {"mode"}},
    {add_switch, {"switch"}},
    {add_confirm, {"confirm"}},
    {add_services, {"services"}},
    {add_budget, {"budget"}},
    {add_sync, {"sync"}},
    {add_drill, {"drill"}},
    {add_risk, {"risk"}},
    {add_top, {"top"}},
    {add_why, {"why"}},
    {add_policy, {"policy"}},
    {add_doctor, {"doctor"}},
    {add_tune, {"tune"}},
    {add_init, {"init"}},
    {add_events, {"events"}},
    {add_audit, {"audit"}},
    {add_completion, {"completion"}},
    {add_version, {"version"}},
};

}  // namespace

void add_all_commands(CommandLine& line) {
    for (const Entry& entry : kCommands)
        entry.add(line);
}

void add_command(CommandLine& line, std::string_view first_word) {
    const auto entry = std::ranges::find_if(kCommands, [&](const Entry& candidate) {
        return !first_word.empty() && std::ranges::count(candidate.names, first_word) != 0;
    });
    if (entry != std::end(kCommands))
        entry->add(line);
    else
        add_all_commands(line);
}

}  // namespace sluice::cli
