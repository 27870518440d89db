// sluicectl tune: what the host's queues should look like, put so, watched, and put back.
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/file.h"
#include "cli/command_line.h"
#include "cli/format.h"
#include "cli/tune_root.h"
#include "cli/tune_view.h"
#include "gate/switches.h"
#include "operate/config_file.h"
#include "policy/tune_reader.h"
#include "tune/apply.h"
#include "tune/capture.h"
#include "tune/irqbalance.h"
#include "tune/measure.h"
#include "tune/picture.h"

namespace sluice::cli {

namespace {

using std::chrono::milliseconds;

// Long enough for rates that mean something, short enough to be waited for twice.
constexpr milliseconds kMeasured(1'000);

struct Options {
    std::string interface;
    std::optional<std::string> root;
    std::optional<std::string> svg;
    std::optional<std::string> profile;
    std::optional<unsigned> reserve_cores;
    std::optional<std::string> config;
    std::optional<std::string> confirm;
    std::optional<std::string> again;
};

Result<Machine> machine_of(const Options& options) {
    return machine_at(options.root);
}

JournalFolder journals_of(const Options& options, const Session& session) {
    return journals_at(options.root, session);
}

Result<TuneSettings> wishes_of(const Options& options) {
    TuneSettings wishes;
    if (options.config) {
        const auto config = load_config_file(*options.config);
        if (!config)
            return config.error();
        wishes = config->policy.tune.value_or(wishes);
    }
    if (options.profile) {
        const auto profile = parse_tune_profile(*options.profile);
        if (!profile)
            return profile.error().with_context("--profile");
        wishes.profile = *profile;
    }
    wishes.reserve_cores = options.reserve_cores.value_or(wishes.reserve_cores);
    return wishes;
}

Result<Answer> plan(const Options& options, const Session& session) {
    const auto machine = machine_of(options);
    if (!machine)
        return machine.error();
    const auto wishes = wishes_of(options);
    if (!wishes)
        return wishes.error();
    const auto input = look_at(*machine, journals_of(options, session), options.interface, *wishes);
    if (!input)
        return input.error();
    const Plan plan = make_plan(*input);
    Answer answer;
    if (options.svg) {
        if (const Status written = replace_file(*options.svg, picture_of(*input, plan)); !written)
            return written.error();
        answer.changed = true;
    }
    answer.data = plan_json(plan);
    answer.data["svg"] = options.svg ? Json(*options.svg) : Json();
    return answer;
}

// A child that outlives this shell, and the session that its link may have carried.
Status leave_a_watcher(const JournalFolder& journals, const Options& options,
                       const Session& session) {
    const pid_t child = ::fork();
    if (child < 0)
        return from_errno(errno, "start who would undo it",
                          "nothing is changed; leave out --confirm, or end some processes");
    if (child != 0)
        return {};
    (void)::setsid();
    (void)std::signal(SIGHUP, SIG_IGN);
    (void)!::freopen("/dev/null", "r+", stdin);
    (void)!::freopen("/dev/null", "w", stdout);
    (void)!::freopen("/dev/null", "w", stderr);
    // The lock is the parent's: shared, it would be held until both are gone. What else was open is
    // opened anew.
    (void)::close_range(STDERR_FILENO + 1, ~0U, 0);
    const auto machine = machine_of(options);
    const Status undone =
        machine ? undo_in_time(*machine, journals, options.interface) : Status(machine.error());
    if (!undone)
        log_change(session.who, "tune " + options.interface + ": not undone",
                   undone.error().message);
    ::_exit(undone ? 0 : 1);
}

Result<Json> irqbalance_json(const Machine& machine, const JournalFolder& journals,
                             const std::vector<std::string>& ports, const Session& session) {
    const auto host = look_at_cpus(machine);
    if (!host || !host->irqbalance)
        return Json();
    const auto files =
        write_irqbalance_files(journals, ports_to_leave_alone(machine, journals, ports),
                               JournalFolder(session.state_dir).path());
    if (!files)
        return files.error();
    return Json{
        {"policy", files->policy}, {"drop_in", files->drop_in}, {"commands", files->commands}};
}

// What is done to a tree is nothing that was done to this machine.
void record(const Machine& machine, const Session& session, const std::string& interface,
            const std::string& after, std::vector<std::string>& warnings) {
    if (machine.is_live())
        session.record({"tune", interface, "", after, ""}, warnings);
}

Result<Answer> apply(const Options& options, const Session& session) {
    const auto machine = machine_of(options);
    if (!machine)
        return machine.error();
    const auto wishes = wishes_of(options);
    if (!wishes)
        return wishes.error();
    const auto confirm = parse_optional_time("--confirm", options.confirm, kLongestConfirm);
    if (!confirm)
        return confirm.error();
    const auto ports = ports_below(*machine, options.interface);
    if (!ports)
        return ports.error();
    const JournalFolder journals = journals_of(options, session);
    // A link that goes down may end the session; half of a plan is worse than either end.
    (void)std::signal(SIGHUP, SIG_IGN);

    Answer answer;
    record(*machine, session, options.interface, std::string(tune_profile_name(wishes->profile)),
           answer.warnings);
    const Rates before = machine->is_live() ? measure(*machine, *ports, kMeasured) : Rates{};
    const auto report = apply_tuning(
        *machine, journals, options.interface,
        {.wishes = *wishes,
         .patience = session.timeout,
         .confirm = *confirm,
         .before_first =
             [&] { return *confirm ? leave_a_watcher(journals, options, session) : Status(); },
         .before_change =
             [&](const Change& change) {
                 session.progress(change.what + ": " + change.before + " → " + change.after);
             }});
    if (!report)
        return report.error();
    session.made();
    answer.changed = !report->done.empty();
    answer.data = report_json(options.interface, *report);
    answer.data["confirm_within_s"] = answer.changed ? seconds(*confirm) : Json();
    const auto irqbalance = irqbalance_json(*machine, journals, *ports, session);
    if (!irqbalance)
        answer.warnings.push_back("no policy for irqbalance: " + irqbalance.error().message);
    answer.data["irqbalance"] = irqbalance ? *irqbalance : Json();
    const bool shows_rates = machine->is_live() && answer.changed;
    answer.data["rates"] =
        shows_rates ? rates_json(before, measure(*machine, *ports, kMeasured)) : Json();
    return answer;
}

Result<Answer> verify(const Options& options, const Session& session) {
    const auto machine = machine_of(options);
    if (!machine)
        return machine.error();
    constexpr std::chrono::hours kLongestWait(1);
    const auto again = parse_optional_time("--again", options.again, kLongestWait);
    if (!again)
        return again.error();
    const JournalFolder journals = journals_of(options, session);
    auto drifts = drifted(*machine, journals, options.interface);
    if (drifts && drifts->empty() && *again) {
        std::this_thread::sleep_for(**again);
        drifts = drifted(*machine, journals, options.interface);
    }
    if (!drifts)
        return drifts.error();
    Answer answer;
    answer.exit_code = drifts->empty() ? 0 : static_cast<int>(ErrorCode::failed);
    answer.data = drift_json(options.interface, *drifts);
    return answer;
}

Result<Answer> revert(const Options& options, const Session& session) {
    const auto machine = machine_of(options);
    if (!machine)
        return machine.error();
    Answer answer;
    record(*machine, session, options.interface, "as it was before", answer.warnings);
    const auto report =
        revert_tuning(*machine, journals_of(options, session), options.interface, session.timeout);
    if (!report)
        return report.error();
    session.made();
    answer.changed = !report->restored.empty();
    answer.data = revert_json(options.interface, *report);
    return answer;
}

Result<Answer> capture_to(const std::string& folder, const Session&) {
    if (const Status captured = capture(Machine::live(), folder); !captured)
        return captured.error();
    Answer answer;
    answer.changed = true;
    answer.data = {{"folder", folder}};
    return answer;
}

void show_capture(const Json& data, Screen& screen) {
    const auto folder = data["folder"].get<std::string>();
    screen.line("Captured in " + folder + ": sluicectl tune plan IFACE --root " + folder);
}

CLI::App* add_below(CommandLine& line, CLI::App* app, const char* name, const char* summary,
                    Options& options) {
    CLI::App* command = line.add(name, summary, app);
    command->add_option("IFACE", options.interface, "Such as eth0")->required();
    add_root(command, options.root);
    return command;
}

void add_wishes(CLI::App* command, Options& options) {
    command->add_option("--profile", options.profile, "latency, balanced or flood")
        ->type_name("NAME");
    command
        ->add_option("--reserve-cores", options.reserve_cores,
                     "Cores near the card to keep free of its queues")
        ->type_name("N");
    command->add_option("--config", options.config, "Whose [tune] to begin with")
        ->type_name("FILE");
}

}  // namespace

void add_tune(CommandLine& line) {
    CLI::App* app = line.add("tune", "Spread a card's queues over the CPUs near it, and back");
    app->require_subcommand(1);
    const auto bind = [&line](CLI::App* command, const std::shared_ptr<Options>& options,
                              Result<Answer> (*run)(const Options&, const Session&), Show show) {
        line.handle(
            command, [options, run](const Session& session) { return run(*options, session); },
            show);
    };

    auto planned = std::make_shared<Options>();
    CLI::App* planning =
        add_below(line, app, "plan", "What would be changed, and why; changes nothing", *planned);
    add_wishes(planning, *planned);
    planning->add_option("--svg", planned->svg, "A picture of queues, cores and nodes")
        ->type_name("FILE");
    bind(planning, planned, plan, show_plan);

    auto applied = std::make_shared<Options>();
    CLI::App* applying =
        add_below(line, app, "apply", "Put that plan in force; before `attach`", *applied);
    add_wishes(applying, *applied);
    applying
        ->add_option("--confirm", applied->confirm,
                     "Undo it, unless `sluicectl confirm` comes within this time")
        ->type_name("TIME");
    bind(applying, applied, apply, show_report);

    auto verified = std::make_shared<Options>();
    CLI::App* verifying =
        add_below(line, app, "verify", "Is all as it was set? Fails where it is not", *verified);
    verifying->add_option("--again", verified->again, "And once more after this time")
        ->type_name("TIME");
    bind(verifying, verified, verify, show_drift);

    auto reverted = std::make_shared<Options>();
    bind(add_below(line, app, "revert", "As it was before, also after a crash", *reverted),
         reverted, revert, show_revert);

    auto folder = std::make_shared<std::string>();
    CLI::App* capturing =
        line.add("capture", "This machine as a folder for --root, without any address", app);
    capturing->add_option("-o,--output", *folder, "Must not exist yet")
        ->type_name("DIR")
        ->required();
    line.handle(
        capturing, [folder](const Session& session) { return capture_to(*folder, session); },
        show_capture);
}

}  // namespace sluice::cli
