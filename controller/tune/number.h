// Numbers as the kernel's files and names have them.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace sluice {

// Nothing where the text is anything more or less than one number that fits.
template <class Number>
std::optional<Number> whole_number(std::string_view digits, int base = 10) {
    Number number{};
    const char* end = digits.data() + digits.size();
    const auto [stop, failure] = std::from_chars(digits.data(), end, number, base);
    return failure == std::errc{} && stop == end ? std::optional(number) : std::nullopt;
}

// The 3 of "rx-3"; nothing where a name ends otherwise.
inline std::optional<unsigned> number_at_end(std::string_view name) {
    return whole_number<unsigned>(name.substr(name.find_last_not_of("0123456789") + 1));
}

// The 3 of "cpu3" behind "cpu"; nothing where the name is another one.
inline std::optional<unsigned> number_behind(std::string_view word, std::string_view name) {
    return name.starts_with(word) ? whole_number<unsigned>(name.substr(word.size())) : std::nullopt;
}

}  // namespace sluice
