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
    // In a terminal of so many columns values and last columns of tables go on in the next line;
    // 0: lines are as long as they are, as in a pipe.
    explicit Screen(bool colors, size_t columns = 0) : colors_(colors), columns_(columns) {}

    void line(std::string_view text = {}, Style style = Style::plain);
    // "- text"
    void item(std::string_view text);
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

    // Behind what stands in the line; what does not fit goes below its beginning.
    void wrapped(std::string_view text, Style style, size_t indent);

    bool colors_;
    size_t columns_;
    std::string text_;
};

// Of the terminal; 0 where there is none.
size_t terminal_columns();

// At spaces; a longer word is left whole. At least one line.
std::vector<std::string_view> wrap(std::string_view text, size_t columns);

// Where NO_COLOR or a pipe speaks against it, "auto" means no.
bool wants_colors(std::string_view choice);

Style style_of_mode(std::string_view mode);

}  // namespace sluice::cli
