// sluiced: flags, signals, and one poll loop.
#include <gflags/gflags.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/unique_fd.h"
#include "control/server.h"
#include "daemon/ban_feed_metrics.h"
#include "daemon/commands.h"
#include "daemon/cut_meter.h"
#include "daemon/events.h"
#include "daemon/feed_thread.h"
#include "daemon/fleet_metrics.h"
#include "daemon/fleet_thread.h"
#include "daemon/instance_lock.h"
#include "daemon/keeper.h"
#include "daemon/policy_thread.h"
#include "daemon/risk_metrics.h"
#include "daemon/risk_thread.h"
#include "daemon/rl_thread.h"
#include "daemon/surroundings.h"
#include "daemon/tune_watch.h"
#include "feeds/ban_feeds.h"
#include "fleet/host_identity.h"
#include "net/interface.h"
#include "observe/metrics.h"
#include "operate/config_file.h"
#include "operate/table_needs.h"
#include "policy/find_service.h"

DEFINE_string(config, "/etc/sluice/sluice.toml", "what to enforce");
DEFINE_string(pin_dir, "/sys/fs/bpf/sluice", "where the gate is pinned");
DEFINE_string(socket, "/run/sluice/sluice.sock", "where sluicectl reaches this daemon");
DEFINE_string(state_dir, "/var/lib/sluice", "what outlives a reboot, and the audit log");
DEFINE_bool(check, false, "read the configuration, say what its tables take, and end");
DEFINE_bool(detach_on_exit, false, "take the gate off every interface at the end");

// The library's way out where flags make no sense; it is in no header.
namespace GFLAGS_NAMESPACE {
extern void (*gflags_exitfunc)(int);
}

