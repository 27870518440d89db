#include "cli/top_view.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "cli/format.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kKeys =
    "d/p/c sort  up/down select  b ban  w why  f filter  space pause  q quit";
// Title, headings and the last line, with empty lines between.
constexpr size_t kFrame = 6;

std::string padded(std::string text, size_t width, bool to_the_right = false) {
    if (text.size() > width)
        return width == 0 ? std::string() : text.substr(0, width - 1) + '~';
    const std::string space(width - text.size(), ' ');
    return to_the_right ? space + text : text + space;
}

double per_second(const Json& service, const char* key) {
    const auto rates = service.find("per_s");
    return rates == service.end() ? 0 : rates->value(key, 0.0);
}

double refused(const Json& service) {
    return per_second(service, "dropped") + per_second(service, "would_drop");
}

// The budget that is asked for most of all, beside what it has.
std::string budget_text(const Json& service) {
    std::string text;
    double most = -1;
    for (const Json& limit : service["limits"]) {
        const double asked = limit.value("asked_per_s", -1.0);
        if (asked <= most)
            continue;
        most = asked;
        const auto rule = limit["rule"].get<std::string>();
        text = rule.substr(rule.rfind('.') + 1) + ' ' + format_short(asked) + "/s of " +
               limit["limit"].get<std::string>();
        text = text.substr(0, text.find(", burst"));
    }
    return text;
}

Row service_row(const Json& service) {
    const auto mode = service["mode"].get<std::string>();
    return {{padded(service["name"].get<std::string>(), 16) + ' '},
            {padded(mode, 7) + ' ', style_of_mode(mode)},
            {padded(format_short(per_second(service, "passed")), 8, true) + ' '},
            {padded(format_short(refused(service)), 8, true) + "  ",
             refused(service) > 0 ? Style::bad : Style::plain},
            {budget_text(service)}};
}

std::vector<ViewLine> service_lines(const Json& services, size_t most) {
    std::vector<const Json*> sorted;
    for (const Json& service : services)
        sorted.push_back(&service);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Json* a, const Json* b) {
        return std::pair(refused(*a), per_second(*a, "passed")) >
               std::pair(refused(*b), per_second(*b, "passed"));
    });
    std::vector<ViewLine> lines;
    for (const Json* service : sorted) {
        if (lines.size() + 1 == most && sorted.size() > most) {
            lines.push_back(
                {{{"and " + std::to_string(sorted.size() - lines.size()) + " quieter ones",
                   Style::dim}}});
            break;
        }
        lines.push_back({service_row(*service)});
    }
    return lines;
}

// Where it was refused, or where it goes.
std::string place_of(const Json& source) {
    const auto service = source["service"].get<std::string>();
    if (source["rule"].is_null())
        return service;
    const auto rule = source["rule"].get<std::string>();
    return rule.starts_with(service + '.') ? rule : service + ": " + rule;
}

ViewLine source_line(const Json& source, size_t width, bool selected) {
    const auto rate = [&](const char* key) {
        return padded(format_short(source[key].get<double>()), 8, true) + ' ';
    };
    return {{{padded(source["source"].get<std::string>(), width) + ' '},
             {rate("dropped_per_s"),
              source["dropped_per_s"].get<double>() > 0 ? Style::bad : Style::plain},
             {rate("passed_per_s")},
             {rate("connections_per_s") + ' '},
             {place_of(source)}},
            selected};
}

ViewLine title(const Json& data) {
    double passed = 0, dropped = 0, would_drop = 0;
    for (const Json& service : data["services"]) {
        passed += per_second(service, "passed");
        dropped += per_second(service, "dropped");
        would_drop += per_second(service, "would_drop");
    }
    const auto mode = data["mode"].get<std::string>();
    Row cells = {
        {"sluice  ", Style::strong},
        {mode + "  ", style_of_mode(mode)},
        {data.value("idle", Json::array()).empty() ? "" : "NOT IN FORCE, see: services  ",
         Style::bad},
        {"policy " + data["policy_version"].dump() + "  "},
        {"passed " + format_short(passed) + "/s  "},
        {"dropped " + format_short(dropped) + "/s", dropped > 0 ? Style::bad : Style::plain}};
    if (would_drop > 0)
        cells.push_back({"  would drop " + format_short(would_drop) + "/s", Style::careful});
    return {std::move(cells)};
}

ViewLine source_heading(const TopChoice& choice, size_t width) {
    const auto column = [&](HeavyBy by, const char* text, size_t size) {
        return Cell(padded(choice.by == by ? std::string("*") + text : text, size, true) + ' ',
                    Style::dim);
    };
    return {
        {{padded("SOURCE", width) + ' ', Style::dim},
         column(HeavyBy::dropped, "DROPPED", 8),
         column(HeavyBy::passed, "PASSED", 8),
         column(HeavyBy::connections, "CONNECT", 8),
         {choice.service ? " ONLY AT " + *choice.service : " REFUSED BY, OR SERVICE", Style::dim}}};
}

// Cut to the screen, and free of whatever a terminal would obey.
void cut(ViewLine& line, size_t columns) {
    for (Cell& cell : line.cells) {
        cell.text = printable(cell.text).substr(0, columns);
        columns -= cell.text.size();
    }
}

}  // namespace

std::string_view heavy_by_name(HeavyBy by) {
    return by == HeavyBy::dropped ? "dropped" : by == HeavyBy::passed ? "passed" : "connections";
}

std::vector<ViewLine> draw_top(const Json& data, const TopChoice& choice, size_t rows,
                               size_t columns) {
    std::vector<ViewLine> lines = {title(data), {}};
    const size_t room = rows > kFrame ? rows - kFrame : 0;
    lines.push_back(
        {{{padded("SERVICE", 16) + ' ' + padded("MODE", 7) + ' ' + padded("PASSED", 8, true) + ' ' +
               padded("DROPPED", 8, true) + "  MOST ASKED BUDGET",
           Style::dim}}});
    for (ViewLine& line : service_lines(data["services"], std::max<size_t>(room / 3, 1)))
        lines.push_back(std::move(line));
    lines.emplace_back();

    if (!choice.text.empty()) {
        for (const std::string& line : choice.text)
            for (const std::string_view part : wrap(line, columns))
                lines.push_back({{{std::string(part)}}});
    } else {
        size_t width = 15;
        for (const Json& source : data["sources"])
            width = std::max(width, source["source"].get<std::string>().size());
        lines.push_back(source_heading(choice, width));
        for (const Json& source : data["sources"])
            lines.push_back(source_line(source, width, choice.selected == source["source"]));
        if (data["sources"].empty())
            lines.push_back({{{"nobody in the last seconds", Style::dim}}});
    }
    lines.resize(std::max<size_t>(rows, 1) - 1);
    const std::string_view help = choice.paused ? "paused; space goes on" : kKeys;
    lines.push_back({{choice.message.empty() ? Cell(std::string(help), Style::dim)
                                             : Cell(choice.message, Style::strong)}});
    for (ViewLine& line : lines)
        cut(line, columns);
    return lines;
}

}  // namespace sluice::cli
