// "Did you mean …": the known word nearest to a mistyped one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace sluice {

// The known word that a few typing errors (insertion, deletion, exchange, swap) turn into `word`;
// nothing where none is near enough to be meant.
std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> known);

}  // namespace sluice
