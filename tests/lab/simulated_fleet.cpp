#include "simulated_fleet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <utility>

namespace sluice::sim {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// Any moment; not zero, so that nothing takes it for "never".
constexpr milliseconds kBeginOfMonotonic = 1h;
constexpr milliseconds kBeginOfRedis{1'800'000'000'000};
// Commands of one pipeline.
constexpr size_t kMostAtOnce = 1000;

std::string identity(unsigned number) {
    std::array<char, 33> text;
    std::snprintf(text.data(), text.size(), "%032x", number);
    return text.data();
}

uint64_t sequence_at(uint64_t monotonic_ns) {
    return monotonic_ns / 1000;
}

double seconds(milliseconds time) {
    return std::chrono::duration<double>(time).count();
}

}  // namespace

Result<ClockedScript> ClockedScript::load(Redis& redis, const redis::Script& script) {
    static constexpr std::string_view kReal = "redis.call('TIME')";
    static constexpr std::string_view kInvented = "redis.call('HMGET', key .. ':clock', 's', 'us')";
    ClockedScript clocked;
    clocked.text_ = script.text;
    const size_t at = clocked.text_.find(kReal);
    if (at == std::string::npos || clocked.text_.find(kReal, at + 1) != std::string::npos)
        return failed("the script has not one clock");
    clocked.text_.replace(at, kReal.size(), kInvented);
    const auto loaded = redis.run(redis::Command{"SCRIPT", "LOAD", clocked.text_});
    if (!loaded)
        return loaded.error();
    const auto sha1 = loaded->as_text();
    if (!sha1)
        return sha1.error();
    clocked.sha1_ = *sha1;
    return clocked;
}

Result<SimulatedFleet> SimulatedFleet::make(Redis& redis, FleetModel model) {
    auto lease = ClockedScript::load(redis, lease_script());
    if (!lease)
        return lease.error();
    auto budget = ClockedScript::load(redis, budget_script());
    if (!budget)
        return budget.error();
    SimulatedFleet fleet(redis, std::move(model), *std::move(lease), *std::move(budget));
    if (const Status set = fleet.set_clock(); !set)
        return set.error();
    return fleet;
}

SimulatedFleet::SimulatedFleet(Redis& redis, FleetModel model, ClockedScript lease,
                               ClockedScript budget)
    : redis_(&redis),
      model_(std::move(model)),
      lease_(std::move(lease)),
      budget_(std::move(budget)),
      random_(model_.seed) {
    std::set<unsigned> shards;
    for (const SharedBudget& budget_of : model_.budgets) {
        const std::string& name = budget_of.budget.name;
        shard_of_.push_back(lease_shard(name.substr(0, name.find('.'))));
        shards.insert(shard_of_.back());
        budget_now_.push_back(budget_of.budget.per_second);
    }
    shards_.assign(shards.begin(), shards.end());
    for (const unsigned shard : shards_)
        round_cost_us_ += static_cast<uint64_t>(
            lease_cost(static_cast<size_t>(std::ranges::count(shard_of_, shard))).count());
    totals_.resize(model_.budgets.size());
    seconds_.resize(model_.budgets.size());
    hosts_.resize(model_.hosts);
    for (Host& host : hosts_) {
        host.id = identity(++identities_);
        host.buckets.resize(model_.budgets.size());
        start_process(host);
        for (size_t b = 0; b < host.buckets.size(); b++)
            host.buckets[b].tokens = host.buckets[b].share.now.burst;
    }
}

uint64_t SimulatedFleet::now_ns() const {
    return static_cast<uint64_t>(std::chrono::nanoseconds(kBeginOfMonotonic + now_).count());
}

