// sluicectl audit: who changed what, and why.
#include "observe/audit.h"

#include "cli/command_line.h"
#include "cli/format.h"

namespace sluice::cli {

namespace {

Result<Answer> run(const std::string& since, const Session& session) {
    const auto span = parse_time(since);
    if (!span)
        return span.error().with_context("--since");
    const AuditLog log(session.state_dir);
    const auto view = log.read(*span);
    if (!view)
        return view.error();
    Json entries = Json::array();
    for (const std::string& line : view->lines)
        entries.push_back(Json::parse(line, nullptr, false));
    Answer answer;
    if (view->left_out)
        answer.warnings.push_back("older changes are left out: only the last " +
                                  std::to_string(AuditLog::kMostRead >> 20) + " MiB of " +
                                  log.path() + " were looked at");
    answer.data = {{"entries", entries}};
    return answer;
}

std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : "";
}

void show(const Json& data, Screen& screen) {
    if (data["entries"].empty()) {
        screen.line("Nothing was changed in that time.");
        return;
    }
    std::vector<Row> rows;
    for (const Json& entry : data["entries"]) {
        std::string who = text_of(entry["actor"]);
        if (const std::string from = text_of(entry["from"]); !from.empty())
            who += " from " + from;
        std::string change = text_of(entry["after"]);
        if (const std::string before = text_of(entry["before"]); !before.empty())
            change = before + " → " + change;
        rows.push_back({{text_of(entry["time"]).substr(0, 19)},
                        {who},
                        {text_of(entry["action"])},
                        {text_of(entry["target"])},
                        {change},
                        {text_of(entry["reason"]), Style::dim}});
    }
    screen.table({{"TIME (UTC)"}, {"WHO"}, {"ACTION"}, {"TARGET"}, {"CHANGE"}, {"REASON"}}, rows);
}

}  // namespace

void add_audit(CommandLine& line) {
    auto since = std::make_shared<std::string>("1h");
    CLI::App* app = line.add("audit", "Who changed what, and why");
    app->add_option("--since", *since, "How far back")->type_name("TIME")->capture_default_str();
    line.handle(
        app, [since](const Session& session) { return run(*since, session); }, show);
}

}  // namespace sluice::cli
