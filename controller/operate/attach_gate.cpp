#include "operate/attach_gate.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "gate/make_anew.h"
#include "gate/policy_store.h"
#include "gate/program.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "gate/tables.h"
#include "net/interface.h"
#include "operate/apply_policy.h"
#include "operate/config_file.h"
#include "operate/gate_access.h"
#include "operate/protected_sources.h"
#include "operate/scheduled_config.h"
#include "operate/table_needs.h"

namespace sluice {

namespace {

constexpr const char* kMount = "mount it: mount -t bpf bpf /sys/fs/bpf";

Error cannot_make(const std::string& path, int error_number) {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (error_number != ENOENT)
        return cannot_open("make " + path, error_number);
    return from_errno(error_number, "make " + path,
                      is_on_bpffs(parent) || parent.empty() ? "" : kMount);
}

// The pin directory, made where it is missing; what was made for this attach goes unless it is
// kept.
class PinDir {
  public:
    static Result<PinDir> make(const std::string& path) {
        PinDir dir(path);
        dir.made_ = ::mkdir(path.c_str(), 0700) == 0;
        if (!dir.made_ && errno != EEXIST)
            return cannot_make(path, errno);
        if (!is_on_bpffs(path))
            return failed(path + " is not on a BPF file system", kMount);
        if (is_bpffs_root(path))
            return failed(path + " is the root of a BPF file system, which belongs to everybody",
                          "name a directory of its own in it: --pin-dir " + path + "/sluice");
        return dir;
    }
    PinDir(PinDir&& other) noexcept
        : path_(std::exchange(other.path_, {})), made_(other.made_), remove_(other.remove_) {}
    PinDir& operator=(PinDir&&) = delete;
    ~PinDir() {
        if (path_.empty())
            return;
        if (remove_)
            (void)remove_pins(path_);
        else if (made_)
            (void)::rmdir(path_.c_str());
    }
    // From here on there are pins of ours in it.
    void remove_unless_kept() { remove_ = true; }
    void keep() { path_.clear(); }

