// A full-screen terminal by ncurses: lines out, keys in.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cli/top_view.h"

namespace sluice::cli {

class Terminal {
  public:
    enum class Key { up, down, quit, other };
    struct Press {
        Key key = Key::other;
        char character = 0;  // of Key::other
    };

    // ErrorCode::usage where stdout or stdin is none.
    static Result<std::unique_ptr<Terminal>> open(bool colors);
    // As it was before.
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    [[nodiscard]] size_t rows() const;
    [[nodiscard]] size_t columns() const;
    void draw(const std::vector<ViewLine>& lines);
    // Nothing where none came in time; a change of size is nothing, too, and is seen by rows().
    std::optional<Press> wait_for_key(std::chrono::milliseconds most);

  private:
    explicit Terminal(bool colors);

    bool colors_;
};

}  // namespace sluice::cli
