#include "plots.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <map>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "rows.h"
#include "spread.h"

namespace sluice::bench {

namespace {

// Dark enough for white paper, and apart from each other for the colour-blind.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#8a6d00", "#56b4e9", "#555555"};
constexpr double kWidth = 860, kLeft = 80, kTop = 70;

struct Line {
    std::string name;
    std::vector<std::pair<double, double>> points;
};

struct Bar {
    std::string name;
    double ns = 0;
};

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

Status draw_lines(const std::string& title, const std::string& below, const std::string& x_name,
                  const std::vector<Line>& lines, const std::string& path) {
    constexpr double kHeight = 520, kRight = 250, kBottom = 70;
    Svg svg(kHeight);
    double most_x = 10, most_y = 2;
    for (const Line& line : lines)
        for (const auto& [x, y] : line.points) {
            most_x = std::max(most_x, x);
            most_y = std::max(most_y, y);
        }
    double least_x = most_x;
    for (const Line& line : lines)
        for (const auto& point : line.points)
            least_x = std::min(least_x, point.first);
    const Axis x{least_x, most_x, kLeft, kWidth - kRight};
    const Axis y{0.9, most_y * 1.15, kHeight - kBottom, kTop};

    svg.text(kLeft, 28, title, "start", "#222", 18);
    svg.text(kLeft, 50, below, "start", "#666", 13);
    for (const double tick : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0})
        if (tick <= y.high) {
            svg.line(x.from, y.at(tick), x.to, y.at(tick), tick == 1 ? "#222" : "#ddd");
            svg.text(x.from - 10, y.at(tick) + 5, short_number(tick), "end");
        }
    for (double tick = least_x; tick <= most_x * 1.01; tick *= 10) {
        svg.line(x.at(tick), y.from, x.at(tick), y.from + 6, "#222");
        svg.text(x.at(tick), y.from + 24, short_number(tick), "middle");
    }
    svg.text((x.from + x.to) / 2, kHeight - 18, x_name, "middle");
    svg.text(x.to + 14, y.at(1) + 5, "bare XDP drop = 1", "start", "#222", 12);
    for (size_t i = 0; i < lines.size(); i++) {
        const char* colour = kColours[i % kColours.size()];
        const auto& points = lines[i].points;
        const double width = lines[i].name.starts_with("Sluice") ? 3 : 1.8;
        for (size_t p = 0; p < points.size(); p++) {
            svg.dot(x.at(points[p].first), y.at(points[p].second), colour);
            if (p > 0)
                svg.line(x.at(points[p - 1].first), y.at(points[p - 1].second),
                         x.at(points[p].first), y.at(points[p].second), colour, width);
        }
    }
    Axis names = y;
    names.from -= 24;  // the bare drop has its own name
    std::vector<Line> named = lines;
    name_lines(svg, named, x.to + 14, names);
    return svg.write(path);
}

std::string shown_ns(double ns) {
    std::ostringstream out;
    out << std::fixed << std::setprecision(ns < 1e4 ? 0 : 1) << (ns < 1e4 ? ns : ns / 1e3)
        << (ns < 1e4 ? " ns" : " µs");
    return out.str();
}

Status draw_bars(const std::string& title, const std::string& below, std::vector<Bar> bars,
                 const std::string& path) {
    constexpr double kNames = 270, kBar = 22, kStep = 32, kRight = 90;
    std::ranges::sort(bars, {}, &Bar::ns);
    const double height = kTop + kStep * static_cast<double>(bars.size()) + 50;
    Svg svg(height);
    const Axis x{10, bars.back().ns * 1.1, kNames, kWidth - kRight};
    svg.text(20, 28, title, "start", "#222", 18);
    svg.text(20, 50, below, "start", "#666", 13);
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

// Lines of a group's rows, by who drops; `x` says where a row lies, or 0 for nowhere.
template <class X>
std::vector<Line> lines_of(const nlohmann::json& run, const std::vector<std::string>& groups, X x) {
    std::vector<Line> lines;
    for (const auto& row : run["rows"]) {
        if (std::ranges::find(groups, row["group"].get<std::string>()) == groups.end() ||
            row["cores"] != 1)
            continue;
        const double at = x(row);
        if (at == 0)
            continue;
        for (const auto& contender : row["contenders"]) {
            if (!contender.contains("ratio"))
                continue;
            const std::string name = contender["name"];
            auto line = std::ranges::find(lines, name, &Line::name);
            if (line == lines.end())
                line = lines.insert(lines.end(), {.name = name, .points = {}});
            line->points.emplace_back(at, contender["ratio"].get<double>());
        }
    }
    for (Line& line : lines)
        std::ranges::sort(line.points);
    return lines;
}

// Rows are minutes apart and the machine's speed changes, so a bar is the ratio of its row times
// one bare drop: the median one.
std::vector<Bar> rejections(const nlohmann::json& run) {
    std::vector<Bar> bars;
    std::vector<double> bare;
    const auto add = [&](const std::string& name, double value) {
        if (std::ranges::find(bars, name, &Bar::name) == bars.end())
            bars.push_back({name, value});
    };
    for (const auto& row : run["rows"]) {
        const std::string group = row["group"], name = row["name"];
        const bool networks = group == kNetworkGroup, ban = networks || group == kBannedGroup;
        if (row["source_count"] != 1'000 || row["cores"] != 1 || (!ban && group != kOverGroup) ||
            (ban && row["bans"] != 100'000) || name.ends_with("time") || name.ends_with("IPv6"))
            continue;
        bare.push_back(row["bare_ns"]);
        for (const auto& contender : row["contenders"]) {
            if (!contender.contains("ratio"))
                continue;
            const std::string who = contender["name"];
            if (who.starts_with("Sluice"))
                add(networks ? "Sluice, banned network"
                    : ban    ? "Sluice, banned address"
                             : (who == "Sluice" ? "Sluice, over a limit" : who),
                    contender["ratio"]);
            else if (!networks)
                add(who, contender["ratio"]);
        }
    }
    if (bare.empty())
        return {};
    const double bare_ns = spread_of(bare).median;
    for (Bar& bar : bars)
        bar.ns *= bare_ns;
    add("bare XDP drop", bare_ns);
    for (const auto& row : run["http"])
        if (row["name"].get<std::string>().find("429") != std::string::npos)
            add(row["name"], row["us_per_request"].get<double>() * 1e3);
    return bars;
}

}  // namespace

Status draw_plots(const nlohmann::json& run, const std::string& folder) {
    const auto by_sources = [](const nlohmann::json& row) {
        return row["source_count"].get<double>();
    };
    if (const auto lines = lines_of(run, {kOverGroup}, by_sources); !lines.empty())
        if (const auto drawn = draw_lines(
                "Dropping what is over a limit",
                "Time per packet, as a ratio to a program that drops everything; one core",
                "sources that flood", lines, folder + "/limits.svg");
            !drawn)
            return drawn;
    // Everybody on the list floods.
    const auto by_bans = [](const nlohmann::json& row) {
        const bool all = row["bans"] == row["source_count"];
        return all && !row["name"].get<std::string>().ends_with("time") &&
                       !row["name"].get<std::string>().ends_with("IPv6")
                   ? row["bans"].get<double>()
                   : 0;
    };
    if (const auto lines = lines_of(run, {kBannedGroup}, by_bans); !lines.empty())
        if (const auto drawn = draw_lines(
                "Dropping banned addresses",
                "Time per packet, as a ratio to a program that drops everything; one core",
                "banned addresses, all of which flood", lines, folder + "/bans.svg");
            !drawn)
            return drawn;
    if (const auto bars = rejections(run); bars.size() > 1)
        return draw_bars("What it costs to say no",
                         "Core time for one packet of 1,000 sources (bans: 100,000), or for one "
                         "request; logarithmic",
                         bars, folder + "/rejections.svg");
    return {};
}

}  // namespace sluice::bench