  private:
    explicit PinDir(std::string path) : path_(std::move(path)) {}
    std::string path_;
    bool made_ = false;
    bool remove_ = false;
};

// Ctrl-C waits while a gate is half made or half removed.
class HoldSignals {
  public:
    HoldSignals() {
        sigset_t held{};
        ::sigemptyset(&held);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
            ::sigaddset(&held, signal);
        ::sigprocmask(SIG_BLOCK, &held, &before_);
    }
    HoldSignals(const HoldSignals&) = delete;
    HoldSignals& operator=(const HoldSignals&) = delete;
    ~HoldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

// Whoever held the lock before may have removed the directory again.
Result<WriterLock> lock_pins(const AttachOptions& options) {
    constexpr int kTries = 3;
    for (int attempt = 1;; ++attempt) {
        auto lock = lock_gate(options.pin_dir, options.timeout);
        if (lock || lock.error().code != ErrorCode::unreachable || attempt == kTries)
            return lock;
        if (::mkdir(options.pin_dir.c_str(), 0700) != 0 && errno != EEXIST)
            return cannot_make(options.pin_dir, errno);
    }
}

Result<Tables> make_tables(const AttachOptions& options, const Policy& policy,
                           AttachReport& report) {
    const auto sizes = affordable_sizes(policy, options.before_tables);
    if (!sizes)
        return sizes.error();
    report.table_bytes = sizes->memory();
    return Tables::create(options.pin_dir, *sizes);
}

Result<Tables> adopt_or_make(const AttachOptions& options, const Policy& policy,
                             AttachReport& report) {
    auto tables = open_gate(options.pin_dir);
    if (!tables && tables.error().code == ErrorCode::unreachable) {
        report.new_gate = true;
        // Left over from an attach or detach that was killed.
        if (const auto removed = remove_pin_files(options.pin_dir); !removed)
            return removed.error();
        return make_tables(options, policy, report);
    }
    if (!tables)
        return tables;
    report.table_bytes = tables->sizes.memory();
    const auto cpus = cpu_count();
    if (!options.config || !cpus)
        return tables;
    for (const std::string& shortfall : shortfalls(tables->sizes, needed_sizes(policy, *cpus)))
        report.warnings.push_back("made for less than this policy asks for: " + shortfall +
                                  "; to change that, " + std::string(kMakeAnew));
    return tables;
}

Status install(Tables& tables, const ConfigFile& config, const AttachOptions& options,
               AttachReport& report) {
    const auto version = apply_policy(tables, config, {}, options.who);
    if (!version)
        return version.error();
    const auto& warnings = config.policy.warnings;
    report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
    const auto& named = config.policy.interfaces;
    if (!named.empty() && std::find(named.begin(), named.end(), options.interface) == named.end())
        report.warnings.push_back(options.interface + " is not among the interfaces of " +
                                  config.source);
    return {};
}

Status put_on_interface(Tables& tables, XdpMode mode, const AttachOptions& options,
                        AttachReport& report) {
    auto attached = attach(tables, {.interface = options.interface,
                                    .mode = options.xdp_mode.value_or(mode),
                                    .confirm = options.confirm});
    if (!attached)
        return attached.error();
    report.attachment = *std::move(attached);
    const auto& warnings = report.attachment.warnings;
    report.warnings.insert(report.warnings.end(), warnings.begin(), warnings.end());
    return {};
}

// Limits first: no packet meets a gate that does not know yet what to do.
Status attach_new_gate(Tables& tables, const ConfigFile& config, const AttachOptions& options,
                       AttachReport& report) {
    if (const Status installed = install(tables, config, options, report); !installed)
        return installed;
    if (options.before_attach)
        if (const Status ready = options.before_attach(tables); !ready)
            return ready;
    return put_on_interface(tables, config.policy.xdp_mode, options, report);
}

// Attached before, or for the first time? One that was not confirmed in time passes everything and
// is in nobody's way.
Result<bool> was_attached(Tables& tables, const AttachOptions& options) {
    const auto all = attachments(tables);
    if (!all)
        return all.error();
    for (const Attachment& attachment : *all) {
        // An interface of another namespace may have the same name.
        if (attachment.interface != options.interface || !attachment.here || attachment.lost)
            continue;
        if (attachment.expired) {
            const Status gone = detach(tables, options.interface);
            return gone ? Result<bool>(false) : gone.error();
        }
        if (options.confirm)
            return failed(options.interface + " is attached already: there is nothing to confirm",
                          "to try a policy: sluicectl policy apply FILE --confirm 60s");
        return true;
    }
    return false;
}

// The interface first: the gate that stands keeps its policy until all else has worked.
Status attach_more(Tables& tables, const ConfigFile& config, const AttachOptions& options,
                   AttachReport& report) {
    const bool wants_policy = options.config || current_policy_version(tables) == 0;
    XdpMode mode = config.policy.xdp_mode;
    if (!wants_policy) {
        const auto policy = current_policy(tables);
        if (!policy)
            return policy.error();
        mode = policy->policy.xdp_mode;
    }
    const auto before = was_attached(tables, options);
    if (!before)
        return before.error();
    if (const Status attached = put_on_interface(tables, mode, options, report); !attached)
        return attached;
    if (!wants_policy)
        return {};
    Status installed = install(tables, config, options, report);
    if (!installed && !*before)
        (void)detach(tables, options.interface);
    return installed;
}

Result<ConfigFile> wanted_config(const AttachOptions& options) {
    if (options.config) {
        auto config = load_config_file(*options.config);
        return config ? with_schedules(*std::move(config), wall_now()) : config;
    }
    return options.first_config != nullptr ? *options.first_config : watching_config();
}

}  // namespace

Result<AttachReport> attach_gate(const AttachOptions& options) {
    const auto config = wanted_config(options);
    if (!config)
        return config.error();
    // Before any memory is taken.
    if (const auto kernel = probe_kernel(); !kernel)
        return kernel.error();
    if (const auto interface = find_interface(options.interface); !interface)
        return interface.error();
    std::optional<WriterLock> lock;  // outlives the removal of a gate that could not be completed
    auto dir = PinDir::make(options.pin_dir);
    if (!dir)
        return dir.error();
    auto locked = lock_pins(options);
    if (!locked)
        return locked.error();
    lock.emplace(*std::move(locked));
    const HoldSignals hold;

    AttachReport report;
    auto tables = adopt_or_make(options, config->policy, report);
    // Tables that could not be opened are not ours to remove.
    if (report.new_gate)
        dir->remove_unless_kept();
    if (!tables)
        return tables.error();
    SourceRules rules(*tables);
    if (const Status guarded = protect_host(*tables, rules, options.who); !guarded)
        return guarded.error().with_context("protected set");
    const Status attached = report.new_gate ? attach_new_gate(*tables, *config, options, report)
                                            : attach_more(*tables, *config, options, report);
    if (!attached)
        return attached.error();
    const auto policy = current_policy(*tables);
    if (!policy)
        return policy.error();
    report.policy_version = policy->version;
    report.policy_source = policy->source;
    dir->keep();
    return report;
}

namespace {

// What an attach or detach that was killed has left; nothing where there is nothing of a gate.
std::optional<DetachReport> clear_remains(const std::string& pin_dir,
                                          std::chrono::milliseconds timeout) {
    const auto lock =
        is_on_bpffs(pin_dir) ? lock_gate(pin_dir, timeout) : Result<WriterLock>(failed("no pins"));
    if (!lock)
        return std::nullopt;
    const auto removed = remove_pin_files(pin_dir);
    if (!removed || *removed == 0)
        return std::nullopt;
    (void)remove_pins(pin_dir);
    DetachReport report;
    report.gate_removed = true;
    report.warnings.push_back("the gate was incomplete: " + std::to_string(*removed) +
                              " pins that were left of it are removed");
    return report;
}

}  // namespace

Result<DetachReport> detach_gate(const std::string& pin_dir, const std::string& interface,
                                 std::chrono::milliseconds timeout) {
    auto gate = open_gate_to_write(pin_dir, timeout);
    if (!gate && gate.error().code == ErrorCode::unreachable)
        if (auto cleared = clear_remains(pin_dir, timeout))
            return *std::move(cleared);
    if (!gate) {
        // Of another version, or incomplete: others advise to detach it, which only works by hand.
        Error error = gate.error();
        if (error.code == ErrorCode::failed && lock_gate(pin_dir, timeout))
            error.hint = "rm -r " + pin_dir +
                         " takes it off every interface where it is alone, with all its bans; "
                         "beside other programs, xdp-loader unload takes it off";
        return error;
    }
    const HoldSignals hold;
    DetachReport report;
    const auto before = attachments(gate->tables);
    if (!before)
        return before.error();
    if (before->empty())
        report.warnings.push_back("the gate was not attached anywhere; only its tables were left");
    else if (const Status gone = detach(gate->tables, interface); !gone)
        return gone.error();

    const auto after = attachments(gate->tables);
    if (!after)
        return after.error();
    for (const Attachment& attachment : *after) {
        report.still_attached.push_back(attachment.interface);
        if (!attachment.acts())
            report.warnings.push_back(why_idle(attachment));
    }
    if (!report.still_attached.empty())
        return report;

    if (const auto counts = SourceRules(gate->tables).counts()) {
        report.bans = counts->bans_wanted;
        report.allows = counts->allows;
    }
    report.overrides = list_overrides(gate->tables).size();
    if (const Status removed = remove_pins(pin_dir); !removed)
        return removed.error();
    report.gate_removed = true;
    return report;
}

}  // namespace sluice
