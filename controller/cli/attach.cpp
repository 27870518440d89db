// sluicectl attach: tables, protected set, policy, program; all or nothing.
#include <filesystem>

#include "base/quantities.h"
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/through_daemon.h"
#include "gate/attachment.h"
#include "gate/switches.h"
#include "operate/attach_gate.h"
#include "operate/config_file.h"
#include "policy/rule_id.h"

namespace sluice::cli {

namespace {

constexpr const char* kUsualConfig = "/etc/sluice/sluice.toml";

struct Options {
    std::string interface;
    std::optional<std::string> xdp_mode;
    std::optional<std::string> config;
    std::optional<std::string> confirm;
};

Result<AttachOptions> read(const Options& options, const Session& session) {
    AttachOptions attach;
    attach.interface = options.interface;
    attach.pin_dir = session.pin_dir;
    if (options.xdp_mode) {
        const auto mode = parse_xdp_mode(*options.xdp_mode);
        if (!mode)
            return mode.error().with_context("--xdp-mode");
        attach.xdp_mode = *mode;
    }
    attach.config = options.config;
    if (session.prepare_attach)
        session.prepare_attach(attach);
    const auto confirm = parse_optional_time("--confirm", options.confirm, kLongestConfirm);
    if (!confirm)
        return confirm.error();
    attach.confirm = *confirm;
    attach.timeout = session.timeout;
    attach.who = session.who;
    attach.before_tables = [&session](uint64_t needed, uint64_t available) {
        session.progress("memory: the tables take " + format_bytes(needed) + " of " +
                         format_bytes(available) + " available");
    };
    return attach;
}

Result<Answer> run(const Options& options, const Session& session) {
    // Who reads a file with the daemon's rights reads everybody's.
    if (session.heavy != nullptr && options.config)
        return make_error(ErrorCode::unreachable, "a file is read by whoever names it");
    const auto attach = read(options, session);
    if (!attach)
        return attach.error();
    Answer answer;
    session.record(
        {"attach", options.interface, "", options.config.value_or("the policy in force"), ""},
        answer.warnings);
    const auto report = attach_gate(*attach);
    if (!report)
        return report.error();
    session.made();
    const auto gate = session.open();
    if (!gate)
        return gate.error();
    Tables& tables = **gate;
    const auto mode = mode_of(tables, WholeGate{});
    if (!mode)
        return mode.error();
    const Attachment& attachment = report->attachment;
    answer.changed = true;
    answer.data = {
        {"iface", attachment.interface},
        {"xdp_mode", attachment.native ? "native" : "generic"},
        {"dispatcher", attachment.dispatcher},
        {"program_id", attachment.program_id},
        {"mode", mode_name(*mode)},
        {"policy", {{"version", report->policy_version}, {"source", report->policy_source}}},
        {"new_gate", report->new_gate},
        {"memory_bytes", report->table_bytes},
        {"confirm_within_s", seconds(attach->confirm)}};
    answer.warnings.insert(answer.warnings.end(), report->warnings.begin(), report->warnings.end());
    std::error_code ignored;
    if (report->policy_source == watching_config().source &&
        std::filesystem::exists(kUsualConfig, ignored))
        answer.warnings.push_back("no limits: " + std::string(kUsualConfig) +
                                  " was not read; add --config " + kUsualConfig);
    if (options.config && ask_daemon({"status"}, session))
        answer.warnings.push_back(
            std::string("sluiced keeps this gate; ") +
            (report->new_gate ? "within a second" : "at its next reload or start") +
            " its own configuration is in force again");
    return answer;
}

void show(const Json& data, Screen& screen) {
    const auto iface = data["iface"].get<std::string>();
    const auto mode = data["mode"].get<std::string>();
    screen.line("Attached to " + iface + ": " + data["xdp_mode"].get<std::string>() + " mode, " +
                (data["dispatcher"] ? "beside other XDP programs" : "alone, by a pinned link") +
                '.');
    screen.fields({{"mode", {mode, style_of_mode(mode)}},
                   {"policy", "version " + data["policy"]["version"].dump() + ", " +
                                  data["policy"]["source"].get<std::string>()},
                   {"tables", format_bytes(data["memory_bytes"].get<uint64_t>()) +
                                  (data["new_gate"] ? ", new" : ", as they were")}});
    if (!data["confirm_within_s"].is_null())
        screen.line("Within " + format_seconds(data["confirm_within_s"].get<double>()) +
                    ": sluicectl confirm; or everything passes again.");
    if (mode == "observe")
        screen.raw(
            "\nNothing is dropped yet: the gate only counts what it would drop.\n"
            "  sluicectl services                       see what that is\n"
            "  sluicectl mode enforce --confirm 60s     drop it, with a way back\n");
}

}  // namespace

void add_attach(CommandLine& line) {
    auto options = std::make_shared<Options>();
    CLI::App* app = line.add("attach", "Put the gate on an interface");
    app->add_option("IFACE", options->interface, "Such as eth0")->required();
    app->add_option("--xdp-mode", options->xdp_mode,
                    "auto, native or generic; default: the configuration's")
        ->type_name("MODE");
    app->add_option("--config", options->config,
                    "Policy to install; default: the one in force, on a new gate none")
        ->type_name("FILE");
    app->add_option("--confirm", options->confirm,
                    "Pass everything from then on, unless `sluicectl confirm` comes")
        ->type_name("TIME");
    line.handle(
        app, [options](const Session& session) { return run(*options, session); }, show);
}

}  // namespace sluice::cli
