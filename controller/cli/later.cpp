#include "cli/later.h"

#include <algorithm>
#include <array>

namespace sluice::cli {

namespace {

constexpr std::array<std::string_view, 2> kOptions = {"--l7", "--at"};
constexpr std::array<std::string_view, 5> kCommands = {
    "replay", "learn", "report", "policy diff", "policy shadow",
};

}  // namespace

bool is_later_option(std::string_view name) {
    return std::find(kOptions.begin(), kOptions.end(), name) != kOptions.end();
}

bool is_later_command(std::string_view name) {
    return std::find(kCommands.begin(), kCommands.end(), name) != kCommands.end();
}

}  // namespace sluice::cli