namespace sluice {

namespace {

using std::chrono::steady_clock;

constexpr const char* kUsage =
    R"(usage: sluiced [FLAG...]
Keeps the gate: attached, reconciled, remembered and shown.
  --config FILE        what to enforce (/etc/sluice/sluice.toml)
  --check              read it, say what its tables take, and end
  --pin_dir DIR        where the gate is pinned (/sys/fs/bpf/sluice)
  --socket PATH        where sluicectl reaches this daemon (/run/sluice/sluice.sock)
  --state_dir DIR      what outlives a reboot, and the audit log (/var/lib/sluice)
  --detach_on_exit     take the gate off every interface at the end
  --version            of this program
Flags may be written with - for _. SIGHUP reads the configuration again; SIGTERM ends, and leaves
the gate in force.)";

int fail(const Error& error) {
    log(LogLevel::error, error.message);
    if (!error.hint.empty())
        log(LogLevel::error, "  " + error.hint);
    return static_cast<int>(error.code);
}

// One that is not there yet is no reason to leave the others alone.
Status check_presence(const std::vector<std::string>& interfaces) {
    Status missing;
    for (const std::string& name : interfaces) {
        const auto interface = find_interface(name);
        if (interface)
            return {};
        if (missing)
            missing = interface.error();
    }
    return missing;
}

int check() {
    const auto config = load_config_file(FLAGS_config);
    if (!config)
        return fail(config.error());
    if (const Status named = check_interfaces(*config); !named)
        return fail(named.error());
    const auto cpus = cpu_count();
    if (!cpus)
        return fail(cpus.error());
    if (const Status redis = check_redis(config->policy.redis); !redis)
        return fail(redis.error());
    const bool is_running = !InstanceLock::of_gate(FLAGS_pin_dir);
    if (const Status around = check_surroundings(config->policy.surroundings, is_running); !around)
        return fail(around.error());
    for (const std::string& warning : config->policy.warnings)
        log(LogLevel::warning, warning);
    if (std::ranges::none_of(config->policy.services, limits_anybody))
        log(LogLevel::warning, "no service has a limit: only bans drop anything");
    for (const std::string& name : config->policy.interfaces)
        if (const auto interface = find_interface(name); !interface)
            log(LogLevel::warning, interface.error().message);
    (void)std::printf(
        "%s is good: services: %zu, memory of the tables: %llu MiB\n", FLAGS_config.c_str(),
        config->policy.services.size(),
        static_cast<unsigned long long>(needed_sizes(config->policy, *cpus).memory() >> 20));
    return 0;
}

// Signals as something to poll for: none arrives in the middle of anything.
UniqueFd blocked_signals() {
    sigset_t set{};
    ::sigemptyset(&set);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        ::sigaddset(&set, signal);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

UniqueFd every_second() {
    UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    const itimerspec second{{1, 0}, {1, 0}};
    (void)::timerfd_settime(timer.get(), 0, &second, nullptr);
    return timer;
}

class Daemon {
  public:
    static Result<std::unique_ptr<Daemon>> start();
    int run();

  private:
    Daemon(InstanceLock lock, Keeper keeper)
        : lock_(std::move(lock)),
          keeper_(std::move(keeper)),
          signals_(blocked_signals()),
          timer_(every_second()) {}
    Status open_doors();
    void take_signals();
    void reload();
    void follow_policy();
    void follow_feeds();
    void take_policy();
    void take_rl();
    void report_policy();
    void warn_of_next_start() const;

    InstanceLock lock_;
    std::optional<InstanceLock> state_lock_;
    Keeper keeper_;
    UniqueFd signals_;
    UniqueFd timer_;
    Policy first_;  // as this daemon was started
    std::unique_ptr<FleetThread> fleet_;
    std::unique_ptr<PolicyThread> policy_;
    std::unique_ptr<RlThread> rl_;
    std::unique_ptr<RiskThread> risk_;
    std::unique_ptr<TuneWatch> tune_;
    std::optional<ControlServer> server_;
    std::unique_ptr<Metrics> metrics_;
    std::unique_ptr<EventPump> events_;
    std::unique_ptr<FeedThread> feed_;
    std::unique_ptr<BanFeeds> ban_feeds_;
    std::string fed_by_;  // the configuration that they follow
    CutMeter cut_meter_;
    steady_clock::time_point started_ = steady_clock::now();
    bool stopping_ = false;
};

Result<std::unique_ptr<Daemon>> Daemon::start() {
    auto lock = InstanceLock::of_gate(FLAGS_pin_dir);
    if (!lock)
        return lock.error();
    // Without a disk the gate is kept all the same.
    auto state_lock = InstanceLock::of_state(FLAGS_state_dir);
    if (!state_lock && state_lock.error().busy)
        return state_lock.error();
    const KeeperOptions options{
        .config = FLAGS_config, .pin_dir = FLAGS_pin_dir, .state_dir = FLAGS_state_dir};
    auto first = first_config(options);
    if (!first)
        return first.error();
    // Whatever would end this daemon does so before the gate is touched.
    const Policy& policy = first->config.policy;
    const Surroundings& around = policy.surroundings;
    for (const Status& sound : {check_interfaces(first->config), check_presence(policy.interfaces),
                                check_redis(policy.redis), check_surroundings(around, false)})
        if (!sound)
            return sound.error();
    // The socket is opened and closed again: nobody is to wait at it while bans come back.
    if (const auto rehearsed =
            ControlServer::listen({.path = FLAGS_socket, .group = around.control_group}, {});
        !rehearsed)
        return rehearsed.error();
    // Drivers refuse other channels once XDP is attached.
    tune_interfaces(policy, FLAGS_state_dir);
    auto keeper = Keeper::start(options, *std::move(first));
    if (!keeper)
        return keeper.error();
    std::unique_ptr<Daemon> daemon(new Daemon(*std::move(lock), *std::move(keeper)));
    if (state_lock)
        daemon->state_lock_ = *std::move(state_lock);
    if (const Status open = daemon->open_doors(); !open)
        return open.error();
    return daemon;
}

Status Daemon::open_doors() {
    first_ = keeper_.config().policy;
    const Surroundings& around = first_.surroundings;
    events_ = std::make_unique<EventPump>(
        around.events_file, first_.events_per_second,
        [this](const std::string& line) {
            if (server_)
                server_->publish(line);
        },
        [this](const IpAddress& source, uint32_t service_id) { fleet_->saw(source, service_id); });
    fleet_ = std::make_unique<FleetThread>(FLAGS_pin_dir);
    feed_ = std::make_unique<FeedThread>(FLAGS_pin_dir, FLAGS_state_dir, fleet_->drill());
    policy_ = std::make_unique<PolicyThread>(FLAGS_state_dir, fleet_->drill());
    rl_ = std::make_unique<RlThread>(FLAGS_pin_dir, FLAGS_state_dir, fleet_->drill());
    risk_ = std::make_unique<RiskThread>(FLAGS_pin_dir, FLAGS_state_dir, fleet_->drill());
    events_->watch([this](const Event& event) { risk_->desk().take(event); });
    follow_policy();
    ban_feeds_ = std::make_unique<BanFeeds>(FLAGS_pin_dir);
    follow_feeds();
    tune_ = std::make_unique<TuneWatch>(FLAGS_state_dir, first_.tune && first_.tune->reapply);
    auto server = ControlServer::listen({.path = FLAGS_socket, .group = around.control_group},
                                        command_handler({.pin_dir = FLAGS_pin_dir,
                                                         .state_dir = FLAGS_state_dir,
                                                         .started = started_,
                                                         .keeper = &keeper_,
                                                         .events = events_.get(),
                                                         .fleet = fleet_.get(),
                                                         .policy = policy_.get(),
                                                         .rl = rl_.get(),
                                                         .feed = feed_.get(),
                                                         .risk = risk_.get(),
                                                         .ban_feeds = ban_feeds_.get(),
                                                         .tune = tune_.get()}));
    if (!server)
        return server.error();
    server_.emplace(*std::move(server));
    if (!around.metrics_listen.empty()) {
        auto metrics = Metrics::listen(around.metrics_listen, FLAGS_pin_dir, [this](Families& out) {
            const FleetStanding fleet = fleet_->standing();
            add_fleet_metrics(fleet, out);
            add_fleet_policy_metrics(fleet, policy_->standing(), out);
            add_tune_metrics(tune_->standing(), out);
            add_risk_metrics(risk_->desk().standing(), out);
            add_ban_feed_metrics(ban_feeds_->standing(), out);
        });
        if (!metrics)
            return metrics.error();
        metrics_ = *std::move(metrics);
    }
    return {};
}

void Daemon::reload() {
    (void)::sd_notify(0, "RELOADING=1");
    if (const Status reloaded = keeper_.reload(); !reloaded) {
        log(LogLevel::error, reloaded.error().busy
                                 ? "the configuration waits, the old one stays:"
                                 : "the configuration was not taken, the old one stays:");
        (void)fail(reloaded.error());
    }
    warn_of_next_start();
    (void)::sd_notify(0, "READY=1");
}

// Whom to ask, and as whom; the identity is drawn by the thread that leases budgets.
void Daemon::follow_policy() {
    const Tables* tables = keeper_.tables();
    const std::string id = tables != nullptr ? host_id(*tables) : std::string();
    const Policy& own = keeper_.config().policy;
    if (!id.empty() || !own.redis)
        policy_->follow({own.redis, own.fleet.name, id, machine_name()});
}

// This host's own file alone says which.
void Daemon::follow_feeds() {
    const ConfigFile& own = keeper_.config();
    if (own.text == fed_by_)
        return;
    fed_by_ = own.text;
    if (const auto feeds = feeds_of(own.text, own.source))
        ban_feeds_->follow(*feeds);
    else
        log_error("feeds", feeds.error());
}

void Daemon::take_policy() {
    const auto offer = policy_->take_offer();
    if (!offer)
        return;
    const Status taken = keeper_.take_fleet_version(*offer);
    if (taken)
        cut_meter_.restart();
    policy_->answered(taken);
}

// Tried again at each tick, as another program may write the tables.
void Daemon::take_rl() {
    rl_->take_news();
    rl_->follow(rl_member(keeper_.config().policy, keeper_.wanted_policy()));
    const RlStanding standing = rl_->standing();
    if (standing.is_heard)
        (void)keeper_.take_rl(standing.services);
}

// What the others hear of it. Reading all counters takes its time, so it is done while somebody may
// compare.
void Daemon::report_policy() {
    const PolicyStanding standing = policy_->standing();
    fleet_->report_refusal(standing.refused, standing.refusal);
    const Tables* tables = keeper_.tables();
    if (standing.canary == 0 || tables == nullptr) {
        cut_meter_.restart();
        fleet_->report_cut(std::nullopt);
        return;
    }
    fleet_->report_cut(cut_meter_.measure(*tables, events_->heavy(), steady_clock::now()));
}

void Daemon::warn_of_next_start() const {
    const Policy& policy = keeper_.config().policy;
    const Surroundings &before = first_.surroundings, &now = policy.surroundings;
    const auto tell_unless = [](bool same, const char* key) {
        if (!same)
            log(LogLevel::warning, std::string(key) + " takes effect at the next start of sluiced");
    };
    tell_unless(now.control_group == before.control_group, "[control] group");
    tell_unless(now.metrics_listen == before.metrics_listen, "[metrics] listen");
    tell_unless(now.events_file == before.events_file, "[events] file");
    tell_unless(policy.events_per_second == first_.events_per_second, "[events] rate");
    tell_unless(policy.tune == first_.tune, "[tune]");
}

void Daemon::take_signals() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP)
            reload();
        else
            stopping_ = true;
    }
}

