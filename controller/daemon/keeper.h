// The keeper: makes what is enforced follow what is wanted, and keeps it so.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/state_file.h"
#include "fleet/fleet_policy.h"
#include "fleet/rl_config.h"
#include "gate/attachment.h"
#include "gate/rule_counter.h"
#include "gate/tables.h"
#include "observe/schedule_audit.h"
#include "operate/attach_gate.h"
#include "operate/config_file.h"
#include "operate/gate_access.h"
#include "operate/operator.h"
#include "policy/schedule.h"

namespace sluice {

struct KeeperOptions {
    std::string config;
    std::string pin_dir;
    std::string state_dir;
};

// The configuration to begin with: the file, or, where that is wrong, the last one that was taken
// from it, which is kept with the state: better an old policy after a boot than no gate.
struct FirstConfig {
    ConfigFile config;
    std::optional<Error> error;  // of the file
};
Result<FirstConfig> first_config(const KeeperOptions& options);

// Refuses one that names no interface: a file that was cut off would take all limits away.
Status check_interfaces(const ConfigFile& config);

// How things stand, for `status`, metrics and the log.
struct KeeperStanding {
    std::set<std::string> wanted;    // interfaces of the configuration that nobody took off
    std::set<std::string> attached;  // of them
    std::string config_error;        // of the last reload; empty where it was taken
    std::string state_error;         // of the last save of bans, allows and switches
    std::string override_error;      // of the last save of other numbers for a time
    std::string state_lost;          // why what the disk remembered is not in force
    uint64_t reattached = 0;         // times that an attachment was found lost and put back
};

class Keeper {
  public:
    // Adopts the gate that is there, or makes one from the configuration and what the disk
    // remembers: bans are in the tables before the first interface is.
    static Result<Keeper> start(const KeeperOptions& options, FirstConfig first);

    // Re-reads the configuration; on an error all stays as it was. Where another program is writing
    // the tables, that is the error, and it is tried again at each tick.
    Status reload();
    // The fleet's policy in place of the configuration's own; the last good one stays where it
    // can't be. Errors as those of reload().
    Status take_fleet_version(const FleetVersion& version);
    // Other numbers for a service, from now on for so long, or no more; errors as those of
    // reload().
    Status override_policy(PolicyOverride entry, std::chrono::nanoseconds lasts);
    Status end_override(const std::string& service);
    [[nodiscard]] const std::vector<PolicyOverride>& overrides() const { return overrides_; }
    // What another limiter's policies mean, in place of what they meant before; errors as those of
    // reload(). Where it is the same nothing is done.
    Status take_rl(const std::vector<RlService>& services);
    // Of them what is in force, and what does not lie over the policy.
    [[nodiscard]] const std::vector<RuleId>& rl_in_force() const { return rl_in_force_; }
    [[nodiscard]] const std::vector<std::string>& rl_left_out() const { return rl_left_out_; }
    // What the gate is to have.
    [[nodiscard]] const Policy& wanted_policy() const { return wanted_.policy; }
    // Once a second: attachments as wanted, what a killed writer left mended, state on disk.
    void tick();
    // Of a gate that an operator attaches: it begins with this configuration and what the disk
    // remembers, as one that the daemon attaches.
    void prepare(AttachOptions& attach);
    // An operator took the gate off: not put back before somebody attaches it, or another start.
    // Whether this is an interface to keep at all.
    bool leave_alone(const std::string& interface);
    // What was changed so far, on disk: waits for it.
    Status save_now();
    // Before the end: the state on disk, and, where asked for, the gate off every interface.
    Status stop(bool detach);

    // The gate; gone while it is detached from everything.
    [[nodiscard]] const Tables* tables() const { return tables_.get(); }
    // The same, where it is still what is pinned.
    [[nodiscard]] std::shared_ptr<Tables> kept_gate() const;
    [[nodiscard]] RuleCounter& counter() { return counter_; }
    // Another number once it is another gate.
    [[nodiscard]] uint64_t gate_number() const { return gate_number_; }
    [[nodiscard]] const KeeperStanding& standing() const { return standing_; }
    // The last file that was taken: this host's own, whatever the fleet's policy is.
    [[nodiscard]] const ConfigFile& config() const { return config_; }

