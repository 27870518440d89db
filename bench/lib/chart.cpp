#include "chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <string_view>

namespace sluice::bench {

namespace {

// Dark enough for white paper, and apart from each other for the colour-blind.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#8a6d00", "#56b4e9", "#555555"};
constexpr double kWidth = 860, kLeft = 80, kTop = 70;

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text)
        out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
    return out;
}

class Svg {
  public:
    explicit Svg(double height) {
        out_ << std::fixed << std::setprecision(1) << "<svg xmlns=\"http://www.w3.org/2000/svg\" "
             << "viewBox=\"0 0 " << kWidth << ' ' << height << "\" width=\"" << kWidth
             << "\" height=\"" << height << "\" font-family=\"sans-serif\" font-size=\"14\">\n"
             << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    }
    void text(double x, double y, std::string_view words, const char* anchor = "start",
              const char* colour = "#222", int size = 14) {
        out_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\" fill=\""
             << colour << "\" font-size=\"" << size << "\">" << escaped(words) << "</text>\n";
    }
    void line(double x1, double y1, double x2, double y2, const char* colour, double width = 1) {
        out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2
             << "\" stroke=\"" << colour << "\" stroke-width=\"" << width << "\"/>\n";
    }
    void dot(double x, double y, const char* colour) {
        out_ << "<circle cx=\"" << x << "\" cy=\"" << y << "\" r=\"4\" fill=\"" << colour
             << "\"/>\n";
    }
    void box(double x, double y, double width, double height, const char* colour) {
        out_ << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << width << "\" height=\""
             << height << "\" fill=\"" << colour << "\"/>\n";
    }
    Status write(const std::string& path) {
        out_ << "</svg>\n";
        std::ofstream file(path);
        file << out_.str();
        if (!file.flush())
            return failed("cannot write " + path);
        return {};
    }

  private:
    std::ostringstream out_;
};

std::string short_number(double value) {
    std::ostringstream out;
    if (value >= 1e6)
        out << value / 1e6 << " million";
    else if (value >= 1e3)
        out << value / 1e3 << ",000";
    else
        out << value;
    return out.str();
}

// A logarithmic axis.
struct Axis {
    double low, high, from, to;
    [[nodiscard]] double at(double value) const {
        return from +
               (std::log(value) - std::log(low)) / (std::log(high) - std::log(low)) * (to - from);
    }
};

// Names beside the ends of the lines, moved apart where they would overlap.
void name_lines(Svg& svg, const std::vector<Line>& lines, double x, const Axis& y) {
    constexpr double kApart = 18;
    std::vector<std::pair<double, size_t>> places;
    for (size_t i = 0; i < lines.size(); i++)
        places.emplace_back(y.at(lines[i].points.back().second), i);
    std::ranges::sort(places);
    for (size_t i = 1; i < places.size(); i++)
        places[i].first = std::max(places[i].first, places[i - 1].first + kApart);
    // What was pushed below the plot goes up again, and pushes the others.
    for (size_t i = places.size(); i-- > 0;) {
        const double most = y.from - kApart * static_cast<double>(places.size() - 1 - i);
        places[i].first = std::min(places[i].first, most);
    }
    for (const auto& [at, i] : places)
        svg.text(x, at + 5, lines[i].name, "start", kColours[i % kColours.size()]);
}

// The values of an axis that are written beside it: 1, 2 and 5 of each power of ten.
std::vector<double> ticks_of(const Axis& axis) {
    std::vector<double> ticks;
    for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high;
         power *= 10)
        for (const double tick : {power, 2 * power, 5 * power})
            if (tick >= axis.low && tick <= axis.high)
                ticks.push_back(tick);
    return ticks;
}

std::string shown_ns(double ns) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(ns < 1e4 ? 0 : 1) << (ns < 1e4 ? ns : ns / 1e3)
        << (ns < 1e4 ? " ns" : " µs");
    return out.str();
}

}  // namespace

