#include "fleet/lease_holder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sluice {

namespace {

using namespace std::chrono_literals;
using std::chrono::duration_cast, std::chrono::milliseconds, std::chrono::nanoseconds;

// Above this part of what the share allows, a host asks for more at once ...
constexpr double kPressed = 0.8;
// ... but not more often than this.
constexpr nanoseconds kPromptApart = 20ms;
// Nothing asked for in this time is idle, and renewed so seldom.
constexpr nanoseconds kIdleAfter = 1s;
constexpr nanoseconds kIdlePeriod = 5s;
// A demand counted over less time, or fewer units, than this is mixed with the one before.
constexpr double kEnoughUnits = 64;
constexpr nanoseconds kShortestMeasure = 10ms;
// Demand falls by this part of the difference in a period, so that what is asked for covers noise.
constexpr double kFalling = 0.5;
// Standard deviations of a Poisson process. With two, calm hosts keep from others what they do not
// use.
constexpr double kDeviations = 1;
// Renewals are spread by so much to either side.
constexpr double kJitter = 0.1;

uint64_t ns(nanoseconds time) {
    return static_cast<uint64_t>(time.count());
}

// Many users together ask for a little more or less in each period. Without that on top, whoever
// asks for less than he could get would lose packets in every second one.
double with_noise(double per_second, nanoseconds period) {
    return per_second +
           kDeviations * std::sqrt(per_second / (static_cast<double>(ns(period)) * 1e-9));
}

double seconds(uint64_t time_ns) {
    return static_cast<double>(time_ns) * 1e-9;
}

}  // namespace

LeaseHolder::LeaseHolder(std::string host, uint64_t first_seq, LeaseOptions options)
    : host_(std::move(host)), seq_(first_seq), options_(options), random_(options.jitter_seed) {}

Allowance LeaseHolder::without_redis(const Lease& lease) const {
    if (lease.wanted.on_loss == OnRedisLoss::open)
        return {.unlimited = true};
    const FleetBudget& budget = lease.wanted.budget;
    const double hosts = std::max(1U, options_.max_hosts);
    return {.per_second = budget.per_second / hosts,
            .burst = std::max(budget.unit, budget.burst / hosts)};
}

void LeaseHolder::set_budgets(const std::vector<SharedBudget>& budgets,
                              const std::map<std::string, Share>& in_force, uint64_t now_ns) {
    // An answer under way is about leases that may be gone.
    if (outstanding_)
        lost(now_ns);
    std::map<std::string, Lease, std::less<>> leases;
    for (const SharedBudget& wanted : budgets) {
        const std::string& name = wanted.budget.name;
        auto node = leases_.extract(name);
        const bool is_new = node.empty();
        Lease& lease = is_new ? leases[name] : leases.insert(std::move(node)).position->second;
        lease.wanted = wanted;
        const Allowance after = without_redis(lease);
        if (is_new) {
            const auto left = in_force.find(name);
            lease.share =
                left != in_force.end() ? left->second : Share{.now = after, .after = after};
            lease.busy_ns = now_ns;
        }
        lease.share.after = after;
    }
    leases_ = std::move(leases);
}

void LeaseHolder::observe(std::string_view budget, const LeaseReading& reading, uint64_t now_ns) {
    const auto found = leases_.find(budget);
    if (found == leases_.end())
        return;
    Lease& lease = found->second;
    // Counters that begin anew, or are read for the first time, say nothing about the time before.
    if (!lease.is_read || reading.demand < lease.reading.demand) {
        lease.measured_units = lease.pressure_units = reading.demand;
        lease.measured_ns = lease.pressure_ns = now_ns;
    } else if (reading.demand > lease.reading.demand) {
        lease.busy_ns = now_ns;
    }
    if (now_ns - lease.pressure_ns > ns(options_.period)) {
        lease.pressure_units = lease.reading.demand;
        lease.pressure_ns = now_ns;
    }
    lease.reading = reading;
    lease.is_read = true;
}

bool LeaseHolder::is_idle(const Lease& lease, uint64_t now_ns) const {
    return options_.period < kIdlePeriod && now_ns - lease.busy_ns > ns(kIdleAfter);
}

