// What `mode` and `switch` have in common: a change of mode, its timing, its report.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"
#include "gate/switches.h"

namespace sluice::cli {

struct TimingOptions {
    std::optional<std::string> lasts;
    std::optional<std::string> confirm;
};

void add_timing(CLI::App* app, TimingOptions& options);
Result<SwitchTiming> read_timing(const TimingOptions& options);

// A mode, or nothing for the word that gives the switch back to the policy.
Result<std::optional<Mode>> read_wanted(std::string_view text, std::string_view back_word);

struct ChangeOptions {
    std::string_view command;  // for the audit log
    bool dry_run = false;
    std::string reason{};
};
// The caller holds the lock of the tables.
Result<Answer> change_mode(const Session& session, Tables& tables, const SwitchTarget& target,
                           std::optional<Mode> wanted, const SwitchTiming& timing,
                           const ChangeOptions& options);
// The same as the fleet's word, for all hosts.
Result<Answer> change_mode_in_fleet(const Session& session, const SwitchTarget& target,
                                    std::optional<Mode> wanted, const SwitchTiming& timing,
                                    const ChangeOptions& options);
void show_change(const Json& data, Screen& screen);

}  // namespace sluice::cli
