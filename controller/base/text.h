// Text that others wrote, in what people read: cut where it is quoted, harmless where it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// Enough for every name, prefix, match and rule id, so that only nonsense is ever cut.
inline constexpr size_t kLongestQuote = 100;  // bytes

// At most so many bytes of it and "…", cut between characters.
std::string shortened(std::string_view text, size_t most = kLongestQuote);
// The same in quotation marks.
std::string in_quotes(std::string_view text);

// With control characters, bytes that are no UTF-8, and what turns the direction of writing shown
// as
// "\x1b" or "\u202e": a terminal obeys the one, and the eye is deceived by the other.
std::string printable(std::string_view text);
// The same for text of several lines, whose line ends and tabs stay.
std::string printable_lines(std::string_view text);

}  // namespace sluice
