// What of a configuration the Keeper puts in force: its own file's, the fleet's, what somebody
// applied by hand, with the schedules of it that are due, and the overrides over them.
#include <algorithm>
#include <utility>

#include "base/clocks.h"
#include "base/log.h"
#include "daemon/keeper.h"
#include "fleet/policy_file.h"
#include "fleet/rl_sync.h"
#include "gate/policy_store.h"
#include "gate/switches.h"
#include "observe/audit.h"
#include "operate/apply_policy.h"
#include "operate/config_file.h"
#include "operate/gate_access.h"
#include "operate/scheduled_config.h"

namespace sluice {

namespace {

using std::chrono::milliseconds, std::chrono::steady_clock;

// What is in the way of a schedule, such as tables that are full, can be gone a moment later.
constexpr std::chrono::seconds kTurnRetry{5};

// With the fleet's policy in place of its own, where it has one for this fleet, and as its
// schedules want it at that instant.
Result<ConfigFile> with_fleet(const ConfigFile& config, const std::optional<FleetVersion>& fleet,
                              Instant at) {
    const Policy& own = config.policy;
    if (!fleet || !own.redis || own.fleet.name != fleet->fleet)
        return with_schedules(config, at);
    auto shared = with_fleet_policy(config, *fleet);
    return shared ? with_schedules(*std::move(shared), at) : shared;
}

void log_left_out(const std::vector<std::string>& overrides) {
    for (const std::string& why : overrides)
        log(LogLevel::error, "left out, as it does not fit the policy: " + why);
}

// The operator's word about a rule goes with the rule.
void log_gone(const std::vector<SwitchEntry>& before, const std::vector<SwitchEntry>& now) {
    for (const SwitchEntry& entry : before)
        if (std::ranges::find(now, entry.id, &SwitchEntry::id) == now.end())
            log(LogLevel::warning, entry.id + " is not in this policy: the operator's override (" +
                                       entry.now + ") is gone");
}

// Whoever applied it may still take it back; until then nothing else can be put in force.
bool policy_waits(const Tables& tables) {
    return std::ranges::any_of(list_switches(tables), [](const SwitchEntry& entry) {
        return entry.id == "policy" && entry.waits_for_confirmation;
    });
}

}  // namespace

// The limits of rl: lie between the policy and the overrides; `rl` is what became of them.
Result<ConfigFile> Keeper::with_all(const ConfigFile& config,
                                    const std::vector<PolicyOverride>& overrides, Instant at,
                                    RlLaid& rl) const {
    const auto shared = with_fleet(config, fleet_, at);
    if (!shared)
        return shared;
    rl = with_rl_limits(*shared, rl_, overrides);
    return with_overrides(rl.config, overrides);
}

// `prepare` is called before, once nothing is in the way.
Status Keeper::put_in_force(const ConfigFile& config, const std::function<void()>& prepare) {
    // The same text again would only count up the version.
    const auto current = tables_ ? current_policy(*tables_) : failed("there is no gate");
    if (!tables_ || (current && current->text == config.text)) {
        if (prepare)
            prepare();
        return {};
    }
    auto gate = open_to_write(patience_);
    if (!gate)
        return gate.error();
    if (const Status free = may_apply_policy(gate->tables); !free)
        return free;
    if (prepare)
        prepare();
    const uint64_t before = current_policy_version(*tables_);
    const auto overrides = list_overrides(gate->tables);
    if (const Status written =
            AuditLog(options_.state_dir)
                .write(self_, {"policy", config.source, "version " + std::to_string(before),
                               "version " + std::to_string(tables_->settings().next_version), ""});
        !written)
        log_error("a policy is not in the audit log", written.error());
    const auto turns = schedule_turns(current ? current->policy : Policy{}, config.policy);
    audit(turns);
    const auto version = apply_policy(gate->tables, config, {}, self_);
    if (!version)
        return version.error();
    seen_policy_ = *version;
    log(LogLevel::info, "in force as version " + std::to_string(*version) + ": " + config.source);
    for (const std::string& remark : remarks_on(gate->tables, config.policy))
        log(LogLevel::warning, remark);
    log_gone(overrides, list_overrides(gate->tables));
    for (const ScheduleTurn& turn : turns)
        log(LogLevel::info, turn.to_string());
    return {};
}

void Keeper::audit(const std::vector<ScheduleTurn>& turns) const {
    for (const ScheduleTurn& turn : turns)
        if (const Status written = AuditLog(options_.state_dir).write(turn.who, turn.entry);
            !written)
            log_error("a schedule is not in the audit log", written.error());
}

void Keeper::want(ConfigFile config, Instant at) {
    wanted_ = std::move(config);
    wanted_at_ = at;
}

// --- the fleet's policy --------------------------------------------------------------------------

// What it had before: Redis may not answer, and hosts are to be alike.
void Keeper::recall_fleet_version() {
    if (auto kept = OverrideFile(options_.state_dir).load())
        overrides_ = kept_overrides_ = *std::move(kept);
    else
        lose("the overrides of before", kept.error());
    (void)drop_ended(overrides_, boot_clock_ms());
    if (config_.policy.redis)
        fleet_ = PolicyFile(options_.state_dir).load(config_.policy.fleet.name);
    const Instant now = wall_now();
    auto shared = with_fleet(config_, fleet_, now);
    if (!shared && fleet_) {
        log_error("the fleet's policy of before is not in force", shared.error());
        fleet_.reset();
        shared = with_schedules(config_, now);
    }
    if (!shared) {
        log_error("schedules are not in force", shared.error());
        shared = config_;
    }
    recall_rl(shared->policy);
    RlLaid rl = with_rl_limits(*shared, rl_, overrides_);
    std::vector<std::string> left_out;
    auto wanted = with_fitting_overrides(rl.config, overrides_, left_out);
    log_left_out(left_out);
    if (!wanted) {
        log_error("the overrides of before are not in force", wanted.error());
        overrides_.clear();
        wanted = rl.config;
    }
    want(*std::move(wanted), now);
    took_rl(std::move(rl));
}

Status Keeper::take_fleet_version(const FleetVersion& version) {
    auto overrides = overrides_;
    std::erase_if(overrides, [](const PolicyOverride& entry) { return entry.by_fleet; });
    overrides.insert(overrides.end(), version.overrides.begin(), version.overrides.end());
    (void)drop_ended(overrides, boot_clock_ms());
    const Instant now = wall_now();
    const auto shared = with_fleet(config_, version, now);
    if (!shared)
        return shared.error();
    // A policy is not to wait for what was said of another one.
    RlLaid rl = with_rl_limits(*shared, rl_, overrides);
    std::vector<std::string> left_out;
    auto wanted = with_fitting_overrides(rl.config, overrides, left_out);
    if (!wanted)
        return wanted.error();
    if (const Status put = put_in_force(*wanted); !put)
        return put;
    log_left_out(left_out);
    fleet_ = version;
    applied_.reset();
    overrides_ = std::move(overrides);
    want(*std::move(wanted), now);
    took_rl(std::move(rl));
    return {};
}

// On disk first: whoever was told that one holds, or is over, finds it so after a crash.
Status Keeper::take_overrides(std::vector<PolicyOverride> overrides) {
    RlLaid rl;
    const Instant now = wall_now();
    auto wanted = with_all(applied_ ? *applied_ : config_, overrides, now, rl);
    if (!wanted)
        return wanted.error();
    if (const Status put = put_in_force(*wanted, [&] { save_overrides(overrides); }); !put) {
        save_overrides(overrides_);
        return put;
    }
    overrides_ = std::move(overrides);
    want(*std::move(wanted), now);
    took_rl(std::move(rl));
    return {};
}

// A disk that can't take them stops no operator: it is tried again at each tick.
void Keeper::save_overrides(const std::vector<PolicyOverride>& overrides) {
    // Somebody may have removed it.
    const OverrideFile file(options_.state_dir);
    const bool is_kept = kept_overrides_ == overrides && (overrides.empty() || file.exists());
    if (is_kept && override_error_.empty())
        return;
    const Status saved = is_kept ? Status() : file.save(overrides);
    if (saved)
        kept_overrides_ = overrides;
    else if (override_error_.empty())
        log_error("overrides would not outlive a restart", saved.error());
    override_error_ = saved ? std::string() : saved.error().message;
    note_unsaved();
}

Status Keeper::override_policy(PolicyOverride entry, std::chrono::nanoseconds lasts) {
    entry.until_ms = boot_clock_ms() +
                     static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(lasts).count());
    auto overrides = overrides_;
    put_override(overrides, std::move(entry));
    return take_overrides(std::move(overrides));
}

