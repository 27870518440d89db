#include "base/suggest.h"

#include <algorithm>
#include <vector>

namespace sluice {

namespace {

// Optimal string alignment distance: an adjacent swap is one error, not two.
size_t typing_errors(std::string_view a, std::string_view b) {
    const size_t width = b.size() + 1;
    std::vector<size_t> cost((a.size() + 1) * width);
    const auto at = [&](size_t i, size_t j) -> size_t& { return cost[i * width + j]; };
    for (size_t i = 0; i <= a.size(); ++i)
        at(i, 0) = i;
    for (size_t j = 0; j <= b.size(); ++j)
        at(0, j) = j;
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            const size_t exchange = a[i - 1] == b[j - 1] ? 0 : 1;
            at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + exchange});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
        }
    }
    return at(a.size(), b.size());
}

}  // namespace

std::optional<std::string> nearest_word(std::string_view word,
                                        std::span<const std::string_view> known) {
    constexpr size_t kLongestWord = 64;  // Longer ones are no typing error, only work.
    if (word.size() > kLongestWord)
        return std::nullopt;
    std::optional<std::string> best;
    size_t best_errors = std::max<size_t>(1, word.size() / 3) + 1;
    for (const std::string_view candidate : known) {
        const size_t errors = typing_errors(word, candidate);
        if (errors < best_errors) {
            best_errors = errors;
            best = std::string(candidate);
        }
    }
    return best;
}

}  // namespace sluice
