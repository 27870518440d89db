// sluicectl doctor: what is wrong here, why it matters, and the command that mends it.
#include "doctor/doctor.h"

#include <array>

#include "base/text.h"
#include "cli/command_line.h"

namespace sluice::cli {

namespace {

struct Options {
    std::vector<std::string> interfaces;
    std::string config = "/etc/sluice/sluice.toml";
    bool strict = false;
};

Json finding_json(const Examined& examined) {
    const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    const Finding& finding = examined.finding;
    return {{"check", examined.check},
            {"iface", or_null(examined.interface)},
            {"outcome", outcome_name(finding.outcome)},
            {"seen", finding.seen},
            {"why", or_null(finding.why)},
            {"mend", or_null(finding.mend)}};
}

Result<Answer> run(const Options& options, const Session& session) {
    const auto patient = look_at_patient({.interfaces = options.interfaces,
                                          .pin_dir = session.pin_dir,
                                          .socket = session.socket,
                                          .state_dir = session.state_dir,
                                          .config = options.config,
                                          .who = session.who});
    if (!patient)
        return patient.error();
    Answer answer;
    Json findings = Json::array();
    std::array<size_t, 4> counts{};
    for (const Examined& examined : examine(*patient)) {
        findings.push_back(finding_json(examined));
        counts[static_cast<size_t>(examined.finding.outcome)]++;
    }
    const auto count = [&](Outcome outcome) { return counts[static_cast<size_t>(outcome)]; };
    answer.data = {{"findings", std::move(findings)},
                   {"passed", count(Outcome::pass)},
                   {"warned", count(Outcome::warn)},
                   {"failed", count(Outcome::fail)},
                   {"skipped", count(Outcome::skip)}};
    const bool is_bad = count(Outcome::fail) != 0 || (options.strict && count(Outcome::warn) != 0);
    answer.exit_code = is_bad ? static_cast<int>(ErrorCode::failed) : 0;
    return answer;
}

Style style_of(const std::string& outcome) {
    return outcome == "FAIL"   ? Style::bad
           : outcome == "WARN" ? Style::careful
           : outcome == "PASS" ? Style::good
                               : Style::dim;
}

void show_rest(const Json& finding, Screen& screen) {
    if (!finding["why"].is_null())
        screen.line("        " + finding["why"].get<std::string>());
    if (!finding["mend"].is_null())
        screen.line("        → " + finding["mend"].get<std::string>(), Style::strong);
}

void show(const Json& data, Screen& screen) {
    for (const Json& finding : data["findings"]) {
        const auto outcome = finding["outcome"].get<std::string>();
        const std::string where =
            finding["iface"].is_null() ? "" : finding["iface"].get<std::string>() + ' ';
        screen.cells({{outcome + "  ", style_of(outcome)},
                      {where + finding["check"].get<std::string>() + ": ", Style::plain},
                      {printable(finding["seen"].get<std::string>())}});
        show_rest(finding, screen);
    }
    screen.line();
    screen.line(data["failed"].dump() + " to mend, " + data["warned"].dump() + " to look at, " +
                    data["passed"].dump() + " good, " + data["skipped"].dump() + " not looked at",
                data["failed"] == 0 ? Style::strong : Style::bad);
}

}  // namespace

void add_doctor(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("doctor", "What is wrong here, and the command that mends it");
    app->add_option("IFACE", options->interfaces,
                    "Default: those that are attached or configured, else the outward one");
    app->add_option("--config", options->config, "Whose policy counts where no gate has one")
        ->type_name("FILE")
        ->capture_default_str();
    app->add_flag("--strict", options->strict, "Fail for what is only to be looked at, too");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