Status Keeper::end_override(const std::string& service) {
    auto overrides = overrides_;
    (void)drop_override(overrides, service, false);
    return take_overrides(std::move(overrides));
}

void Keeper::end_overrides_in_time() {
    auto overrides = overrides_;
    if (!drop_ended(overrides, boot_clock_ms()))
        return;
    const size_t ended = overrides_.size() - overrides.size();
    const Status done = take_overrides(std::move(overrides));
    std::string why = done || done.error().busy ? std::string() : done.error().message;
    if (done)
        log(LogLevel::info, "overrides that are over: " + std::to_string(ended));
    else if (!why.empty() && why != still_there_)
        log_error("an override is over, and still in force", done.error());
    still_there_ = std::move(why);
}

// --- another limiter's policies ------------------------------------------------------------------

// As they were when this host last heard of them: Redis may not answer, and a restart is no reason
// to do without.
void Keeper::recall_rl(const Policy& in_force) {
    auto kept = kept_rl_services(rl_member(config_.policy, in_force), options_.state_dir);
    if (kept)
        rl_ = *std::move(kept);
    else
        lose("the limits of rl:", kept.error());
}

Status Keeper::take_rl(const std::vector<RlService>& services) {
    const bool is_same =
        std::ranges::equal(services, rl_, [](const RlService& now, const RlService& before) {
            return now.service == before.service && now.ceiling == before.ceiling;
        });
    if (is_same)
        return {};
    auto before = std::exchange(rl_, services);
    RlLaid rl;
    const Instant now = wall_now();
    auto wanted = with_all(applied_ ? *applied_ : config_, overrides_, now, rl);
    const Status put =
        wanted ? put_in_force(*wanted, [&] { audit_rl(before, rl); }) : wanted.error();
    const std::string error = put || put.error().busy ? std::string() : put.error().message;
    if (!error.empty() && error != rl_error_)
        log_error("the limits of rl: stay as they were", put.error());
    rl_error_ = error;
    if (!put) {
        rl_ = std::move(before);
        return put;
    }
    want(*std::move(wanted), now);
    took_rl(std::move(rl));
    return {};
}

