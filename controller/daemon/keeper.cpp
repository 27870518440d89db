#include "daemon/keeper.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "fleet/policy_file.h"
#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "operate/config_file.h"
#include "operate/gate_access.h"
#include "operate/upgrade_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds, std::chrono::steady_clock;

// Another writer holds the lock for as long as a large import takes.
constexpr milliseconds kPatience{10'000};
// The disk is written again after so many times what the last write took, however many bans there
// are: a fifth of a core at most, and with a few thousand bans at every tick.
constexpr int kSavePause = 4;
constexpr std::chrono::seconds kLongestPause{16};

}  // namespace

Status check_interfaces(const ConfigFile& config) {
    if (!config.policy.interfaces.empty())
        return {};
    return failed(config.source + ": no interface to protect is named",
                  "add a line such as: interfaces = [\"eth0\"]");
}

Result<FirstConfig> first_config(const KeeperOptions& options) {
    auto config = load_config_file(options.config);
    if (config)
        return FirstConfig{*std::move(config), std::nullopt};
    auto last = load_config_file(own_config_path(options.state_dir));
    if (!last)
        return config.error();
    last->source = options.config;
    return FirstConfig{*std::move(last), config.error()};
}

Result<Keeper> Keeper::start(const KeeperOptions& options, FirstConfig first) {
    Keeper keeper(options, std::move(first.config));
    keeper.patience_ = kPatience;
    keeper.recall_fleet_version();
    if (const Status ready = keeper.adopt_or_make(); !ready)
        return ready.error();
    keeper.patience_ = {};
    if (first.error) {
        log(LogLevel::warning, "the last policy that was good is in force");
        log_error("the configuration was not taken", *first.error);
        keeper.standing_.config_error = first.error->message;
    }
    return keeper;
}

Status Keeper::adopt_or_make() {
    update_wanted();
    finish_upgrade(options_.pin_dir);
    auto tables = open_gate(options_.pin_dir);
    if (!tables && tables.error().another_version)
        tables = upgrade();
    if (tables)
        adopt(*std::move(tables));
    else if (tables.error().code != ErrorCode::unreachable)
        return tables.error();
    // One interface that is not there yet is no reason to leave the others alone.
    const Status attached = attach_missing();
    if (!attached && standing_.attached.empty())
        return attached;
    if (!attached)
        log_error("not attached everywhere", attached.error());
    return {};
}

Result<Tables> Keeper::upgrade() {
    const auto upgraded =
        upgrade_gate({.pin_dir = options_.pin_dir,
                      .config = &wanted_,
                      .timeout = kPatience,
                      .who = self_,
                      .restore = [this](Tables& tables, bool listed) { restore(tables, listed); }});
    if (!upgraded)
        return upgraded.error();
    for (const std::string& interface : upgraded->interfaces)
        log(LogLevel::warning, interface + ": this version has taken the place of another");
    log(LogLevel::info,
        "bans and allows that came over with it: " + std::to_string(upgraded->rules));
    return open_gate(options_.pin_dir);
}

bool Keeper::is_ours(const Result<Tables>& tables) const {
    return tables && tables_ &&
           std::memcmp(&tables->seed(), &tables_->seed(), sizeof(sluice_seed)) == 0;
}

void Keeper::take(Tables tables) {
    tables_ = std::make_shared<Tables>(std::move(tables));
    gate_number_++;
    // Looked at before the tables, so that it is no later gate's.
    const auto pin = gate_pin(options_.pin_dir);
    pin_ = is_ours(open_gate(options_.pin_dir)) ? pin : std::nullopt;
    saved_changes_ = ~uint64_t{0};
    seen_policy_ = current_policy_version(*tables_);
}

// Whoever made it: from here on it does what the configuration says, and what the disk remembers.
void Keeper::adopt(Tables tables) {
    take(std::move(tables));
    log(LogLevel::info, "adopted the gate in " + options_.pin_dir);
    if (const Status applied = take_config(config_); !applied)
        log_error("the gate goes on with its old policy", applied.error());
    bring_back();
}

// Somebody may have detached it all, or made one, also in the place of another.
void Keeper::look_at_gate() {
    if (tables_ && pin_ && pin_ == gate_pin(options_.pin_dir)) {
        pin_missing();
        return;
    }
    auto now = open_gate(options_.pin_dir);
    if (is_ours(now) || (!now && !tables_))
        return;
    // The tables that are gone can still be read here, for the last time.
    (void)save_now();
    if (tables_)
        gate_number_++;
    tables_.reset();
    // Whoever is making it is left to finish.
    if (now && lock_gate(options_.pin_dir, {}))
        adopt(*std::move(now));
}