int Daemon::run() {
    (void)::sd_notify(0, "READY=1");
    std::vector<pollfd> polls;
    while (!stopping_) {
        polls = {{signals_.get(), POLLIN, 0},
                 {timer_.get(), POLLIN, 0},
                 {policy_->offers(), POLLIN, 0},
                 {rl_->news(), POLLIN, 0}};
        const int events = events_->follow(keeper_.tables(), keeper_.gate_number());
        if (events >= 0)
            polls.push_back({events, POLLIN, 0});
        const size_t own = polls.size();
        server_->add_polls(polls);
        if (::poll(polls.data(), polls.size(), server_->has_requests() ? 0 : -1) < 0)
            continue;
        if ((polls[0].revents & POLLIN) != 0)
            take_signals();
        if ((polls[1].revents & POLLIN) != 0) {
            uint64_t ticks = 0;
            (void)!::read(timer_.get(), &ticks, sizeof(ticks));
            events_->flush();  // of the gate that a tick may find gone
            keeper_.tick();
            follow_policy();
            take_rl();
            follow_feeds();
            report_policy();
            if (server_->look_after_name())
                log(LogLevel::warning, "somebody removed " + FLAGS_socket + "; it is there again");
            (void)::sd_notify(0, "WATCHDOG=1");
        }
        if ((polls[2].revents & POLLIN) != 0)
            take_policy();
        if ((polls[3].revents & POLLIN) != 0)
            take_rl();
        if (own > 4 && (polls[4].revents & POLLIN) != 0)
            events_->take();
        for (size_t i = own; i < polls.size(); ++i)
            server_->handle(polls[i]);
        server_->answer_next();
    }
    (void)::sd_notify(0, "STOPPING=1");
    const Status stopped = keeper_.stop(FLAGS_detach_on_exit);
    return stopped ? 0 : fail(stopped.error());
}

}  // namespace

}  // namespace sluice

int main(int count, char** arguments) {
    gflags::SetUsageMessage(sluice::kUsage);
    gflags::SetVersionString(SLUICE_VERSION);
    GFLAGS_NAMESPACE::gflags_exitfunc = [](int status) {
        std::exit(status == 1 ? 2 : status);
    };  // usage
    gflags::ParseCommandLineNonHelpFlags(&count, &arguments, true);
    // Its own help lists the flags of the library as well, of which there are more.
    if (std::string help; gflags::GetCommandLineOption("help", &help) && help == "true") {
        (void)std::puts(gflags::ProgramUsage());
        return 0;
    }
    gflags::HandleCommandLineHelpFlags();
    if (count > 1) {
        sluice::log(sluice::LogLevel::error, "unexpected argument \"" + std::string(arguments[1]) +
                                                 "\"; see: sluiced --help");
        return 2;
    }
    if (FLAGS_check)
        return sluice::check();
    auto daemon = sluice::Daemon::start();
    return daemon ? (*daemon)->run() : sluice::fail(daemon.error());
}