void SimulatedFleet::start_process(Host& host) {
    std::map<unsigned, std::vector<SharedBudget>> by_shard;
    std::map<std::string, Share> in_force;
    for (size_t b = 0; b < model_.budgets.size(); b++) {
        by_shard[shard_of_[b]].push_back(model_.budgets[b]);
        if (host.buckets[b].leased)
            in_force[model_.budgets[b].budget.name] = host.buckets[b].share;
    }
    host.holders.clear();
    host.pending.clear();
    host.alive = true;
    for (const auto& [shard, budgets] : by_shard) {
        LeaseOptions options = model_.lease;
        options.jitter_seed = static_cast<uint32_t>(random_());
        auto holder = std::make_unique<LeaseHolder>(host.id, sequence_at(now_ns()), options);
        holder->set_budgets(budgets, in_force, now_ns());
        for (size_t b = 0; b < model_.budgets.size(); b++)
            if (shard_of_[b] == shard)
                host.buckets[b].share = holder->share(model_.budgets[b].budget.name);
        host.holders.emplace(shard, std::move(holder));
    }
}

Status SimulatedFleet::set_clock() {
    const milliseconds time = kBeginOfRedis + now_ + redis_offset_;
    std::vector<redis::Command> commands;
    for (const unsigned shard : shards_)
        commands.push_back(redis::Command{"HSET", LeaseKeys(model_.name, shard).state + ":clock",
                                          "s", std::to_string(time / 1s), "us",
                                          std::to_string(time % 1s / 1ms * 1000)});
    const auto replies = redis_->run(commands);
    return replies ? Status() : replies.error();
}

Status SimulatedFleet::set_budgets(uint64_t version, double scale, milliseconds in) {
    version_ = version;
    scale_ = scale;
    if (const Status set = set_clock(); !set)
        return set;
    for (size_t b = 0; b < model_.budgets.size(); b++) {
        FleetBudget budget = model_.budgets[b].budget;
        budget.per_second *= scale;
        budget.burst *= scale;
        const milliseconds at = in == 0ms ? 0ms : kBeginOfRedis + now_ + redis_offset_ + in;
        const auto reply =
            redis_->run(budget_command(budget_.script(), LeaseKeys(model_.name, shard_of_[b]),
                                       version, at, std::span(&budget, 1)));
        if (!reply)
            return reply.error();
        if (const Status done = reply->check(); !done)
            return done;
        budget_now_[b] = budget.per_second;
    }
    return {};
}

void SimulatedFleet::set_demand(unsigned host, double per_second) {
    for (Bucket& bucket : hosts_[host].buckets)
        bucket.per_second = per_second;
}

void SimulatedFleet::set_demand(unsigned host, const std::string& budget, double per_second) {
    hosts_[host].buckets[index_of(budget)].per_second = per_second;
}

// How many units of a tick get through.
double SimulatedFleet::arrive(Bucket& bucket, double unit) {
    const double tick = seconds(model_.tick);
    const double mean = bucket.per_second * tick / unit;
    double units = 0;
    if (model_.poisson && mean > 0) {
        units = std::poisson_distribution<int>(mean)(random_) * unit;
    } else {
        bucket.fraction += mean * unit;
        units = std::floor(bucket.fraction);
        bucket.fraction -= units;
    }
    bucket.demand += static_cast<uint64_t>(units);
    const Allowance& allowed = bucket.share.at(now_ns());
    if (allowed.unlimited)
        return units;
    bucket.tokens = std::min(allowed.burst, bucket.tokens + allowed.per_second * tick);
    const double through = std::floor(std::min(units, bucket.tokens) / unit) * unit;
    bucket.tokens -= through;
    return through;
}

void SimulatedFleet::traffic() {
    const size_t ticks_a_second = static_cast<size_t>(1s / model_.tick);
    for (size_t b = 0; b < model_.budgets.size(); b++) {
        double through = 0, demand = 0;
        for (Host& host : hosts_) {
            Bucket& bucket = host.buckets[b];
            const double units = arrive(bucket, model_.budgets[b].budget.unit);
            bucket.admitted += units;
            through += units;
            demand += bucket.per_second;
        }
        BudgetTotals& totals = totals_[b];
        totals.admitted += through;
        totals.wanted += std::min(demand, budget_now_[b]) * seconds(model_.tick);
        Second& second = seconds_[b];
        second.ticks.push_back(through);
        second.sum += through;
        if (second.ticks.size() > ticks_a_second) {
            second.sum -= second.ticks.front();
            second.ticks.pop_front();
        }
        totals.worst_second = std::max(totals.worst_second, second.sum);
    }
}

