// What `top` shows, as lines of a screen: made from data alone, so that any size can be tried.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/answer.h"
#include "cli/screen.h"
#include "observe/heavy_sources.h"

namespace sluice::cli {

// What the person at the terminal has chosen.
struct TopChoice {
    HeavyBy by = HeavyBy::dropped;
    std::optional<std::string> service;   // only sources there
    std::optional<std::string> selected;  // the source that keys act on
    bool paused = false;
    std::string message;            // in place of the keys' help, until the next key
    std::vector<std::string> text;  // in place of the sources, likewise
};

struct ViewLine {
    Row cells;  // side by side as they are
    bool selected = false;
};

std::string_view heavy_by_name(HeavyBy by);

// At most `rows` lines of at most `columns` characters, ASCII alone. `data` is an answer of `top`.
std::vector<ViewLine> draw_top(const Json& data, const TopChoice& choice, size_t rows,
                               size_t columns);

}  // namespace sluice::cli
