// Whole files as strings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

// To be read in pieces. Whatever is no regular file is refused, not waited for.
Result<UniqueFd> open_file(const std::string& path);

// The same as a whole; also for /proc, whose files have no size.
Result<std::string> read_file(const std::string& path);  // of at most 1 GiB

// Whole or not at all, whatever crashes: written beside it as NAME.new, fsynced, and renamed over
// it. Folders between are made; root alone can read it.
Status replace_file(const std::string& path, std::string_view text);

// Renames a file that makes no sense, so that it is neither read again nor written over; `why`,
// with its new name as the hint.
Error set_aside(const std::string& path, Error why);

// What a file that somebody named may be.
struct InputFile {
    size_t most_bytes = 0;
    std::string_view mend;          // where it has more
    std::string_view where_from{};  // how to come by one, where there is none
    bool or_a_pipe = false;  // as in <(command); a silent one is waited for, but not for ever
};

// For files that people name: devices, and whatever else has no end, are refused, not read.
Result<std::string> read_input_file(const std::string& path, const InputFile& wanted);

}  // namespace sluice