Status draw(const LineChart& chart, const std::string& path) {
    constexpr double kHeight = 520, kRight = 250, kBottom = 70;
    Svg svg(kHeight);
    double least_x = chart.lines[0].points[0].first, most_x = 10;
    double least_y = chart.one.empty() ? chart.lines[0].points[0].second : 1, most_y = 2;
    for (const Line& line : chart.lines)
        for (const auto& [x, y] : line.points) {
            least_x = std::min(least_x, x);
            most_x = std::max(most_x, x);
            least_y = std::min(least_y, y);
            most_y = std::max(most_y, y);
        }
    const Axis x{least_x, most_x, kLeft, kWidth - kRight};
    const Axis y{0.9 * least_y, 1.15 * most_y, kHeight - kBottom, kTop};

    svg.text(kLeft, 28, chart.title, "start", "#222", 18);
    svg.text(kLeft, 50, chart.below, "start", "#666", 13);
    for (const double tick : ticks_of(y)) {
        const bool is_one = tick == 1 && !chart.one.empty();
        svg.line(x.from, y.at(tick), x.to, y.at(tick), is_one ? "#222" : "#ddd");
        svg.text(x.from - 10, y.at(tick) + 5, short_number(tick), "end");
    }
    for (double tick = least_x; tick <= most_x * 1.01; tick *= 10) {
        svg.line(x.at(tick), y.from, x.at(tick), y.from + 6, "#222");
        svg.text(x.at(tick), y.from + 24, short_number(tick), "middle");
    }
    svg.text((x.from + x.to) / 2, kHeight - 18, chart.x_name, "middle");
    for (size_t i = 0; i < chart.lines.size(); i++) {
        const char* colour = kColours[i % kColours.size()];
        const auto& points = chart.lines[i].points;
        const double width = chart.lines[i].name.starts_with("Sluice") ? 3 : 1.8;
        for (size_t p = 0; p < points.size(); p++) {
            svg.dot(x.at(points[p].first), y.at(points[p].second), colour);
            if (p > 0)
                svg.line(x.at(points[p - 1].first), y.at(points[p - 1].second),
                         x.at(points[p].first), y.at(points[p].second), colour, width);
        }
    }
    Axis names = y;
    if (!chart.one.empty()) {
        svg.text(x.to + 14, y.at(1) + 5, chart.one + " = 1", "start", "#222", 12);
        names.from -= 24;  // the name of the one stays free
    }
    name_lines(svg, chart.lines, x.to + 14, names);
    return svg.write(path);
}

Status draw(BarChart chart, const std::string& path) {
    constexpr double kNames = 270, kBar = 22, kStep = 32, kRight = 90;
    auto& bars = chart.bars;
    std::ranges::sort(bars, {}, &Bar::ns);
    const double height = kTop + kStep * static_cast<double>(bars.size()) + 50;
    Svg svg(height);
    const Axis x{10, bars.back().ns * 1.1, kNames, kWidth - kRight};
    svg.text(20, 28, chart.title, "start", "#222", 18);
    svg.text(20, 50, chart.below, "start", "#666", 13);
    const double floor = height - 45;
    for (double tick = 10; tick <= x.high; tick *= 10) {
        svg.line(x.at(tick), kTop - 6, x.at(tick), floor, "#ddd");
        svg.text(x.at(tick), floor + 20,
                 tick < 1e3 ? short_number(tick) + " ns" : short_number(tick / 1e3) + " µs",
                 "middle");
    }
    for (size_t i = 0; i < bars.size(); i++) {
        const double y = kTop + kStep * static_cast<double>(i);
        const bool own = bars[i].name.starts_with("Sluice");
        svg.text(kNames - 12, y + 16, bars[i].name, "end");
        svg.box(x.from, y, x.at(bars[i].ns) - x.from, kBar, own ? kColours[0] : "#9aa5ad");
        svg.text(x.at(bars[i].ns) + 8, y + 16, shown_ns(bars[i].ns));
    }
    return svg.write(path);
}

}  // namespace sluice::bench
