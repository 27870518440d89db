#include "cli/command_line.h"

#include <string_view>
#include <utility>

#include "base/suggest.h"
#include "base/text.h"
#include "cli/later.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kProgram = "sluicectl";
constexpr const char* kEverywhere = "Options of all commands";

// "sluicectl bans import"
std::string path_of(const CLI::App* app) {
    return app->get_parent() == nullptr ? std::string(kProgram)
                                        : path_of(app->get_parent()) + ' ' + app->get_name();
}

std::string words_below(const CLI::App* app) {
    return app->get_parent() == nullptr ? "" : path_of(app).substr(kProgram.size() + 1) + ' ';
}

// The command that parsing had come to.
const CLI::App* innermost(const CLI::App* app) {
    for (auto below = app->get_subcommands(); !below.empty(); below = app->get_subcommands())
        app = below.front();
    return app;
}

std::vector<std::string> option_names(const CLI::App* command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command->get_options())
        for (const std::string& name : option->get_lnames())
            names.push_back("--" + name);
    return names;
}

std::vector<std::string> command_names(const CLI::App* command) {
    std::vector<std::string> names;
    for (const CLI::App* below : command->get_subcommands({}))
        names.push_back(below->get_name());
    return names;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known,
                       const CLI::App* command) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const auto nearest = nearest_word(word, views);
    return nearest ? "did you mean \"" + *nearest + "\"?" : "see: " + path_of(command) + " --help";
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

// The library's words where they are good enough, ours where they are not.
std::string in_plain_words(const CLI::ParseError& error) {
    constexpr size_t kLongestReason = 4 * kLongestQuote;  // it may quote what was typed
    const std::string text = error.what();
    const std::string option = text.substr(0, text.find(':'));
    if (text.find(": At Most 1 required") != std::string::npos)
        return option + " stands more than once";
    if (text.find(": 1 required ") != std::string::npos)
        return option + " needs a value";
    if (const std::string_view start = "Could not convert: "; text.starts_with(start))
        return shortened(text.substr(start.size())) + " is not a number that fits";
    return shortened(text, kLongestReason);
}

Error usage(std::string message, std::string hint) {
    return make_error(ErrorCode::usage, std::move(message), std::move(hint));
}

}  // namespace

CommandLine::CommandLine()
    : root_(std::make_unique<CLI::App>("Sluice: an XDP rate limiter at the edge",
                                       std::string(kProgram))) {
    root_->require_subcommand(1);
    root_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}

// Bound to the same variables everywhere, so that they may stand before or behind the command; last
// of all, so that a command's own options come first in its help.
void CommandLine::add_globals(CLI::App* app) {
    for (CLI::App* below : app->get_subcommands({}))
        add_globals(below);
    app->set_help_flag("-h,--help", "Show this help")->group(kEverywhere);
    app->add_flag("--json", globals_.json, "One JSON object on stdout")->group(kEverywhere);
    app->add_option("--pin-dir", globals_.pin_dir, "Where the gate is pinned")
        ->type_name("DIR")
        ->capture_default_str()
        ->group(kEverywhere);
    app->add_option("--socket", globals_.socket, "Where the daemon listens")
        ->type_name("PATH")
        ->capture_default_str()
        ->group(kEverywhere);
    app->add_option("--state-dir", globals_.state_dir, "Where changes are recorded")
        ->type_name("DIR")
        ->capture_default_str()
        ->group(kEverywhere);
    app->add_option("--color", globals_.color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}))
        ->type_name("WHEN")
        ->capture_default_str()
        ->group(kEverywhere);
    app->add_option("--timeout", globals_.timeout, "How long to wait for another writer")
        ->type_name("TIME")
        ->capture_default_str()
        ->group(kEverywhere);
}

CLI::App* CommandLine::add(const std::string& name, const std::string& summary, CLI::App* parent) {
    return (parent == nullptr ? root_.get() : parent)->add_subcommand(name, summary);
}

void CommandLine::handle(const CLI::App* command, Run run, Show show) {
    handlers_[command] = {[run = std::move(run)](const Session& session) {
                              auto answer = run(session);
                              if (!answer)
                                  session.refused(answer.error());
                              return answer;
                          },
                          show};
}

Error CommandLine::explain_leftover(const CLI::App* command, const std::string& word) const {
    const std::string name = word.substr(0, word.find('='));
    if (word.starts_with('-') && word != "-") {
        if (is_later_option(name))
            return usage(name + " is not available in this version", "");
        return usage("unknown option " + shortened(name),
                     suggestion(name, option_names(command), command));
    }
    const auto below = command_names(command);
    if (below.empty())
        return usage("too many arguments: " + in_quotes(word),
                     "see: " + path_of(command) + " --help");
    if (is_later_command(words_below(command) + word))
        return usage('"' + words_below(command) + word + "\" is not available in this version", "");
    return usage("unknown command " + in_quotes(words_below(command) + word),
                 suggestion(word, below, command));
}

Result<CommandLine::Choice> CommandLine::parse(int count, const char* const* arguments) {
    add_globals(root_.get());
    // Last, so that --json is known when it is found.
    root_->set_version_flag("--version")->description("As `sluicectl version`")->group(kEverywhere);
    // The library would take the next word instead, which may be the command.
    for (int i = 1; i < count; ++i) {
        const std::string_view word = arguments[i];
        if (word == "--")
            break;
        if (word.starts_with("--") && word.find('=') == word.size() - 1)
            return usage(shortened(word.substr(0, word.size() - 1)) + " has an empty value",
                         "give it one, or leave it out");
    }
    try {
        root_->parse(count, arguments);
    } catch (const CLI::CallForHelp&) {
        const CLI::App* command = innermost(root_.get());
        return Choice{nullptr,
                      {},
                      command->get_parent() == nullptr
                          ? command->help()
                          : command->help(path_of(command->get_parent()))};
    } catch (const CLI::CallForVersion&) {
        const CLI::App* version = root_->get_subcommand("version");
        return Choice{&handlers_.at(version), "version", {}};
    } catch (const CLI::ParseError& error) {
        const CLI::App* command = innermost(root_.get());
        // What was not understood says more than what was missed because of it.
        for (const CLI::App* app = command; app != nullptr; app = app->get_parent())
            if (const auto left = app->remaining(); !left.empty())
                return explain_leftover(app, left.front());
        if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
            !command_names(command).empty() && command->get_subcommands().empty())
            return usage("which command?", "one of: " + joined(command_names(command)));
        return usage(in_plain_words(error), "see: " + path_of(command) + " --help");
    }
    const auto chosen = handlers_.find(innermost(root_.get()));
    if (chosen == handlers_.end())
        return usage("which command?", "see: sluicectl --help");
    return Choice{&chosen->second, path_of(chosen->first).substr(kProgram.size() + 1), {}};
}

}  // namespace sluice::cli
