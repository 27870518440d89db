#include "risk/risk_desk.h"

#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "base/clocks.h"
#include "base/quantities.h"
#include "fleet/host_identity.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "gate/source_rules.h"
#include "gate/source_state.h"
#include "operate/ban_guard.h"
#include "operate/gate_access.h"
#include "operate/protected_sources.h"
#include "risk/member_source.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// How late a local score becomes a ban.
constexpr auto kDecide = 250ms;
constexpr auto kTidy = 15s;
// How old lists and counts may be that others ask for.
constexpr auto kPublish = 500ms;
// Who writes to the gate otherwise is done by then; if not, the ban is tried again.
constexpr std::chrono::milliseconds kPatience{200};
// Sampled events that wait to be looked at: those of some seconds.
constexpr size_t kMostSignals = 8'192;
// Questions about sockets in one step: some 2,000 a second, at 5 µs each.
constexpr size_t kMostQuestions = 50;
// Of the fleet's scores, for lists.
constexpr size_t kMostListed = 1'000;
constexpr std::string_view kSource = "risk";  // of bans, and who signs them

Error is_off() {
    return failed("the policy in force has no [risk], so nobody is scored",
                  "add a table [risk] to the configuration");
}

bool is_over_limit(const Event& event) {
    return event.verdict.starts_with("drop_source_") || event.verdict == "drop_jailed";
}

}  // namespace

std::string RiskStanding::stop_reason() const {
    std::string reason = stopped ? stopped->reason : std::string();
    if (fleet && fleet->stopped)
        reason += (reason.empty() ? "in the fleet: " : "; in the fleet: ") + fleet->stopped->reason;
    return reason;
}

RiskDesk::RiskDesk(std::string pin_dir, std::string state_dir, const RedisDrill& drill)
    : pin_dir_(std::move(pin_dir)),
      state_dir_(std::move(state_dir)),
      drill_(drill),
      audit_(state_dir_) {
    if (auto flows = TcpFlows::open())
        flows_ = *std::move(flows);
}

// --- what is in force ----------------------------------------------------------------------------

void RiskDesk::step() {
    if (look_at_gate())
        look_at_policy();
    const auto now = Clock::now();
    take_signals();
    if (tables_ && now >= decide_due_) {
        decide_due_ = now + kDecide;
        decide();
    }
    if (tables_ && fleet_)
        step_fleet();
    if (now >= publish_due_) {
        publish_due_ = now + kPublish;
        verified_ = seen_.verified(boot_clock_ms());
        publish();
    }
    if (now >= tidy_due_) {
        tidy_due_ = now + kTidy;
        seen_.tidy(boot_clock_ms());
        const std::lock_guard guard(mutex_);
        if (judge_)
            judge_->book.tidy(boot_clock_ms());
    }
}

bool RiskDesk::look_at_gate() {
    const auto pin = gate_pin(pin_dir_);
    if (tables_ && pin && pin == pin_)
        return true;
    tables_.reset();
    policy_version_ = 0;
    if (!pin)
        return false;
    auto tables = Tables::open(pin_dir_);
    if (!tables)
        return false;
    tables_ = *std::move(tables);
    pin_ = pin;
    return true;
}

void RiskDesk::look_at_policy() {
    const uint64_t version = current_policy_version(*tables_);
    const std::string host = host_id(*tables_);
    if (version == policy_version_ && host == host_)
        return;
    const auto installed = current_policy(*tables_);
    if (!installed)
        return;  // one that is being changed is read the next time
    policy_version_ = installed->version;
    const Policy& policy = installed->policy;
    limited_.clear();
    for (const Service& service : policy.services)
        if (const auto id = find_service_id(*tables_, service.name);
            id && !service.per_source.empty())
            limited_.push_back(*id);
    const bool same_fleet = policy.redis == redis_ && policy.fleet.name == fleet_name_ &&
                            host == host_ && fleet_ != nullptr;
    if (!same_fleet || !policy.risk)
        fleet_.reset();
    redis_ = policy.redis;
    fleet_name_ = policy.fleet.name;
    host_ = host;
    if (fleet_)
        fleet_->change(*policy.risk);
    // The identity is drawn by the thread that leases budgets.
    else if (policy.risk && redis_ && !host_.empty())
        fleet_ = std::make_unique<FleetRisk>(FleetRisk::Options{.redis = *redis_,
                                                                .fleet = fleet_name_,
                                                                .host = host_,
                                                                .risk = *policy.risk,
                                                                .state_dir = state_dir_},
                                             drill_);
    const std::lock_guard guard(mutex_);
    settings_ = policy.risk;
    if (!settings_)
        judge_.reset();
    else if (judge_)
        judge_->change(*settings_);
    else
        judge_.emplace(*settings_);
}

