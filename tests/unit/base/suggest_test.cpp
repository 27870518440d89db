#include "base/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice {
namespace {

constexpr std::array<std::string_view, 4> kKeys = {"per_source", "per_prefix", "budget", "mode"};

TEST(NearestWord, FindsWhatATypingErrorMeant) {
    EXPECT_EQ(nearest_word("per_sorce", kKeys), "per_source");
    EXPECT_EQ(nearest_word("per_suorce", kKeys), "per_source");
    EXPECT_EQ(nearest_word("perprefix", kKeys), "per_prefix");
    EXPECT_EQ(nearest_word("budgets", kKeys), "budget");
    EXPECT_EQ(nearest_word("mod", kKeys), "mode");
}

TEST(NearestWord, StaysSilentWhereNothingIsNear) {
    EXPECT_EQ(nearest_word("colour", kKeys), std::nullopt);
    EXPECT_EQ(nearest_word("", kKeys), std::nullopt);
    EXPECT_EQ(nearest_word(std::string(100'000, 'x'), kKeys), std::nullopt);
}

}  // namespace
}  // namespace sluice
