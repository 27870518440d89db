// The table of commands, and how a command line becomes one of them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/answer.h"
#include "cli/screen.h"
#include "cli/session.h"

namespace sluice::cli {

using Run = std::function<Result<Answer>(const Session&)>;
using Show = void (*)(const Json& data, Screen& screen);

struct Handler {
    Run run;
    Show show;
};

class CommandLine {
  public:
    CommandLine();

    // A command, or one below another one.
    CLI::App* add(const std::string& name, const std::string& summary, CLI::App* parent = nullptr);
    void handle(const CLI::App* command, Run run, Show show);

    struct Choice {
        const Handler* handler = nullptr;
        std::string command;  // "bans import"
        std::string help;     // asked for instead of a command
    };
    // ErrorCode::usage, with the nearest known word where there is one.
    Result<Choice> parse(int count, const char* const* arguments);

    [[nodiscard]] const GlobalOptions& globals() const { return globals_; }
    [[nodiscard]] const CLI::App* root() const { return root_.get(); }

  private:
    void add_globals(CLI::App* app);
    [[nodiscard]] Error explain_leftover(const CLI::App* command, const std::string& word) const;

    GlobalOptions globals_;
    std::unique_ptr<CLI::App> root_;
    std::map<const CLI::App*, Handler> handlers_;
};

void add_all_commands(CommandLine& line);
// The one that a line with this first word is about; all, where that is no command's name. All of
// them take a thousand allocations.
void add_command(CommandLine& line, std::string_view first_word);

// One a file, in the order of the help.
void add_attach(CommandLine& line);
void add_detach(CommandLine& line);
void add_status(CommandLine& line);
void add_ban(CommandLine& line);
void add_bans(CommandLine& line);
void add_allow(CommandLine& line);
void add_mode(CommandLine& line);
void add_switch(CommandLine& line);
void add_confirm(CommandLine& line);
void add_budget(CommandLine& line);
void add_drill(CommandLine& line);
void add_risk(CommandLine& line);
void add_sync(CommandLine& line);
void add_services(CommandLine& line);
void add_top(CommandLine& line);
void add_why(CommandLine& line);
void add_policy(CommandLine& line);
void add_tune(CommandLine& line);
void add_doctor(CommandLine& line);
void add_init(CommandLine& line);
void add_events(CommandLine& line);
void add_audit(CommandLine& line);
void add_completion(CommandLine& line);
void add_version(CommandLine& line);

}  // namespace sluice::cli