// Without one of them nobody else could open the gate, and it could not be put back either.
void Keeper::pin_missing() {
    const auto lock = lock_gate(options_.pin_dir, {});
    if (!lock || pin_ != gate_pin(options_.pin_dir))
        return;
    const auto missing = tables_->pin_missing();
    if (!missing)
        log_error("a pin of the gate is missing", missing.error());
    else
        for (const std::string& name : *missing)
            log(LogLevel::warning, "the pin " + name + " was removed, and is back");
}

std::shared_ptr<Tables> Keeper::kept_gate() const {
    return pin_ && pin_ == gate_pin(options_.pin_dir) ? tables_ : nullptr;
}

Result<WritableGate> Keeper::open_to_write(milliseconds patience) const {
    return open_gate_to_write(options_.pin_dir, patience, [this] { return kept_gate(); });
}

void Keeper::update_wanted() {
    standing_.wanted.clear();
    for (const std::string& interface : config_.policy.interfaces)
        if (!left_alone_.contains(interface))
            standing_.wanted.insert(interface);
}

bool Keeper::leave_alone(const std::string& interface) {
    left_alone_.insert(interface);
    const bool kept = standing_.wanted.contains(interface);
    update_wanted();
    return kept;
}

// Once in the life of a gate. Until then it knows less than the disk, and is not saved over it.
void Keeper::bring_back() {
    if (!tables_ || tables_->settings().restored != 0)
        return;
    auto gate = open_to_write(patience_);
    if (gate)
        restore(gate->tables, false);
    else if (!gate.error().busy)
        log_error("the bans on disk are not back yet", gate.error());
}

void Keeper::lose(const std::string& what, const Error& why) {
    log_error(what + " are not back", why);
    standing_.state_lost += (standing_.state_lost.empty() ? "" : "; ") + what + ": " + why.message +
                            (why.hint.empty() ? "" : "; " + why.hint);
}

void Keeper::restore(Tables& tables, bool switches_only) {
    // Of a gate that has just gone.
    (void)save_now();
    auto saved = state_.load();
    if (saved && switches_only)
        saved->kept.rules.clear();
    // Never fatal: a host without its bans is better off than one without a gate.
    const auto held = saved ? restore_state(tables, *saved) : saved.error();
    if (!held)
        lose("the bans of before", saved ? state_.set_aside(held.error()) : saved.error());
    else if (*held != 0)
        log(LogLevel::info,
            "bans, allows and graces that are back from disk: " + std::to_string(*held));
    if (held && saved)
        for (const SavedSwitch& entry : saved->switches)
            log(LogLevel::info, "back from disk, as an operator left it: " + entry.id +
                                    " in mode " + std::string(mode_name(entry.mode)));
    tables.settings().restored = 1;
}

Result<std::set<std::string>> Keeper::present_interfaces() {
    std::set<std::string> present;
    if (!tables_)
        return present;
    const auto all = attachments(*tables_);
    if (!all)
        return all.error();
    for (const Attachment& attachment : *all) {
        if (!attachment.lost)
            present.insert(attachment.interface);
        // Somebody put it on again, even if it was lost before anybody looked.
        if (left_alone_.erase(attachment.interface) != 0)
            update_wanted();
    }
    return present;
}

Status Keeper::attach_missing() {
    auto present = present_interfaces();
    if (!present)
        return present.error();
    Status status;
    for (const std::string& interface : standing_.wanted) {
        if (present->contains(interface))
            continue;
        if (const Status attached = attach_to(interface); attached)
            present->insert(interface);
        else
            status = attached.error().with_context(interface);
    }
    standing_.attached.clear();
    std::set_intersection(standing_.wanted.begin(), standing_.wanted.end(), present->begin(),
                          present->end(),
                          std::inserter(standing_.attached, standing_.attached.end()));
    return status;
}

void Keeper::prepare(AttachOptions& attach) {
    // The tables may have gone since they were looked at, and the file may be wrong by now.
    attach.first_config = &wanted_;
    attach.before_attach = [this](Tables& tables) -> Status {
        audit(schedule_turns(Policy{}, wanted_.policy));
        restore(tables, false);
        return {};
    };
}

Status Keeper::attach_to(const std::string& interface) {
    const bool again = standing_.attached.contains(interface);
    AttachOptions attach;
    attach.interface = interface;
    attach.pin_dir = options_.pin_dir;
    attach.timeout = patience_;
    attach.who = self_;
    prepare(attach);
    const auto report = attach_gate(attach);
    if (!report)
        return report.error();
    for (const std::string& warning : report->warnings)
        log(LogLevel::warning, interface + ": " + warning);
    log(again ? LogLevel::warning : LogLevel::info,
        interface + (again ? ": the gate was gone, and is back" : ": attached"));
    if (again)
        standing_.reattached++;
    if (tables_ && !report->new_gate)
        return {};
    auto tables = open_gate(options_.pin_dir);
    if (!tables)
        return tables.error();
    if (report->new_gate)
        take(*std::move(tables));
    else
        adopt(*std::move(tables));
    return {};
}

