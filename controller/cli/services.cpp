// sluicectl services: what the policy says of each, and what becomes of its packets.
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/rl_json.h"
#include "cli/schedule_view.h"
#include "cli/traffic.h"

namespace sluice::cli {

namespace {

Result<Answer> run(const Session& session) {
    // The daemon hands out totals; whoever asked takes them twice.
    auto data = session.heavy != nullptr ? read_traffic(session) : measure_traffic(session);
    if (!data)
        return data.error();
    Answer answer;
    answer.data = *std::move(data);
    for (const Json& reason : answer.data["idle"])
        answer.warnings.push_back(reason.get<std::string>());
    if (session.rl)
        answer.data["rl"] = rl_services_json(session.rl());
    return answer;
}

std::string joined(const Json& words) {
    std::string text;
    for (const Json& word : words)
        text += (text.empty() ? "" : ", ") + word.get<std::string>();
    return text;
}

void show(const Json& data, Screen& screen) {
    std::vector<Row> rows;
    for (const Json& service : data["services"]) {
        const auto mode = service["mode"].get<std::string>();
        const auto count = [&](const char* key) {
            return format_count(service["packets"][key].get<uint64_t>());
        };
        const auto rate = [&](const char* key) {
            return format_short(service["per_s"][key].get<double>());
        };
        rows.push_back({{service["name"].get<std::string>()},
                        {mode, style_of_mode(mode)},
                        {count("passed")},
                        {rate("passed")},
                        {count("would_drop")},
                        {rate("would_drop")},
                        {count("dropped")},
                        {rate("dropped")},
                        {service["match"].empty() ? "the rest" : joined(service["match"])}});
    }
    screen.table({{"SERVICE"},
                  {"MODE"},
                  {"PASSED", true},
                  {"PER S", true},
                  {"WOULD DROP", true},
                  {"PER S", true},
                  {"DROPPED", true},
                  {"PER S", true},
                  {"MATCH"}},
                 rows);
    rows.clear();
    for (const Json& service : data["services"])
        for (const Json& limit : service["limits"]) {
            const auto mode = limit["mode"].get<std::string>();
            rows.push_back(
                {{limit["rule"].get<std::string>()},
                 {limit["limit"].get<std::string>()},
                 {limit.contains("asked_per_s") ? format_short(limit["asked_per_s"].get<double>())
                                                : "-"},
                 {mode, style_of_mode(mode)}});
        }
    screen.line();
    if (rows.empty())
        screen.line("No limits.");
    else
        screen.table({{"RULE"}, {"LIMIT"}, {"DEMAND A SECOND", true}, {"MODE"}}, rows);
    show_rl_services(data.value("rl", Json::array()), screen);
    rows.clear();
    for (const Json& service : data["services"])
        for (const Json& schedule : service["schedules"])
            rows.push_back({{service["name"].get<std::string>()},
                            {schedule["name"].get<std::string>()},
                            {values_text(schedule["values"])},
                            {schedule["when"].get<std::string>()},
                            schedule_state(schedule)});
    if (rows.empty())
        return;
    screen.line();
    screen.table({{"SERVICE"}, {"SCHEDULE"}, {"NUMBERS"}, {"WHEN"}, {"NOW"}}, rows);
}

}  // namespace

void add_services(CommandLine& line) {
    line.handle(line.add("services", "Services, their limits, and what became of their packets"),
                run, show);
}

}  // namespace sluice::cli