// Idle, and with a long lease already.
bool LeaseHolder::rests(const Lease& lease, uint64_t now_ns) const {
    return lease.long_lease && is_idle(lease, now_ns);
}

// Whether the host is about to run out of what it has, and may get more by asking.
bool LeaseHolder::is_pressed(const Lease& lease, uint64_t now_ns) const {
    const Allowance& allowed = lease.share.at(now_ns);
    const double spent = static_cast<double>(lease.reading.demand - lease.pressure_units);
    if (lease.saturated || allowed.unlimited || spent == 0)
        return false;
    if (lease.tokens)
        return lease.reading.tokens <= (1 - kPressed) * allowed.burst;
    const double time = seconds(now_ns - lease.pressure_ns);
    return spent > kPressed * (allowed.per_second * time + allowed.burst);
}

bool LeaseHolder::is_due(uint64_t now_ns) const {
    if (retry_ns_)
        return now_ns >= *retry_ns_;
    if (acknowledge_ && !acknowledged_)
        return true;
    const bool soon = now_ns - sent_ns_ >= ns(kPromptApart);
    return std::ranges::any_of(leases_, [&](const auto& entry) {
        const Lease& lease = entry.second;
        if (lease.unanswered || acknowledge_ || is_pressed(lease, now_ns))
            return soon;
        return now_ns >= (rests(lease, now_ns) ? lease.idle_due_ns : renew_ns_);
    });
}

void LeaseHolder::measure(Lease& lease, uint64_t now_ns) const {
    const uint64_t time = now_ns - lease.measured_ns;
    if (is_idle(lease, now_ns))
        lease.demand = 0;
    if (time < ns(kShortestMeasure))
        return;
    const double units = static_cast<double>(lease.reading.demand - lease.measured_units);
    const double rate = units / seconds(time);
    const double weight =
        std::min(1.0, std::max(seconds(time) / seconds(ns(options_.period)), units / kEnoughUnits));
    lease.demand += weight * (rate < lease.demand ? kFalling : 1) * (rate - lease.demand);
    lease.measured_units = lease.reading.demand;
    lease.measured_ns = now_ns;
}

LeaseDemand LeaseHolder::demand_of(Lease& lease, uint64_t now_ns) const {
    measure(lease, now_ns);
    const Allowance& allowed = lease.share.at(now_ns);
    const bool lapsed = now_ns >= lease.share.valid_until_ns;
    double claim = allowed.unlimited ? lease.wanted.budget.per_second : allowed.per_second;
    if (lease.tokens)
        claim = lapsed ? 0 : std::min(lease.reading.tokens, allowed.burst);
    return {.budget = lease.wanted.budget.name,
            .per_second = with_noise(lease.demand, options_.period),
            .claim = claim,
            .idle = is_idle(lease, now_ns)};
}

std::optional<LeaseRequest> LeaseHolder::next(uint64_t now_ns, uint64_t round_cost_us) {
    if (outstanding_ || leases_.empty() || !is_due(now_ns))
        return std::nullopt;
    Outstanding call;
    call.sent_ns = now_ns;
    for (auto& [name, lease] : leases_) {
        // What a lost answer was about must go with the next call: an acknowledged number means
        // that everything up to it has arrived.
        const bool is_news = lease.unanswered || lease.awaited;
        if (!is_news && rests(lease, now_ns) && now_ns < lease.idle_due_ns)
            continue;
        call.request.demands.push_back(demand_of(lease, now_ns));
        call.leases.push_back(&lease);
        lease.unanswered = true;
    }
    call.request.pool = options_.pool;
    call.request.host = host_;
    call.request.seq = ++seq_;
    call.request.acked_seq = acked_seq_;
    call.request.since_acked_ms =
        acked_seq_ == 0 ? 0 : (now_ns - acked_sent_ns_) / ns(milliseconds(1));
    call.request.period = duration_cast<milliseconds>(options_.period);
    call.request.round_cost_us = round_cost_us;
    call.request.longest_lease = longest_lease_;
    acknowledged_ = std::exchange(acknowledge_, false) && !acknowledged_;
    retry_ns_.reset();
    sent_ns_ = now_ns;
    outstanding_ = std::move(call);
    return outstanding_->request;
}

