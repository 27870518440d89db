// sluicectl detach: off one interface; with the last one the tables go, too.
#include "cli/command_line.h"
#include "cli/format.h"
#include "operate/attach_gate.h"

namespace sluice::cli {

namespace {

Result<Answer> run(const std::string& interface, const Session& session) {
    Answer answer;
    session.record({"detach", interface, "", "", ""}, answer.warnings);
    const auto report = detach_gate(session.pin_dir, interface, session.timeout);
    if (!report)
        return report.error();
    answer.changed = true;
    answer.data = {
        {"iface", interface},
        {"gate_removed", report->gate_removed},
        {"removed",
         {{"bans", report->bans}, {"allows", report->allows}, {"overrides", report->overrides}}},
        {"still_attached", report->still_attached}};
    answer.warnings.insert(answer.warnings.end(), report->warnings.begin(), report->warnings.end());
    return answer;
}

// Through the daemon alone, which knows what it is to keep.
void show_return(const Json& data, Screen& screen) {
    if (data.value("comes_back", false))
        screen.line(
            "sluiced leaves it off, and attaches it again at its next start, with the bans "
            "and overrides that it has on disk.");
}

void show(const Json& data, Screen& screen) {
    screen.line("Detached from " + data["iface"].get<std::string>() + '.');
    if (data["gate_removed"]) {
        const Json& removed = data["removed"];
        screen.line("It was the last interface, so the gate is gone, and with it " +
                    plural(removed["bans"].get<uint64_t>(), "ban") + ", " +
                    plural(removed["allows"].get<uint64_t>(), "allow") + " and " +
                    plural(removed["overrides"].get<uint64_t>(), "override") + '.');
        show_return(data, screen);
        return;
    }
    std::string rest;
    for (const auto& name : data["still_attached"])
        rest += (rest.empty() ? "" : ", ") + name.get<std::string>();
    screen.line("Still attached to " + rest + '.');
    show_return(data, screen);
}

}  // namespace

void add_detach(CommandLine& line) {
    auto interface = std::make_shared<std::string>();
    CLI::App* app = line.add("detach", "Take the gate off an interface");
    app->add_option("IFACE", *interface, "Such as eth0")->required();
    line.handle(
        app, [interface](const Session& session) { return run(*interface, session); }, show);
}

}  // namespace sluice::cli
