#include "plots.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "chart.h"
#include "rows.h"
#include "spread.h"

namespace sluice::bench {

namespace {

constexpr const char* kRatio =
    "Time per packet, as a ratio to a program that drops everything; one core";
constexpr const char* kBare = "bare XDP drop";

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
    add(kBare, bare_ns);
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
        if (const auto drawn = draw(LineChart{.title = "Dropping what is over a limit",
                                              .below = kRatio,
                                              .x_name = "sources that flood",
                                              .lines = lines,
                                              .one = kBare},
                                    folder + "/limits.svg");
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
        if (const auto drawn = draw(LineChart{.title = "Dropping banned addresses",
                                              .below = kRatio,
                                              .x_name = "banned addresses, all of which flood",
                                              .lines = lines,
                                              .one = kBare},
                                    folder + "/bans.svg");
            !drawn)
            return drawn;
    if (const auto bars = rejections(run); bars.size() > 1)
        return draw(BarChart{.title = "What it costs to say no",
                             .below = "Core time for one packet of 1,000 sources (bans: 100,000), "
                                      "or for one request; logarithmic",
                             .bars = bars},
                    folder + "/rejections.svg");
    return {};
}

}  // namespace sluice::bench
