// Text for people: lines, aligned fields and tables, colours where a terminal shows them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::cli {

enum class Style { plain, strong, dim, good, careful, bad };

struct Cell {
    Cell(std::string cell_text, Style cell_style = Style::plain)
        : text(std::move(cell_text)), style(cell_style) {}
    Cell(const char* cell_text) : text(cell_text) {}

    std::string text;
    Style style = Style::plain;
};

struct Column {
    std::string_view title;
    bool number = false;  // to the right
};

using Row = std::vector<Cell>;

class Screen {
  public:
    explicit Screen(bool colors) : colors_(colors) {}

    void line(std::string_view text = {}, Style style = Style::plain);
    // Several lines as they are, with a newline at the end where there is none.
    void raw(std::string_view text);
    // "label  value" with the values below each other.
    void fields(const std::vector<std::pair<std::string_view, Cell>>& fields);
    // Side by side, as they are.
    void cells(const Row& row);
    void table(const std::vector<Column>& columns, const std::vector<Row>& rows);

    [[nodiscard]] const std::string& text() const { return text_; }

  private:
    [[nodiscard]] std::string paint(std::string_view text, Style style) const;

    bool colors_;
    std::string text_;
};

// Where NO_COLOR or a pipe speaks against it, "auto" means no.
bool wants_colors(std::string_view choice);

Style style_of_mode(std::string_view mode);

}  // namespace sluice::cli