// The sum of what leases in force allow at this moment.
void SimulatedFleet::look() {
    for (size_t b = 0; b < model_.budgets.size(); b++) {
        double issued = 0, fallback = 0;
        for (const Host& host : hosts_) {
            const Bucket& bucket = host.buckets[b];
            if (bucket.leased && now_ns() < bucket.share.valid_until_ns)
                issued += bucket.share.now.per_second;
            else
                fallback += bucket.share.at(now_ns()).per_second;
        }
        totals_[b].worst_issued = std::max(totals_[b].worst_issued, issued / budget_now_[b]);
        totals_[b].worst_fallback = std::max(totals_[b].worst_fallback, fallback / budget_now_[b]);
    }
}

void SimulatedFleet::put_in_force(Host& host, const Pending& pending, LeaseHolder& holder) {
    for (size_t b = 0; b < model_.budgets.size(); b++) {
        const std::string& name = model_.budgets[b].budget.name;
        const auto asked = std::ranges::find(pending.request.demands, name, &LeaseDemand::budget);
        if (shard_of_[b] != pending.shard || asked == pending.request.demands.end())
            continue;
        Bucket& bucket = host.buckets[b];
        const Share& share = holder.share(name);
        if (share.valid_until_ns == 0)
            continue;
        bucket.share = share;
        bucket.leased = true;
        bucket.tokens = tokens_kept(bucket.tokens, share);
    }
}

void SimulatedFleet::replace_identity(Host& host) {
    duplicates_++;
    host.id = identity(++identities_);
    for (auto& [shard, holder] : host.holders)
        holder->rename(host.id, sequence_at(now_ns()));
}

void SimulatedFleet::take_answer(Host& host, const Pending& pending, LeaseHolder& holder,
                                 const LeaseReply& reply) {
    const LeaseOutcome outcome = holder.answered(reply);
    if (outcome == LeaseOutcome::duplicate) {
        replace_identity(host);
        return;
    }
    budgets_missing_ = budgets_missing_ || outcome == LeaseOutcome::unknown;
    put_in_force(host, pending, holder);
}

void SimulatedFleet::deliver(Host& host) {
    for (size_t i = 0; i < host.pending.size();) {
        if (host.pending[i].due > now_) {
            i++;
            continue;
        }
        const Pending pending = std::move(host.pending[i]);
        host.pending.erase(host.pending.begin() + static_cast<ptrdiff_t>(i));
        LeaseHolder& holder = *host.holders.at(pending.shard);
        const auto reply = pending.answer ? parse_lease_reply(*pending.answer, pending.request)
                                          : Result<LeaseReply>(failed("lost"));
        if (!reply)
            holder.lost(now_ns());
        else
            take_answer(host, pending, holder, *reply);
    }
}

Status SimulatedFleet::call_redis() {
    struct Call {
        Host* host;
        Pending pending;
        bool reaches_redis;
    };
    std::vector<Call> calls;
    for (Host& host : hosts_) {
        if (!host.alive)
            continue;
        for (size_t b = 0; b < model_.budgets.size(); b++)
            host.holders.at(shard_of_[b])
                ->observe(model_.budgets[b].budget.name,
                          {.demand = host.buckets[b].demand, .tokens = host.buckets[b].tokens},
                          now_ns());
        for (auto& [shard, holder] : host.holders) {
            auto request = holder->next(now_ns(), round_cost_us_);
            if (request)
                calls.push_back(
                    {&host,
                     {.shard = shard, .request = *std::move(request), .answer = {}, .due = {}},
                     chance() >= model_.network.lost_requests});
        }
    }
    // Whoever comes first in a tick is another one each time.
    std::ranges::shuffle(calls, random_);
    std::vector<redis::Command> commands;
    std::vector<Call*> sent;
    const redis::Script script = lease_.script();
    const auto flush = [&]() -> Status {
        if (commands.empty())
            return {};
        const auto replies = redis_->run(commands);
        if (!replies)
            return replies.error();
        for (size_t i = 0; i < sent.size(); i++) {
            const auto text = (*replies)[i].as_text();
            if (!text)
                return text.error();
            if (chance() >= model_.network.lost_replies)
                sent[i]->pending.answer = *text;
        }
        commands.clear();
        sent.clear();
        return {};
    };
    for (Call& call : calls) {
        const bool late = chance() < model_.network.late;
        call.pending.due = now_ + (late ? model_.network.late_delay : model_.network.delay);
        if (!call.reaches_redis)
            continue;
        calls_++;
        commands.push_back(lease_command(script, LeaseKeys(model_.name, call.pending.shard),
                                         call.pending.request));
        sent.push_back(&call);
        if (commands.size() == kMostAtOnce)
            if (const Status flushed = flush(); !flushed)
                return flushed;
    }
    if (const Status flushed = flush(); !flushed)
        return flushed;
    for (Call& call : calls) {
        // What comes after the host gave up finds a closed connection.
        if (!call.pending.answer || call.pending.due > now_ + model_.patience) {
            call.pending.answer.reset();
            call.pending.due = now_ + model_.patience;
        }
        call.host->pending.push_back(std::move(call.pending));
    }
    return {};
}

