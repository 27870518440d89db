#include "cli/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kGap = "  ";

// Characters, not bytes.
size_t width(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
}

std::string_view escape(Style style) {
    switch (style) {
        case Style::strong:
            return "\x1b[1m";
        case Style::dim:
            return "\x1b[2m";
        case Style::good:
            return "\x1b[32m";
        case Style::careful:
            return "\x1b[33m";
        case Style::bad:
            return "\x1b[31m";
        case Style::plain:
            break;
    }
    return "";
}

void trim_end(std::string& text) {
    while (text.ends_with(' '))
        text.pop_back();
}

}  // namespace

std::string Screen::paint(std::string_view text, Style style) const {
    if (!colors_ || style == Style::plain || text.empty())
        return std::string(text);
    return std::string(escape(style)).append(text).append("\x1b[0m");
}

void Screen::line(std::string_view text, Style style) {
    text_ += paint(printable(text), style) + '\n';
}

void Screen::item(std::string_view text) {
    text_ += "- ";
    wrapped(printable(text), Style::plain, 2);
    text_ += '\n';
}

void Screen::wrapped(std::string_view text, Style style, size_t indent) {
    // In less room than that a column of words is harder to read than lines that break.
    constexpr size_t kLeastRoom = 20;
    const bool whole = columns_ == 0 || columns_ < indent + kLeastRoom;
    std::string_view between;
    for (const std::string_view part : wrap(text, whole ? text.size() : columns_ - indent)) {
        text_.append(between).append(between.empty() ? 0 : indent, ' ').append(paint(part, style));
        between = "\n";
    }
}

void Screen::raw(std::string_view text) {
    text_ += printable_lines(text);
    if (!text.empty() && !text.ends_with('\n'))
        text_ += '\n';
}

void Screen::fields(const std::vector<std::pair<std::string_view, Cell>>& fields) {
    size_t widest = 0;
    for (const auto& [label, value] : fields)
        widest = std::max(widest, width(label));
    for (const auto& [label, value] : fields) {
        text_ += paint(label, Style::dim) + std::string(widest - width(label), ' ');
        text_ += kGap;
        wrapped(printable(value.text), value.style, widest + kGap.size());
        trim_end(text_);
        text_ += '\n';
    }
}

void Screen::cells(const Row& row) {
    std::string text;
    for (const Cell& cell : row)
        text += paint(cell.text, cell.style);
    text_ += text.substr(0, text.find_last_not_of(' ') + 1) + '\n';
}

void Screen::table(const std::vector<Column>& columns, const std::vector<Row>& raw_rows) {
    // Reasons and names come from files and feeds: what they look like decides how wide they are.
    std::vector<Row> rows = raw_rows;
    for (Row& row : rows)
        for (Cell& cell : row)
            cell.text = printable(cell.text);
    std::vector<size_t> widths;
    for (const Column& column : columns)
        widths.push_back(width(column.title));
    for (const Row& row : rows)
        for (size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], width(row[i].text));
    size_t before_last = 0;
    for (size_t i = 0; i + 1 < widths.size(); ++i)
        before_last += widths[i] + kGap.size();
    const auto put = [&](size_t i, std::string_view text, Style style) {
        const std::string padding(widths[i] - std::min(widths[i], width(text)), ' ');
        text_ += i == 0 ? "" : kGap;
        text_ += columns[i].number ? padding + paint(text, style) : paint(text, style) + padding;
    };
    for (size_t i = 0; i < columns.size(); ++i)
        put(i, columns[i].title, Style::dim);
    trim_end(text_);
    text_ += '\n';
    for (const Row& row : rows) {
        for (size_t i = 0; i + 1 < row.size(); ++i)
            put(i, row[i].text, row[i].style);
        if (columns.back().number || row.size() < columns.size()) {
            put(row.size() - 1, row.back().text, row.back().style);
        } else {
            text_ += row.size() == 1 ? "" : kGap;
            wrapped(row.back().text, row.back().style, before_last);
        }
        trim_end(text_);
        text_ += '\n';
    }
}

size_t terminal_columns() {
    winsize size{};
    return ::isatty(STDOUT_FILENO) == 1 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0
               ? size.ws_col
               : 0;
}

std::vector<std::string_view> wrap(std::string_view text, size_t columns) {
    std::vector<std::string_view> lines;
    while (width(text) > columns) {
        // The last space that leaves no more than fits, or else the first one.
        size_t end = std::string_view::npos;
        for (size_t at = text.find(' '); at != std::string_view::npos;
             at = text.find(' ', at + 1)) {
            if (end != std::string_view::npos && width(text.substr(0, at)) > columns)
                break;
            end = at;
        }
        if (end == std::string_view::npos)
            break;
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    lines.push_back(text);
    return lines;
}

bool wants_colors(std::string_view choice) {
    if (choice != "auto")
        return choice == "always";
    const char* no_color = std::getenv("NO_COLOR");
    const char* terminal = std::getenv("TERM");
    return ::isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
           !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

Style style_of_mode(std::string_view mode) {
    if (mode == "enforce")
        return Style::good;
    return mode == "observe" ? Style::careful : Style::bad;
}

}  // namespace sluice::cli