// A living writer holds the lock, so whoever gets it at once looks at what a dead one left.
void Keeper::mend() {
    if (!tables_ || !is_cut_off(*tables_))
        return;
    const auto gate = open_to_write({});
    if (gate && gate->mended)
        log(LogLevel::warning, "a change that was cut off is mended");
    else if (gate && is_cut_off(gate->tables))
        log(LogLevel::error, "a change was cut off, and there is no room to mend it");
}

// Without changes nobody else does; and a ban that has ended still costs its source's packets a
// longer way.
void Keeper::sweep() {
    if (!tables_)
        return;
    const auto lock = lock_gate(options_.pin_dir, {});
    if (!lock)
        return;
    if (const Status swept = SourceRules(*tables_).sweep_some(); !swept)
        log_error("bans that have ended are not cleared away", swept.error());
}

void Keeper::tick() {
    look_at_gate();
    take_next_config();
    take_applied();
    end_overrides_in_time();
    follow_schedules();
    bring_back();
    mend();
    sweep();
    if (!tables_ && steady_clock::now() < next_attach_) {
        save_in_time();
        return;
    }
    const Status attached = attach_missing();
    // Each try makes all tables, and fills them from disk.
    attach_pause_ = attached || tables_ ? 0s : std::clamp(2 * attach_pause_, 1s, kLongestPause);
    next_attach_ = steady_clock::now() + attach_pause_;
    std::string missing = attached ? std::string() : attached.error().message;
    if (!missing.empty() && missing != missing_)
        log_error("not attached everywhere", attached.error());
    if (missing.empty() && !missing_.empty())
        log(LogLevel::info, "attached everywhere again");
    missing_ = std::move(missing);
    save_in_time();
}

bool Keeper::is_unsaved() const {
    // Somebody may have removed it.
    return tables_ && tables_->settings().restored != 0 &&
           (tables_->settings().changes != saved_changes_ || kept_config_ != config_.text ||
            (last_save_.status && !state_.exists()));
}

// A million bans, or a slow disk, take longer than clients and events can wait. The thread reads
// the tables, which stay for as long as it needs them, and writes the file; all else is done here.
void Keeper::begin_save() {
    const auto save = [tables = std::shared_ptr<const Tables>(tables_), state = state_,
                       changes = tables_->settings().changes, config = config_.text,
                       config_path = own_config_path(options_.state_dir)] {
        const auto begun = steady_clock::now();
        Status status = state.save(*tables);
        if (status)
            status = replace_file(config_path, config);
        return Save{std::move(status), changes, config, begun, steady_clock::now()};
    };
    // Where there can be no more threads, finish_save() does it.
    saving_ = std::async(std::launch::async | std::launch::deferred, save);
}

Status Keeper::finish_save() {
    try {
        last_save_ = saving_.get();
    } catch (const std::exception& error) {  // no memory, for example
        last_save_ = {failed(error.what()), 0, {}, last_save_.begun, steady_clock::now()};
    }
    const Status& saved = last_save_.status;
    if (!saved && save_error_.empty())
        log_error("bans would not outlive a reboot", saved.error());
    save_error_ = saved ? std::string() : saved.error().message;
    note_unsaved();
    // What was changed since it began is still to be saved.
    if (saved) {
        saved_changes_ = last_save_.changes;
        kept_config_ = last_save_.config;
    }
    return saved;
}

void Keeper::note_unsaved() {
    standing_.state_error = save_error_;
    standing_.override_error = override_error_;
}

Status Keeper::save_now() {
    save_overrides(overrides_);
    if (saving_.valid())
        (void)finish_save();
    if (!is_unsaved())
        return {};
    begin_save();
    return finish_save();
}

void Keeper::save_in_time() {
    save_overrides(overrides_);
    if (saving_.valid() && saving_.wait_for(0s) == std::future_status::timeout)
        return;
    if (saving_.valid())
        (void)finish_save();
    const auto took = last_save_.ended - last_save_.begun;
    if (is_unsaved() && steady_clock::now() - last_save_.ended >= kSavePause * took)
        begin_save();
}

Status Keeper::stop(bool detach) {
    Status status = save_now();
    if (!detach)
        return status;
    // Those as well that the configuration has named no more since.
    const auto present = present_interfaces();
    tables_.reset();
    for (const std::string& interface : present ? *present : standing_.attached)
        if (const auto gone = detach_gate(options_.pin_dir, interface, kPatience); !gone)
            status = gone.error();
    return status;
}

}  // namespace sluice
