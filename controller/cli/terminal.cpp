#include "cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#define NCURSES_NOMACROS
#include <curses.h>

namespace sluice::cli {

namespace {

constexpr int kControlC = 3;

// Pairs of colours, one for each style that has one.
enum Pair : short { kGood = 1, kCareful, kBad };

attr_t attributes_of(Style style, bool colors) {
    const auto colored = [colors](Pair pair, attr_t without) {
        return colors ? static_cast<attr_t>(COLOR_PAIR(pair)) : without;
    };
    switch (style) {
        case Style::strong:
            return A_BOLD;
        case Style::dim:
            return A_DIM;
        case Style::good:
            return colored(kGood, A_NORMAL);
        case Style::careful:
            return colored(kCareful, A_BOLD);
        case Style::bad:
            return colored(kBad, A_NORMAL) | A_BOLD;
        default:
            return A_NORMAL;
    }
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(bool colors) {
    const char* kind = std::getenv("TERM");
    if (::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0)
        return make_error(ErrorCode::usage, "--watch needs a terminal",
                          "leave it out, or use --json in scripts");
    // The library would end the process.
    SCREEN* screen = kind == nullptr ? nullptr : ::newterm(nullptr, stdout, stdin);
    if (screen == nullptr)
        return make_error(ErrorCode::usage,
                          std::string("this terminal is unknown: TERM is ") +
                              (kind == nullptr ? "not set" : kind),
                          "set it, such as TERM=xterm");
    return std::unique_ptr<Terminal>(new Terminal(colors));
}

Terminal::Terminal(bool colors) : colors_(colors && ::has_colors()) {
    ::raw();  // Ctrl-C is a key, so that the terminal is put back in any case
    ::noecho();
    ::keypad(stdscr, true);
    (void)::set_escdelay(25);
    (void)::curs_set(0);
    if (!colors_)
        return;
    ::start_color();
    ::use_default_colors();
    ::init_pair(kGood, COLOR_GREEN, -1);
    ::init_pair(kCareful, COLOR_YELLOW, -1);
    ::init_pair(kBad, COLOR_RED, -1);
}

Terminal::~Terminal() {
    (void)::endwin();
}

size_t Terminal::rows() const {
    return static_cast<size_t>(std::max(::getmaxy(stdscr), 1));
}

size_t Terminal::columns() const {
    return static_cast<size_t>(std::max(::getmaxx(stdscr), 1));
}

void Terminal::draw(const std::vector<ViewLine>& lines) {
    ::werase(stdscr);
    for (size_t row = 0; row < lines.size(); ++row) {
        ::wmove(stdscr, static_cast<int>(row), 0);
        for (const Cell& cell : lines[row].cells) {
            const attr_t reverse = lines[row].selected ? A_REVERSE : A_NORMAL;
            ::wattrset(stdscr, static_cast<int>(attributes_of(cell.style, colors_) | reverse));
            ::waddnstr(stdscr, cell.text.data(), static_cast<int>(cell.text.size()));
        }
    }
    ::wattrset(stdscr, A_NORMAL);
    ::wrefresh(stdscr);
}

std::optional<Terminal::Press> Terminal::wait_for_key(std::chrono::milliseconds most) {
    ::wtimeout(stdscr, static_cast<int>(std::max<int64_t>(most.count(), 0)));
    const int key = ::wgetch(stdscr);
    switch (key) {
        case ERR:
        case KEY_RESIZE:
            return std::nullopt;
        case KEY_UP:
        case 'k':
            return Press{Key::up};
        case KEY_DOWN:
        case 'j':
            return Press{Key::down};
        case kControlC:
        case 'q':
            return Press{Key::quit};
        default:
            return Press{Key::other, key >= ' ' && key <= '~' ? static_cast<char>(key) : '\0'};
    }
}

}  // namespace sluice::cli
