#include "daemon/keeper.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "operate/apply_policy.h"
#include "operate/attach_gate.h"
#include "operate/config_file.h"
#include "operate/gate_access.h"
#include "operate/protected_sources.h"

namespace sluice {

namespace {

using std::chrono::milliseconds, std::chrono::seconds, std::chrono::steady_clock;

// Another writer holds the lock for as long as a large import takes.
constexpr milliseconds kPatience{10'000};
// The disk is written again after so many times what the last write took: at most a twentieth of a
// core, however many bans there are.
constexpr int kSavePause = 20;
constexpr seconds kLeastPause{1};

void log_error(const std::string& what, const Error& error) {
    log(LogLevel::error,
        what + ": " + error.message + (error.hint.empty() ? "" : "; " + error.hint));
}

}  // namespace

Result<Keeper> Keeper::start(const KeeperOptions& options) {
    Keeper keeper(options);
    if (const Status ready = keeper.adopt_or_make(); !ready)
        return ready.error();
    return keeper;
}

Status Keeper::adopt_or_make() {
    const auto config = load_config_file(options_.config);
    if (!config)
        return config.error();
    standing_.wanted = {config->policy.interfaces.begin(), config->policy.interfaces.end()};
    if (standing_.wanted.empty())
        return failed(options_.config + ": no interface to protect is named",
                      "add a line such as: interfaces = [\"eth0\"]");
    if (auto tables = open_gate(options_.pin_dir)) {
        adopt(*std::move(tables));
        log(LogLevel::info, "adopted the gate in " + options_.pin_dir);
        if (const Status applied = reload(); !applied)
            log_error("the gate goes on with its old policy", applied.error());
    } else if (tables.error().code != ErrorCode::unreachable) {
        return tables.error();
    }
    // One interface that is not there yet is no reason to leave the others alone.
    const Status attached = attach_missing();
    if (!attached && standing_.attached.empty())
        return attached;
    if (!attached)
        log_error("not attached everywhere", attached.error());
    return {};
}

void Keeper::adopt(Tables tables) {
    tables_ = std::move(tables);
    gate_number_++;
    saved_changes_ = ~uint64_t{0};
}

// Somebody may have detached it all, or made another one in its place.
void Keeper::look_at_gate() {
    if (!tables_)
        return;
    auto now = open_gate(options_.pin_dir);
    if (!now) {
        tables_.reset();
        gate_number_++;
    } else if (std::memcmp(&now->seed(), &tables_->seed(), sizeof(sluice_seed)) != 0) {
        adopt(*std::move(now));
    }
}

Status Keeper::reload() {
    const auto config = load_config_file(options_.config);
    Status status = config ? Status{} : config.error();
    if (status && tables_) {
        const auto current = current_policy(*tables_);
        // The same text again would only count up the version.
        if (!current || current->text != config->text) {
            auto gate = open_gate_to_write(options_.pin_dir, kPatience);
            const auto version = gate ? apply_policy(gate->tables, *config, {}, self_)
                                      : Result<uint64_t>(gate.error());
            if (version)
                log(LogLevel::info,
                    options_.config + " is in force as version " + std::to_string(*version));
            else
                status = version.error();
        }
    }
    standing_.config_error = status ? std::string() : status.error().message;
    if (status)
        standing_.wanted = {config->policy.interfaces.begin(), config->policy.interfaces.end()};
    return status;
}

// The first one of a gate that has to be made brings back what the disk remembers.
Status Keeper::attach_missing() {
    std::set<std::string> present;
    if (tables_) {
        const auto all = attachments(*tables_);
        if (!all)
            return all.error();
        for (const Attachment& attachment : *all)
            if (!attachment.lost)
                present.insert(attachment.interface);
    }
    Status status;
    for (const std::string& interface : standing_.wanted) {
        if (present.contains(interface))
            continue;
        const bool again = standing_.attached.contains(interface);
        AttachOptions attach;
        attach.interface = interface;
        attach.pin_dir = options_.pin_dir;
        if (!tables_)
            attach.config = options_.config;
        attach.timeout = kPatience;
        attach.who = self_;
        attach.before_attach = [this](Tables& tables) -> Status {
            const auto saved = state_.load();
            if (!saved) {
                // Never fatal: a host without its bans is better off than one without a gate.
                log_error("the bans of before are lost", saved.error());
                return {};
            }
            const auto held = restore_state(tables, *saved);
            if (held && *held != 0)
                log(LogLevel::info, std::to_string(*held) + " bans and allows are back from disk");
            if (!held)
                log_error("not all bans are back", state_.set_aside(held.error()));
            return {};
        };
        const auto report = attach_gate(attach);
        if (!report) {
            status = report.error().with_context(interface);
            continue;
        }
        for (const std::string& warning : report->warnings)
            log(LogLevel::warning, interface + ": " + warning);
        log(again ? LogLevel::warning : LogLevel::info,
            interface + (again ? ": the gate was gone, and is back" : ": attached"));
        if (again)
            standing_.reattached++;
        if (!tables_) {
            auto tables = open_gate(options_.pin_dir);
            if (!tables)
                return tables.error();
            adopt(*std::move(tables));
        }
        present.insert(interface);
    }
    standing_.attached.clear();
    std::set_intersection(standing_.wanted.begin(), standing_.wanted.end(), present.begin(),
                          present.end(),
                          std::inserter(standing_.attached, standing_.attached.end()));
    return status;
}

void Keeper::tick() {
    look_at_gate();
    const bool complete = standing_.attached == standing_.wanted;
    if (const Status attached = attach_missing(); !attached && complete)
        log_error("not attached everywhere", attached.error());
    save_state();
}

void Keeper::save_state() {
    if (!tables_ || tables_->settings().changes == saved_changes_)
        return;
    const auto begun = steady_clock::now();
    if (begun - saved_ < std::max<steady_clock::duration>(kSavePause * save_took_, kLeastPause))
        return;
    const uint64_t changes = tables_->settings().changes;
    const Status saved = state_.save(*tables_);
    if (!saved && standing_.state_error.empty())
        log_error("bans would not outlive a reboot", saved.error());
    standing_.state_error = saved ? std::string() : saved.error().message;
    saved_ = steady_clock::now();
    save_took_ = saved_ - begun;
    if (saved)
        saved_changes_ = changes;
}

Status Keeper::stop(bool detach) {
    Status status;
    if (tables_)
        status = state_.save(*tables_);
    if (!detach)
        return status;
    tables_.reset();
    for (const std::string& interface : standing_.attached)
        if (const auto gone = detach_gate(options_.pin_dir, interface, kPatience); !gone)
            status = gone.error();
    return status;
}

}  // namespace sluice
