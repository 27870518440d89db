#include "tune/picture.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "tune/place.h"

namespace sluice {

namespace {

// Pixels.
constexpr int kMargin = 24, kCell = 34, kGap = 6, kQueueTop = 76, kCoresTop = 220, kLine = 18;
constexpr int kCoresInRow = 16;

struct Point {
    int x = 0, y = 0;
};

std::string in_xml(std::string_view text) {
    std::string safe;
    for (const char c : text)
        safe += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
    return safe;
}

class Drawing {
  public:
    void text(Point at, std::string_view words, std::string_view kind = "") {
        body_ << "<text x=\"" << at.x << "\" y=\"" << at.y << "\" class=\"" << kind << "\">"
              << in_xml(words) << "</text>\n";
        reach(at.x + static_cast<int>(words.size()) * 7, at.y);
    }
    void box(Point at, int width, int height, std::string_view kind, std::string_view hint = "") {
        body_ << "<rect x=\"" << at.x << "\" y=\"" << at.y << "\" width=\"" << width
              << "\" height=\"" << height << "\" rx=\"4\" class=\"" << kind << "\"><title>"
              << in_xml(hint) << "</title></rect>\n";
        reach(at.x + width, at.y + height);
    }
    void curve(Point from, Point to, std::string_view kind) {
        const int middle = (from.y + to.y) / 2;
        body_ << "<path d=\"M" << from.x << ' ' << from.y << " C" << from.x << ' ' << middle << ' '
              << to.x << ' ' << middle << ' ' << to.x << ' ' << to.y << "\" class=\"" << kind
              << "\"/>\n";
    }
    [[nodiscard]] std::string whole() const {
        std::ostringstream all;
        all << "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " << right_ + kMargin << ' '
            << bottom_ + kMargin << "\" width=\"" << right_ + kMargin << "\" height=\""
            << bottom_ + kMargin << "\">\n"
            << R"(<style>
svg { background: #fff; color: #1b1f24 }
@media (prefers-color-scheme: dark) { svg { background: #15181c; color: #e6e8ea } }
text { font: 12px sans-serif; fill: currentColor } .title { font-size: 16px; font-weight: 600 }
.in { text-anchor: middle } .node { fill: none; stroke: currentColor; opacity: .5 }
.cpu { fill: #8b949e33; stroke: currentColor } .irq { fill: #2f81f755; stroke: #2f81f7 }
.rps { fill: #3fb95055; stroke: #3fb950 } .off { fill: none; stroke: currentColor; stroke-dasharray: 3 3 }
.queue { fill: #2f81f755; stroke: #2f81f7 } path { fill: none; stroke: #2f81f7; opacity: .7 }
</style>
)" << body_.str()
            << "</svg>\n";
        return all.str();
    }
    [[nodiscard]] int bottom() const { return bottom_; }

  private:
    void reach(int x, int y) {
        right_ = std::max(right_, x);
        bottom_ = std::max(bottom_, y);
    }

    std::ostringstream body_;
    int right_ = 0, bottom_ = 0;
};

// Each node a frame, each core a column of its threads.
std::map<unsigned, Point> draw_nodes(const PlanInput& input,
                                     const std::map<unsigned, std::string>& kinds,
                                     Drawing& drawing) {
    std::map<unsigned, Point> tops;
    int top = kCoresTop;
    for (const unsigned node : input.host.nodes) {
        int column = 0, deepest = 1, row_top = top + kLine + kGap;
        int widest = 0;
        for (const Cpu& cpu : input.host.cpus) {
            if (cpu.node != node || !cpu.is_first_of_core())
                continue;
            if (column == kCoresInRow) {
                column = 0;
                row_top += deepest * kCell + kGap;
            }
            const int x = kMargin + kGap + column * (kCell + kGap);
            int thread = 0;
            for (const unsigned number : cpu.siblings) {
                const Point at{x, row_top + thread * kCell};
                const auto kind = kinds.find(number);
                drawing.box(at, kCell, kCell - 2, kind == kinds.end() ? "cpu" : kind->second,
                            "CPU " + std::to_string(number));
                drawing.text({at.x + kCell / 2, at.y + kCell / 2 + 4}, std::to_string(number),
                             "in");
                tops[number] = {at.x + kCell / 2, at.y};
                ++thread;
            }
            deepest = std::max(deepest, thread);
            widest = std::max(widest, ++column);
        }
        drawing.text({kMargin + kGap, top + kLine - 4}, "node " + std::to_string(node));
        const int bottom = row_top + deepest * kCell + kGap;
        drawing.box({kMargin, top}, kGap + widest * (kCell + kGap), bottom - top, "node",
                    "node " + std::to_string(node));
        top = bottom + kLine;
    }
    return tops;
}

std::map<unsigned, std::string> kinds_of(const PlanInput& input, const Plan& plan) {
    std::map<unsigned, std::string> kinds;
    for (const Cpu& cpu : input.host.cpus)
        if (cpu.isolated)
            kinds[cpu.number] = "off";
    for (const Port& port : input.ports)
        for (const unsigned cpu :
             workers_near(input.host, port.node, input.wishes.reserve_cores).reserved)
            kinds[cpu] = "off";
    for (const Port& port : input.ports)
        for (const ReceiveQueue& queue : port.receive)
            for (const unsigned cpu : queue.rps)
                kinds[cpu] = "rps";
    // What the plan sets stands above what is there.
    for (const Change& change : plan.changes)
        if (change.setting.kind == SettingKind::file &&
            change.setting.name.ends_with("/rps_cpus")) {
            const auto cpus = parse_cpu_mask(change.value);
            if (!cpus)
                continue;
            for (auto& [cpu, kind] : kinds)
                if (kind == "rps" && cpus->empty())
                    kind = "cpu";
            for (const unsigned cpu : *cpus)
                kinds[cpu] = "rps";
        }
    for (const PortPlan& port : plan.ports)
        for (const QueuePlace& place : port.places)
            kinds[place.cpu] = "irq";
    return kinds;
}

void draw_legend(Drawing& drawing) {
    constexpr std::pair<const char*, const char*> kLegend[] = {{"irq", "takes a queue"},
                                                               {"rps", "helps by RPS"},
                                                               {"cpu", "not near, or not needed"},
                                                               {"off", "isolated or reserved"}};
    int x = kMargin;
    const int y = drawing.bottom() + kLine;
    for (const auto& [kind, words] : kLegend) {
        drawing.box({x, y}, 14, 14, kind, words);
        drawing.text({x + 20, y + 12}, words);
        x += 40 + static_cast<int>(std::string_view(words).size()) * 7;
    }
}

}  // namespace

std::string picture_of(const PlanInput& input, const Plan& plan) {
    Drawing drawing;
    drawing.text({kMargin, kMargin + 4},
                 input.interface + ", profile " + std::string(tune_profile_name(plan.profile)),
                 "title");
    const auto cpus = draw_nodes(input, kinds_of(input, plan), drawing);
    int x = kMargin;
    for (const PortPlan& port : plan.ports) {
        drawing.text({x, kQueueTop - 2 * kGap},
                     port.name + (port.driver.empty() ? "" : " (" + port.driver + ')') + ", " +
                         std::to_string(port.queues_wanted) + " queues");
        for (const QueuePlace& place : port.places) {
            const std::string name = port.name + " queue " + std::to_string(place.queue);
            drawing.box({x, kQueueTop}, kCell, kCell - kGap, "queue", name);
            drawing.text({x + kCell / 2, kQueueTop + kCell / 2 + 1}, std::to_string(place.queue),
                         "in");
            if (const auto cpu = cpus.find(place.cpu); cpu != cpus.end())
                drawing.curve({x + kCell / 2, kQueueTop + kCell - kGap}, cpu->second, "");
            x += kCell + kGap;
        }
        x = std::max(x + kMargin, kMargin + 200);
    }
    draw_legend(drawing);
    return drawing.whole();
}

}  // namespace sluice
