// sluicectl: parse, run, print; errors become exit codes here and nowhere else.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/command_line.h"
#include "cli/through_daemon.h"

namespace sluice::cli {

namespace {

std::string dump(const Json& json) {
    // Reasons may hold anything; the output is UTF-8 all the same.
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

// False where the reader cannot take it; one that has gone away has simply had enough.
bool write_out(const std::string& text) {
    const bool written =
        std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    return written || errno == EPIPE;
}

// One line to stderr. What is quoted is short already; this bounds whatever is not.
void say(std::string_view before, std::string_view text) {
    constexpr size_t kLongestLine = 8192;  // a path has up to 4,096 bytes, and may stand twice
    const std::string line = std::string(before) + printable(shortened(text, kLongestLine)) + '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

int print_error(const Error& error, bool json) {
    if (json) {
        (void)write_out(dump({{"ok", false},
                              {"error",
                               {{"code", error_code_name(error.code)},
                                {"message", error.message},
                                {"hint", error.hint}}}}));
    } else {
        say("sluicectl: ", error.message);
        if (!error.hint.empty())
            say("  ", error.hint);
    }
    return static_cast<int>(error.code);
}

int print_answer(const Answer& answer, Show show, const GlobalOptions& globals) {
    Screen screen(wants_colors(globals.color), terminal_columns());
    if (!globals.json && !answer.quiet) {
        for (const std::string& warning : answer.warnings)
            say("warning: ", warning);
        show(answer.data, screen);
    }
    if (write_out(globals.json ? dump(to_json(answer)) : screen.text()))
        return answer.exit_code;
    // Whoever reads "failed" would do it again.
    const int error_number = errno;
    return print_error(answer.changed
                           ? from_errno(error_number, "done, but the report cannot be written",
                                        "the change is in force; do not repeat the command")
                           : from_errno(error_number, "write the output"),
                       false);
}

// Usage errors come before the options are known to be good, so it is looked for by hand.
bool asks_for_json(int count, const char* const* arguments) {
    for (int i = 1; i < count && std::strcmp(arguments[i], "--") != 0; ++i)
        if (std::strcmp(arguments[i], "--json") == 0)
            return true;
    return false;
}

// Root is not the only one who may: the daemon serves a group as well.
Error with_other_ways(Error error, const std::string& command) {
    if (error.code == ErrorCode::not_permitted && ::geteuid() != 0 && !is_for_oneself(command))
        error.hint += std::string(error.hint.empty() ? "" : "; ") +
                      "or join the group that [control] names, and ask the daemon";
    return error;
}

int run(int count, const char* const* arguments) {
    CommandLine line;
    add_all_commands(line);
    const auto choice = line.parse(count, arguments);
    if (!choice)
        return print_error(choice.error(), asks_for_json(count, arguments));
    if (choice->handler == nullptr)
        return write_out(choice->help) ? 0 : 1;
    const GlobalOptions& globals = line.globals();
    const auto session = Session::from(globals, current_operator());
    if (!session)
        return print_error(session.error(), globals.json);
    const auto done = through_daemon(choice->command, count, arguments, *session);
    const auto answer = done ? *done : choice->handler->run(*session);
    if (!answer)
        return print_error(with_other_ways(answer.error(), choice->command), globals.json);
    return print_answer(*answer, choice->handler->show, globals);
}

}  // namespace

}  // namespace sluice::cli

int main(int count, char** arguments) {
    // A pipe that closes early (… | head) is no error, and must not end a command half-way.
    (void)std::signal(SIGPIPE, SIG_IGN);
    try {
        return sluice::cli::run(count, arguments);
    } catch (const std::exception& error) {
        return sluice::cli::print_error(sluice::failed(error.what()),
                                        sluice::cli::asks_for_json(count, arguments));
    }
}
