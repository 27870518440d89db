// Block lists as files: plain text, FireHOL netsets, Spamhaus text and JSON lines, and what
// `sluicectl --json bans` printed.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address.h"

namespace sluice {

// More than the longest list that a gate could take: 64 bytes for each entry of its listing.
inline constexpr size_t kLongestList = size_t{128} << 20;

enum class ListFormat { automatic, plain, spamhaus, firehol };

// "auto", "plain", "spamhaus" or "firehol".
Result<ListFormat> parse_list_format(std::string_view text);

// Private, loopback, multicast and the like: who bans them may cut off more than he means to.
const std::vector<Prefix>& reserved_prefixes();

// A line that was not taken.
struct RefusedLine {
    size_t line = 0;
    std::string text;  // shortened
    std::string why;
};

struct ListFile {
    std::vector<Prefix> prefixes;                        // distinct, in the file's order
    std::map<Prefix, std::chrono::nanoseconds> lasting;  // of those that the file gives a time
    size_t duplicates = 0;
    size_t host_bits_cleared = 0;
    size_t reserved = 0;  // private, loopback, multicast and the like: taken, but worth a look
    std::vector<Prefix> reserved_prefixes;  // the first few of them
    size_t refused = 0;
    std::vector<RefusedLine> refused_lines;  // the first few
};

// Refuses what is no list at all, a list without entries and a list cut short; a few bad lines in a
// good list are left out and named. `forced` takes prefixes however wide, and a JSON list without
// its last line.
Result<ListFile> parse_list(std::string_view text, ListFormat format, bool forced = false);
// A file or a pipe.
Result<ListFile> read_list_file(const std::string& path, ListFormat format, bool forced = false);

}  // namespace sluice