Status SimulatedFleet::run(milliseconds time) {
    for (const milliseconds end = now_ + time; now_ < end;) {
        now_ += model_.tick;
        for (Host& host : hosts_)
            if (host.alive)
                deliver(host);
        look();
        traffic();
        if (const Status set = set_clock(); !set)
            return set;
        if (const Status called = call_redis(); !called)
            return called;
        if (std::exchange(budgets_missing_, false))
            if (const Status written = set_budgets(version_, scale_); !written)
                return written;
    }
    return {};
}

void SimulatedFleet::kill(unsigned host) {
    hosts_[host].alive = false;
    hosts_[host].holders.clear();
    hosts_[host].pending.clear();
}

void SimulatedFleet::restart(unsigned host) {
    start_process(hosts_[host]);
}

void SimulatedFleet::impersonate(unsigned host, unsigned other) {
    hosts_[host].id = hosts_[other].id;
    for (auto& [shard, holder] : hosts_[host].holders)
        holder->rename(hosts_[host].id, sequence_at(now_ns()));
}

Status SimulatedFleet::wipe() {
    for (const unsigned shard : shards_) {
        const LeaseKeys keys(model_.name, shard);
        const auto reply = redis_->run(redis::Command{"DEL", keys.state, keys.expiries});
        if (!reply)
            return reply.error();
    }
    return {};
}

void SimulatedFleet::reset_totals() {
    totals_.assign(totals_.size(), {});
    for (Host& host : hosts_)
        for (Bucket& bucket : host.buckets)
            bucket.admitted = 0;
}

size_t SimulatedFleet::index_of(const std::string& budget) const {
    for (size_t b = 0; b < model_.budgets.size(); b++)
        if (model_.budgets[b].budget.name == budget)
            return b;
    return 0;
}

const BudgetTotals& SimulatedFleet::totals(const std::string& budget) const {
    return totals_[index_of(budget)];
}

double SimulatedFleet::in_force(unsigned host, const std::string& budget) const {
    return hosts_[host].buckets[index_of(budget)].share.at(now_ns()).per_second;
}

double SimulatedFleet::issued(const std::string& budget) const {
    double sum = 0;
    const size_t b = index_of(budget);
    for (const Host& host : hosts_)
        if (host.buckets[b].leased && now_ns() < host.buckets[b].share.valid_until_ns)
            sum += host.buckets[b].share.now.per_second;
    return sum / budget_now_[b];
}

double SimulatedFleet::admitted(unsigned host, const std::string& budget) const {
    return hosts_[host].buckets[index_of(budget)].admitted;
}

bool SimulatedFleet::any_learning() const {
    return std::ranges::any_of(hosts_, [](const Host& host) {
        return std::ranges::any_of(host.holders,
                                   [](const auto& entry) { return entry.second->is_learning(); });
    });
}

std::string SimulatedFleet::state_key(const std::string& budget) const {
    return LeaseKeys(model_.name, shard_of_[index_of(budget)]).state;
}

}  // namespace sluice::sim