void LeaseHolder::take(Lease& lease, const LeaseDemand& asked, const LeaseGrant& grant,
                       const LeaseReply& reply) {
    lease.unanswered = false;
    lease.unknown = grant.unknown;
    lease.awaited = grant.awaited;
    lease.share.added = 0;
    if (grant.unknown)
        return;
    lease.wanted.budget.per_second = grant.budget;
    lease.saturated = grant.saturated;
    lease.tokens = grant.tokens;
    lease.share.now = {.per_second = grant.tokens ? 0 : grant.grant, .burst = grant.burst};
    lease.share.added = grant.tokens ? grant.grant : 0;
    const nanoseconds held =
        lease.wanted.on_loss == OnRedisLoss::hold && !grant.tokens ? options_.hold_for : 0ns;
    lease.long_lease = asked.idle;
    const nanoseconds length = asked.idle ? reply.idle_length : reply.length;
    lease.share.valid_until_ns = outstanding_->sent_ns + ns(length + held);
    lease.share.after = without_redis(lease);
    lease.idle_due_ns =
        outstanding_->sent_ns + jittered(std::max<nanoseconds>(kIdlePeriod, reply.renew_in));
}

LeaseOutcome LeaseHolder::answered(const LeaseReply& reply) {
    const Outstanding& call = *outstanding_;
    if (reply.status == LeaseStatus::duplicate) {
        outstanding_.reset();
        return LeaseOutcome::duplicate;
    }
    learning_ = reply.status == LeaseStatus::learning;
    longest_lease_ = std::max(longest_lease_, reply.longest_lease);
    bool unknown = false;
    for (size_t i = 0; i < call.leases.size() && i < reply.grants.size(); i++) {
        const LeaseGrant& grant = reply.grants[i];
        take(*call.leases[i], call.request.demands[i], grant, reply);
        acknowledge_ = acknowledge_ || grant.awaited;
        unknown = unknown || grant.unknown;
    }
    acked_seq_ = call.request.seq;
    acked_sent_ns_ = call.sent_ns;
    renew_ns_ = call.sent_ns + jittered(reply.renew_in);
    lost_ = 0;
    outstanding_.reset();
    return unknown ? LeaseOutcome::unknown : LeaseOutcome::taken;
}

void LeaseHolder::lost(uint64_t now_ns) {
    outstanding_.reset();
    const nanoseconds pause = kPromptApart * (1U << std::min(lost_, 8U));
    lost_++;
    retry_ns_ = now_ns + jittered(std::min(pause, options_.period));
}

void LeaseHolder::rename(std::string host, uint64_t first_seq) {
    host_ = std::move(host);
    seq_ = first_seq;
    acked_seq_ = 0;
}

void LeaseHolder::lapse() {
    outstanding_.reset();
    acked_seq_ = 0;
    for (auto& [name, lease] : leases_) {
        lease.share.valid_until_ns = 0;
        lease.share.added = 0;
        lease.unanswered = true;
    }
}

const Share& LeaseHolder::share(std::string_view budget) const {
    return leases_.find(budget)->second.share;
}

double LeaseHolder::limit(std::string_view budget) const {
    return leases_.find(budget)->second.wanted.budget.per_second;
}

double LeaseHolder::demand(std::string_view budget) const {
    return leases_.find(budget)->second.demand;
}

std::vector<FleetBudget> LeaseHolder::unknown_budgets() const {
    std::vector<FleetBudget> budgets;
    for (const auto& [name, lease] : leases_)
        if (lease.unknown)
            budgets.push_back(lease.wanted.budget);
    return budgets;
}

uint64_t LeaseHolder::jittered(nanoseconds time) {
    std::uniform_real_distribution<double> spread(1 - kJitter, 1 + kJitter);
    return static_cast<uint64_t>(static_cast<double>(time.count()) * spread(random_));
}

}  // namespace sluice