void Keeper::took_rl(RlLaid rl) {
    if (rl.left_out != rl_left_out_)
        for (const std::string& why : rl.left_out)
            log(LogLevel::error, "limits of rl: do not fit the policy: " + why);
    rl_in_force_ = std::move(rl.in_force);
    rl_left_out_ = std::move(rl.left_out);
}

// Of each service that has other numbers for it.
void Keeper::audit_rl(const std::vector<RlService>& before, const RlLaid& rl) const {
    const Operator bridge{std::string(kRlList), {}};
    const auto has = [](const std::vector<RuleId>& rules, const std::string& service) {
        return std::ranges::find(rules, service, &RuleId::service) != rules.end();
    };
    const auto limits_of = [](const std::vector<RlService>& services, const std::string& name) {
        const auto found = std::ranges::find(services, name, &RlService::service);
        return found == services.end() ? RlService{} : *found;
    };
    for (const Service& service : wanted_.policy.services) {
        const std::string& name = service.name;
        const RlService old = limits_of(before, name), now = limits_of(rl_, name);
        const bool was = has(rl_in_force_, name), is = has(rl.in_force, name);
        if (old.ceiling == now.ceiling || !(was || is))
            continue;
        const AuditEntry entry{"limits", name, format_rl_limits(was ? old : RlService{}),
                               format_rl_limits(is ? now : RlService{}), now.there};
        if (const Status written = AuditLog(options_.state_dir).write(bridge, entry); !written)
            log_error("limits of rl: are not in the audit log", written.error());
    }
}

