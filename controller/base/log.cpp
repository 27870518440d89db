#include "base/log.h"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

namespace sluice {

namespace {

// "2026-11-29T20:05:33Z"
std::string time_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    std::array<char, 32> text{};
    const size_t size = std::strftime(text.data(), text.size(), "%FT%TZ", ::gmtime_r(&now, &parts));
    return {text.data(), size};
}

std::string word_of(LogLevel level) {
    return level == LogLevel::error ? "error: " : level == LogLevel::warning ? "warning: " : "";
}

}  // namespace

void log(LogLevel level, std::string_view text) {
    // "<3>" in front is for journald, which names its stream and keeps the time; a person sees
    // words, and a file the time as well.
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    static const bool terminal = ::isatty(STDERR_FILENO) == 1;
    std::string line = journal    ? '<' + std::to_string(static_cast<int>(level)) + '>'
                       : terminal ? word_of(level)
                                  : time_now() + ' ' + word_of(level);
    line += text;
    line += '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

void log_error(std::string_view what, const Error& error) {
    log(LogLevel::error,
        std::string(what) + ": " + error.message + (error.hint.empty() ? "" : "; " + error.hint));
}

}  // namespace sluice
