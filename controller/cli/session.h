// What every command needs: where the gate is, who asks, how long to wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/budget_sync.h"
#include "fleet/feed_sync.h"
#include "fleet/policy_sync.h"
#include "fleet/rl_sync.h"
#include "gate/rule_counter.h"
#include "gate/tables.h"
#include "observe/audit.h"
#include "observe/heavy_sources.h"
#include "operate/attach_gate.h"
#include "operate/gate_access.h"
#include "operate/operator.h"
#include "policy/rule_id.h"
#include "risk/risk_desk.h"

namespace sluice::cli {

// Other numbers for a service for a time, in the daemon alone: it ends them.
struct OverrideDesk {
    std::function<Status(const PolicyOverride&, std::chrono::nanoseconds lasts)> set;
    std::function<Status(const std::string& service)> end;
    // Of this host and of the fleet.
    std::function<std::vector<PolicyOverride>()> list;
    // Why they would not outlive a restart; empty where they would.
    std::function<std::string()> unsaved;

    // On this host alone.
    [[nodiscard]] bool has(const std::string& service) const {
        for (const PolicyOverride& entry : list())
            if (entry.change.service == service && !entry.by_fleet)
                return true;
        return false;
    }
};

// How another limiter's policies are followed, in the daemon alone.
struct RlReport {
    RlStanding standing;
    std::vector<RuleId> in_force;       // limits that are theirs
    std::vector<std::string> left_out;  // of each service why they are not
};

// The options of all commands, as written.
struct GlobalOptions {
    bool json = false;
    std::string pin_dir = "/sys/fs/bpf/sluice";
    std::string socket = "/run/sluice/sluice.sock";
    std::string state_dir = "/var/lib/sluice";
    std::string color = "auto";
    std::string timeout = "5s";
};

struct Session {
    bool json = false;
    bool colors = false;
    std::string pin_dir;
    std::string socket;
    std::string state_dir;
    std::chrono::milliseconds timeout{};
    Operator who;
    // Who was heavy lately, in the daemon alone: where it is there, this is the daemon, and nothing
    // may wait.
    const HeavySources* heavy = nullptr;
    RuleCounter* counter = nullptr;  // likewise
    // How the fleet stands, likewise.
    std::function<FleetStanding()> fleet;
    // The daemon has it open.
    KeptGate kept_gate;
    std::function<std::optional<Result<FleetView>>()> fleet_view;  // as that of BudgetSync
    RedisDrill* drill = nullptr;
    std::function<FeedStanding()> feed;
    RiskDesk* risk = nullptr;
    std::function<PolicyStanding()> fleet_policy;
    std::function<RlReport()> rl;
    OverrideDesk overrides;
    // Makes it compare itself with Redis soon.
    std::function<void()> compare_feed;
    // What a gate begins with where the daemon keeps it.
    std::function<void(AttachOptions&)> prepare_attach;

    static Result<Session> from(const GlobalOptions& options, Operator who);

    [[nodiscard]] Result<std::shared_ptr<Tables>> open() const {
        return open_gate(pin_dir, kept_gate);
    }
    [[nodiscard]] Result<WritableGate> open_to_write() const {
        auto gate = open_gate_to_write(pin_dir, timeout, kept_gate);
        if (gate && gate->mended)
            progress("an earlier change that was cut off is mended");
        return gate;
    }
    // Into the audit log, before it is done. A disk that cannot take it does not stop an operator
    // in an incident, but he is told.
    void record(const AuditEntry& entry, std::vector<std::string>& warnings) const;
    // It took effect: no later failure takes it back.
    void made() const { recorded_.reset(); }
    // It did not: the log says that as well.
    void refused(const Error& error) const;
    // Something that people should know before the command is done.
    void progress(std::string_view text) const;

  private:
    mutable std::optional<AuditEntry> recorded_;  // and nobody knows yet what came of it
};

}  // namespace sluice::cli