// --- signals -------------------------------------------------------------------------------------

void RiskDesk::take(const Event& event) {
    const std::lock_guard guard(mutex_);
    if (!settings_)
        return;
    if (signals_.size() >= kMostSignals) {
        ++standing_.lost;
        return;
    }
    signals_.push_back({.source = event.source,
                        .destination = event.destination,
                        .source_port = event.source_port,
                        .destination_port = event.destination_port,
                        .packets = is_over_limit(event) ? event.weight : 0,
                        .is_established = event.protocol == IPPROTO_TCP && !event.connection});
}

// A packet says who it is from; that this is so, only a handshake does.
bool RiskDesk::is_proven(const Signal& signal) {
    return flows_ && flows_->is_established({signal.destination, signal.destination_port},
                                            {signal.source, signal.source_port});
}

void RiskDesk::take_signals() {
    std::vector<Signal> signals;
    double over_limit = 0, most = 0;
    {
        const std::lock_guard guard(mutex_);
        std::swap(signals, signals_);
        if (settings_) {
            over_limit = settings_->over_limit;
            most = settings_->max_step;
        }
    }
    const uint64_t now = boot_clock_ms();
    size_t questions = 0;
    for (const Signal& signal : signals) {
        const Prefix source = risk_source(signal.source);
        seen_.see(source, now);
        const bool counts = over_limit > 0 && signal.packets != 0;
        const bool asks = signal.is_established && (counts || !seen_.is_verified(source, now));
        if (!asks || questions >= kMostQuestions)
            continue;
        ++questions;
        if (!is_proven(signal))
            continue;
        if (seen_.verify(source, now) && fleet_)
            fleet_->verified(source);
        if (!counts)
            continue;
        // How many packets an event stands for is an estimate.
        const double amount = std::min(most, over_limit * static_cast<double>(signal.packets));
        const std::lock_guard guard(mutex_);
        if (judge_)
            judge_->book.add(source, amount, now);
    }
}

Result<SourceScore> RiskDesk::add(const IpAddress& address, double amount) {
    const Prefix source = risk_source(address);
    const uint64_t now = boot_clock_ms();
    const std::lock_guard guard(mutex_);
    if (!judge_)
        return is_off();
    judge_->book.add(source, amount, now);
    return judge_->book.find(source, now).value_or(SourceScore());
}

Result<bool> RiskDesk::clear(const IpAddress& address) {
    const Prefix source = risk_source(address);
    const std::lock_guard guard(mutex_);
    if (!judge_)
        return is_off();
    orders_.push_back({RiskOrder::Kind::clear, source});
    const bool in_fleet = std::ranges::any_of(
        fleet_highest_, [&](const RiskEntry& entry) { return entry.source == source; });
    return judge_->book.clear(source) || in_fleet;
}

Status RiskDesk::release(bool forget) {
    const std::lock_guard guard(mutex_);
    if (!judge_)
        return is_off();
    if (forget) {
        (void)judge_->book.clear_due();
        orders_.push_back({RiskOrder::Kind::forget_due});
    }
    judge_->allowance.release();
    orders_.push_back({RiskOrder::Kind::release});
    return {};
}

// --- bans ----------------------------------------------------------------------------------------

bool RiskDesk::is_seen(const Prefix& source) const {
    if (seen_.is_seen(source, boot_clock_ms()))
        return true;
    // Events are samples; whoever is limited has left a trace in the tables.
    constexpr std::chrono::milliseconds kLately(SeenSources::kSeenMs);
    return std::ranges::any_of(limited_, [&](uint32_t service) {
        return SourceState(*tables_, source.address(), service, 0).passed_within(kLately);
    });
}