  private:
    struct Save {
        Status status;
        uint64_t changes = 0;  // of the tables, when it began
        std::string config;
        std::chrono::steady_clock::time_point begun{}, ended{};
    };

    Keeper(KeeperOptions options, ConfigFile config)
        : options_(std::move(options)),
          state_(options_.state_dir),
          config_(std::move(config)),
          wanted_(config_) {}
    Status adopt_or_make();
    Result<Tables> upgrade();
    void adopt(Tables tables);
    void take(Tables tables);
    [[nodiscard]] bool is_ours(const Result<Tables>& tables) const;
    [[nodiscard]] Result<WritableGate> open_to_write(std::chrono::milliseconds patience) const;
    void look_at_gate();
    void pin_missing();
    Status take_config(ConfigFile config);
    void take_next_config();
    void take_applied();
    void lose(const std::string& what, const Error& why);
    void recall_fleet_version();
    void recall_rl(const Policy& in_force);
    [[nodiscard]] Result<ConfigFile> with_all(const ConfigFile& config,
                                              const std::vector<PolicyOverride>& overrides,
                                              Instant at, RlLaid& rl) const;
    void took_rl(RlLaid rl);
    void audit_rl(const std::vector<RlService>& before, const RlLaid& rl) const;
    Status take_overrides(std::vector<PolicyOverride> overrides);
    void want(ConfigFile config, Instant at);
    void follow_schedules();
    void audit(const std::vector<ScheduleTurn>& turns) const;
    void save_overrides(const std::vector<PolicyOverride>& overrides);
    void end_overrides_in_time();
    Status put_in_force(const ConfigFile& config, const std::function<void()>& prepare = {});
    void bring_back();
    void restore(Tables& tables, bool switches_only);
    void update_wanted();
    Result<std::set<std::string>> present_interfaces();
    void mend();
    void sweep();
    Status attach_missing();
    Status attach_to(const std::string& interface);
    [[nodiscard]] bool is_unsaved() const;
    void note_unsaved();
    void begin_save();
    Status finish_save();
    void save_in_time();

    KeeperOptions options_;
    StateFile state_;
    ConfigFile config_;
    std::optional<FleetVersion> fleet_;           // that takes the place of a part of it
    std::vector<PolicyOverride> overrides_;       // laid over both
    std::vector<PolicyOverride> kept_overrides_;  // as they are on disk
    std::vector<RlService> rl_;                   // laid over both, below the overrides
    std::vector<RuleId> rl_in_force_;
    std::vector<std::string> rl_left_out_;
    ConfigFile wanted_;                      // what comes of it all: the gate is to have it
    Instant wanted_at_{};                    // with the schedules that are due then
    std::string kept_config_;                // its text, as it is on disk
    std::optional<ConfigFile> applied_;      // by hand, in the place of it
    uint64_t seen_policy_ = 0;               // version of what was put in force, or found, last
    std::optional<ConfigFile> next_config_;  // to be taken once nobody else writes
    std::chrono::milliseconds patience_{};   // with other writers; none once clients wait
    std::set<std::string> left_alone_;
    std::shared_ptr<Tables> tables_;
    std::optional<uint64_t> pin_;  // gate_pin() of these tables
    uint64_t gate_number_ = 0;
    RuleCounter counter_;
    KeeperStanding standing_;
    std::chrono::seconds attach_pause_{0};  // while there is no gate, and none can be made
    std::chrono::steady_clock::time_point next_attach_{};
    std::string missing_;      // why it is not attached everywhere, as it was logged
    std::string still_there_;  // why an override that is over is in force, likewise
    std::string rl_error_;     // why limits of rl: are not in force, likewise
    std::string not_on_time_;  // why what schedules say is not, likewise
    std::chrono::steady_clock::time_point next_turn_{};  // not tried again before
    std::string save_error_, override_error_;  // of the last saves; empty where they were good
    Operator self_{"sluiced", {}};
    std::future<Save> saving_;  // valid from begin_save() to finish_save()
    Save last_save_;
    uint64_t saved_changes_ = 0;
};

}  // namespace sluice