// --- schedules -----------------------------------------------------------------------------------

// What is due by now and was not when the policy in force was made; the other way round as well,
// also where the clock was set. A policy that somebody may still take back waits for him.
void Keeper::follow_schedules() {
    const Policy& policy = wanted_.policy;
    if (due_schedules(policy, wall_now()) == due_schedules(policy, wanted_at_)) {
        not_on_time_.clear();
        return;
    }
    if (steady_clock::now() < next_turn_ || (tables_ && policy_waits(*tables_)))
        return;
    const Status done = take_overrides(overrides_);
    if (done || done.error().busy)
        return;
    next_turn_ = steady_clock::now() + kTurnRetry;
    if (done.error().message != not_on_time_)
        log_error("what a schedule says is not in force", done.error());
    not_on_time_ = done.error().message;
}

// --- the configuration ---------------------------------------------------------------------------

Status Keeper::reload() {
    next_config_.reset();
    auto config = load_config_file(options_.config);
    Status sound = config ? check_interfaces(*config) : config.error();
    if (sound)
        return take_config(*std::move(config));
    standing_.config_error = sound.error().message;
    return sound;
}

Status Keeper::take_config(ConfigFile config) {
    RlLaid rl;
    const Instant now = wall_now();
    auto wanted = with_all(config, overrides_, now, rl);
    const Status status = wanted ? put_in_force(*wanted) : wanted.error();
    const std::string error = status ? std::string() : status.error().message;
    if (!std::exchange(standing_.config_error, error).empty() && status)
        log(LogLevel::info, "the configuration is good again");
    if (status) {
        applied_.reset();
        const auto before = std::exchange(config_, std::move(config)).policy.interfaces;
        want(*std::move(wanted), now);
        took_rl(std::move(rl));
        update_wanted();
        for (const std::string& interface : before)
            if (standing_.attached.contains(interface) &&
                std::ranges::find(config_.policy.interfaces, interface) ==
                    config_.policy.interfaces.end())
                log(LogLevel::warning, interface +
                                           ": not in the configuration any more, and still "
                                           "attached; to take it off: sluicectl detach " +
                                           interface);
    } else if (status.error().busy || (tables_ && policy_waits(*tables_))) {
        next_config_ = std::move(config);
    }
    return status;
}

void Keeper::take_next_config() {
    if (!next_config_ || (tables_ && policy_waits(*tables_)))
        return;
    const Status taken = take_config(*std::exchange(next_config_, std::nullopt));
    if (!taken && !taken.error().busy)
        log_error("the gate goes on with its old policy", taken.error());
}

// Somebody applied another file: it holds until the next reload, beneath the overrides.
void Keeper::take_applied() {
    if (!tables_ || fleet_ || seen_policy_ == current_policy_version(*tables_) ||
        policy_waits(*tables_))
        return;
    auto current = current_policy(*tables_);
    if (current && current->text != wanted_.text) {
        ConfigFile applied{std::move(current->policy), std::move(current->text),
                           std::move(current->source)};
        const Instant now = wall_now();
        const auto scheduled = with_schedules(applied, now);
        RlLaid rl = with_rl_limits(scheduled ? *scheduled : applied, rl_, overrides_);
        std::vector<std::string> left_out;
        auto wanted = scheduled ? with_fitting_overrides(rl.config, overrides_, left_out)
                                : Result<ConfigFile>(scheduled.error());
        const Status put = wanted ? put_in_force(*wanted) : wanted.error();
        if (!put && put.error().busy)
            return;
        log_left_out(left_out);
        if (!put) {
            log_error("overrides do not lie over " + applied.source, put.error());
        } else {
            want(*std::move(wanted), now);
            took_rl(std::move(rl));
        }
        applied_ = std::move(applied);
    }
    seen_policy_ = current_policy_version(*tables_);
}

}  // namespace sluice
