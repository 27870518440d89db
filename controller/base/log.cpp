#include "base/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace sluice {

void log(LogLevel level, std::string_view text) {
    // "<3>" in front is for journald, which names its stream; a person sees words.
    static const bool journal = std::getenv("JOURNAL_STREAM") != nullptr;
    const char* word = level == LogLevel::error     ? "error: "
                       : level == LogLevel::warning ? "warning: "
                                                    : "";
    std::string line = journal ? '<' + std::to_string(static_cast<int>(level)) + '>' : word;
    line += text;
    line += '\n';
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace sluice