bool RiskDesk::is_guarded(const Prefix& source) const {
    SourceRules rules(const_cast<Tables&>(*tables_));
    const auto guarded = wanted_protections(*tables_, {std::string(kSource), {}});
    return !guarded || !check_ban(rules, source, false, *guarded);
}

RiskJudge::World RiskDesk::world() {
    return {.is_seen = [this](const Prefix& source) { return is_seen(source); },
            .is_guarded = [this](const Prefix& source) { return is_guarded(source); },
            .verified = verified_};
}

void RiskDesk::decide() {
    std::vector<RiskBan> bans;
    {
        const std::lock_guard guard(mutex_);
        if (!judge_ || judge_->book.due() == 0)
            return;
        bans = judge_->decide(world(), boot_clock_ms());
    }
    // Without the lock: commands need not wait for the gate's.
    size_t done = 0;
    const auto error = bans.empty() ? std::nullopt : ban(bans, done);
    const std::lock_guard guard(mutex_);
    if (!bans.empty())
        standing_.error = error ? error->message : std::string();
    for (size_t i = done; judge_ && i < bans.size(); ++i)
        judge_->take_back(bans[i]);
}

std::optional<Error> RiskDesk::ban(const std::vector<RiskBan>& bans, size_t& done) {
    const auto lock = lock_gate(pin_dir_, kPatience);
    if (!lock)
        return lock.error();
    SourceRules rules(*tables_);
    for (const RiskBan& ban : bans) {
        const std::string time = ban.time ? "for " + format_duration(*ban.time) : "for good";
        (void)audit_.write(
            {std::string(kSource), {}},
            {"ban", ban.source.to_string(), "", std::string(kSource) + ' ' + time, ban.reason()});
        const auto outcome = rules.ban(ban.source, {.ttl = ban.time,
                                                    .list = std::string(kSource),
                                                    .reason = ban.reason(),
                                                    .actor = std::string(kSource)});
        if (!outcome)
            return outcome.error();
        ++done;
    }
    return std::nullopt;
}

// --- the fleet -----------------------------------------------------------------------------------

void RiskDesk::step_fleet() {
    std::vector<RiskOrder> orders;
    {
        const std::lock_guard guard(mutex_);
        std::swap(orders, orders_);
    }
    for (const RiskOrder& order : orders)
        fleet_->order(order);
    fleet_->step(world());
}

void RiskDesk::publish() {
    std::optional<FleetRiskStanding> fleet;
    std::vector<RiskEntry> highest;
    if (fleet_) {
        fleet = fleet_->standing();
        for (const ScoreBook::Entry& entry : fleet_->highest(kMostListed))
            highest.push_back({entry.source, entry.score, fleet_->now_ms(), true});
    }
    const std::lock_guard guard(mutex_);
    if (!fleet_)
        orders_.clear();
    fleet_highest_ = std::move(highest);
    standing_.fleet = std::move(fleet);
    standing_.verified = verified_;
}

RiskStanding RiskDesk::standing() const {
    const std::lock_guard guard(mutex_);
    RiskStanding standing = standing_;
    standing.is_on = settings_.has_value();
    standing.now_ms = boot_clock_ms();
    if (judge_) {
        standing.stopped = judge_->allowance.stopped();
        standing.scored = judge_->book.size();
        standing.forgotten = judge_->book.forgotten();
        standing.counts = judge_->counts();
    }
    return standing;
}

std::vector<RiskEntry> RiskDesk::highest(size_t most) const {
    const std::lock_guard guard(mutex_);
    std::vector<RiskEntry> all = fleet_highest_;
    const uint64_t now = boot_clock_ms();
    if (judge_)
        for (const ScoreBook::Entry& entry : judge_->book.highest(most, now))
            all.push_back({entry.source, entry.score, now, false});
    std::ranges::sort(
        all, [](const RiskEntry& a, const RiskEntry& b) { return a.score.score > b.score.score; });
    all.resize(std::min(most, all.size()));
    return all;
}

}  // namespace sluice
