#include "fleet/budget_sync.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "fleet/fleet_policy.h"
#include "fleet/host_identity.h"
#include "fleet/lease_message.h"
#include "fleet/policy_budgets.h"
#include "fleet/policy_message.h"
#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "gate/switches.h"
#include "policy/rule_id.h"

namespace sluice {

namespace {

using std::chrono::milliseconds, std::chrono::nanoseconds;

// A clock that was ahead by less has not been asleep: the two are read one after the other.
constexpr int64_t kAsleepNs = 50'000'000;

// Between two times that the fleet's budgets are called for: a host writes them within seconds.
constexpr uint64_t kOweNs = 1'000'000'000;

// Several operators who look at once are one reader to Redis.
constexpr std::chrono::seconds kViewFresh(1);

BudgetAllowance to_gate(const Allowance& allowance) {
    return {allowance.per_second, allowance.burst, allowance.unlimited};
}

Allowance from_gate(const BudgetAllowance& allowance) {
    return {allowance.per_second, allowance.burst, allowance.unlimited};
}

// A restarted daemon goes on with what its predecessor left; tokens were added then.
std::optional<Share> share_in_force(const Tables& tables, uint32_t service_id,
                                    Dimension dimension) {
    const auto share = read_share(tables, service_id, dimension);
    if (!share)
        return std::nullopt;
    return Share{from_gate(share->now), 0, share->until_ns, from_gate(share->after)};
}

SharedBudget shared_budget(const Service& service, Dimension dimension, const TokenBucket& bucket) {
    return {.budget = fleet_budget(service, dimension, bucket), .on_loss = service.on_redis_loss};
}

int64_t clock_ns(clockid_t clock) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

uint64_t first_seq() {
    return static_cast<uint64_t>(clock_ns(CLOCK_MONOTONIC)) / 1000;
}

}  // namespace

redis::Options redis_options(const RedisSettings& settings) {
    return {.url = settings.url,
            .username = settings.username,
            .password_file = settings.password_file,
            .ca_file = settings.ca_file,
            .cert_file = settings.cert_file,
            .key_file = settings.key_file,
            .connect_timeout = settings.connect_timeout,
            .command_timeout = settings.command_timeout};
}

void BudgetSync::step() {
    if (!look_at_gate()) {
        publish(0);
        return;
    }
    look_at_policy();
    const uint64_t now_ns = gate_now_ns(*tables_);
    if (redis_ && !shards_.empty()) {
        look_at_sleep();
        observe(now_ns);
        ask(now_ns);
        put_in_force();
        owe(now_ns);
    }
    if (redis_) {
        sources_.look(*tables_, sample_time());
        sources_.exchange(*tables_, *redis_, drill_, now_ns);
        beat(now_ns);
        look_at_fleet();
    }
    publish(now_ns);
}

// Detached, and perhaps attached anew.
bool BudgetSync::look_at_gate() {
    const auto pin = gate_pin(pin_dir_);
    if (tables_ && pin && pin == pin_)
        return true;
    tables_.reset();
    shards_.clear();
    sources_.forget();
    policy_version_ = 0;
    if (!pin)
        return false;
    auto tables = Tables::open(pin_dir_);
    if (!tables)
        return false;
    tables_ = *std::move(tables);
    pin_ = pin;
    if (host_id(*tables_).empty())
        draw_host_id(*tables_);
    return true;
}

void BudgetSync::look_at_policy() {
    const auto mode = mode_of(*tables_, WholeGate{});
    const LeasePool pool = mode && *mode != Mode::enforce ? LeasePool::observe : LeasePool::enforce;
    const uint64_t version = current_policy_version(*tables_);
    if (version == policy_version_ && pool == pool_)
        return;
    const auto policy = current_policy(*tables_);
    if (!policy)
        return;  // one that is being changed is read the next time
    policy_version_ = policy->version;
    from_fleet_ = parse_fleet_source(policy->source);
    is_scheduled_ = std::ranges::any_of(policy->policy.services, [](const Service& service) {
        return std::ranges::any_of(
            service.schedules, [](const Schedule& schedule) { return !schedule.in_force.empty(); });
    });
    policy_lost_until_ns_ = 0;
    beat_due_ns_ = 0;  // so that others see soon who has which version
    policy_age_ = std::chrono::seconds(policy->applied_s);
    connect(policy->policy);
    share_budgets(policy->policy, pool, gate_now_ns(*tables_));
    if (redis_)
        sources_.follow(*tables_, policy->policy, pool);
    else
        sources_.forget();
}

void BudgetSync::connect(const Policy& policy) {
    if (policy.redis == settings_)
        return;
    settings_ = policy.redis;
    redis_.reset();
    if (!settings_)
        return;
    auto redis = Redis::open(redis_options(*settings_));
    if (redis)
        redis_.emplace(*std::move(redis));
    const std::lock_guard guard(mutex_);
    standing_.error = redis ? std::string() : redis.error().message;
}

void BudgetSync::share_budgets(const Policy& policy, LeasePool pool, uint64_t now_ns) {
    const bool same_fleet = policy.fleet == fleet_ && pool == pool_;
    fleet_ = policy.fleet;
    pool_ = pool;
    std::map<unsigned, Shard> before;
    for (Shard& shard : shards_)
        if (same_fleet)
            before.emplace(shard.number, std::move(shard));
    shards_.clear();

    std::map<unsigned, std::vector<SharedBudget>> wanted;
    std::map<unsigned, Shard> shards;
    std::map<std::string, Share> in_force;
    for (const Service& service : policy.services) {
        const auto id = find_service_id(*tables_, service.name);
        for (const auto& [dimension, bucket] : service.budget) {
            const uint32_t service_id = id.value_or(SLUICE_SERVICE_OTHER);
            const auto left = share_in_force(*tables_, service_id, dimension);
            const bool is_live = left && left->valid_until_ns > now_ns;
            if (left && (!service.shared || !is_live))
                drop_share(*tables_, service_id, dimension);
            if (!service.shared)
                continue;
            const unsigned number = lease_shard(service.name);
            const SharedBudget budget = shared_budget(service, dimension, bucket);
            shards[number].budgets[budget.budget.name] = {service.name, service_id, dimension,
                                                          std::nullopt};
            // Those of the fleet's policy are written by who changes it; a host knows only its own
            // version, which may be a canary.
            if (!from_fleet_)
                shards[number].to_set.push_back(budget.budget);
            wanted[number].push_back(budget);
            if (is_live)
                in_force.emplace(budget.budget.name, *left);
        }
    }
    for (auto& [number, shard] : shards) {
        shard.number = number;
        const auto old = before.find(number);
        if (old != before.end())
            shard.holder = std::move(old->second.holder);
        else
            shard.holder = std::make_unique<LeaseHolder>(
                host_id(*tables_), first_seq(),
                LeaseOptions{.pool = pool,
                             .max_hosts = std::max(fleet_.max_hosts, 1U),
                             .hold_for = fleet_.hold_for,
                             .jitter_seed = static_cast<uint32_t>(tables_->settings().host_id[1])});
        shard.holder->set_budgets(wanted[number], in_force, now_ns);
        shards_.push_back(std::move(shard));
    }
}

// The kernel's clock stands still meanwhile, and with it the end of a lease; Redis's does not.
void BudgetSync::look_at_sleep() {
    const int64_t asleep = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
    const bool was_asleep = asleep - asleep_ns_ > kAsleepNs && asleep_ns_ != 0;
    asleep_ns_ = asleep;
    if (was_asleep)
        for (Shard& shard : shards_)
            shard.holder->lapse();
}

void BudgetSync::observe(uint64_t now_ns) {
    for (Shard& shard : shards_)
        for (const auto& [name, budget] : shard.budgets)
            shard.holder->observe(name,
                                  {budget_demand(*tables_, budget.service_id, budget.dimension),
                                   budget_tokens(*tables_, budget.service_id, budget.dimension)},
                                  now_ns);
}

// Everything that is due in one exchange: budgets that Redis has to hear of, then leases.
void BudgetSync::ask(uint64_t now_ns) {
    std::chrono::microseconds round_cost{0};
    for (const Shard& shard : shards_)
        round_cost += lease_cost(shard.budgets.size());
    std::vector<redis::Command> commands;
    struct Asked {
        Shard* shard;
        LeaseRequest request;
        size_t at;  // its command; the one in front sets budgets, where `sets`
        bool sets;
    };
    std::vector<Asked> asked;
    for (Shard& shard : shards_) {
        auto request = shard.holder->next(now_ns, static_cast<uint64_t>(round_cost.count()));
        if (!request)
            continue;
        const LeaseKeys keys(fleet_.name, shard.number);
        const bool sets = !shard.to_set.empty();
        if (sets)
            commands.push_back(
                budget_command(budget_script(), keys,
                               static_cast<uint64_t>(std::max(policy_age_, shard.later).count()),
                               milliseconds(0), shard.to_set));
        asked.push_back({&shard, *request, commands.size(), sets});
        commands.push_back(lease_command(lease_script(), keys, *request));
    }
    if (commands.empty())
        return;
    const Status may_ask = drill_.check();
    const auto replies = may_ask ? redis_->run_replicated(commands) : may_ask.error();
    {
        const std::lock_guard guard(mutex_);
        standing_.error = replies ? std::string() : replies.error().message;
        standing_.lost += replies ? 0 : asked.size();
    }
    for (const auto& [shard, request, at, sets] : asked) {
        if (!replies) {
            shard->holder->lost(now_ns);
            continue;
        }
        if (sets)
            note_set(*shard, (*replies)[at - 1]);
        take(*shard, (*replies)[at], request, now_ns);
    }
}

void BudgetSync::note_set(Shard& shard, const redis::Reply& reply) {
    const auto later = later_version(reply);
    if (later && *later && shard.sets_unknown) {
        // What is missing there takes nothing from a later version.
        shard.later = milliseconds(static_cast<int64_t>(**later));
        return;
    }
    if (!reply.is_error())
        shard.to_set.clear();
    // In a shard that was lost nothing of the fleet's policy was in their way.
    if (later && !*later)
        is_owed_ = true;
}

// Its own numbers where Redis has none: not those of a canary, of an override or of a schedule, as
// all hosts would get them, and nobody would end them; and none at all where Redis has the fleet's
// policy to write them from.
bool BudgetSync::may_set(uint64_t now_ns) const {
    return !from_fleet_ || (now_ns < policy_lost_until_ns_ && !from_fleet_->is_canary &&
                            !from_fleet_->is_overridden && !is_scheduled_);
}

void BudgetSync::owe(uint64_t now_ns) {
    if (!is_owed_ || now_ns < owe_due_ns_ || !drill_.check())
        return;
    owe_due_ns_ = now_ns + kOweNs;
    const auto reply = redis_->run(policy_owe_command(PolicyKeys(fleet_.name), 0));
    const auto owed = reply ? parse_policy_owed(*reply) : reply.error();
    if (owed) {
        is_owed_ = false;
        // It is asked again as long as anything is missing, so this is what holds now.
        policy_lost_until_ns_ = *owed == PolicyOwed::missing ? owe_due_ns_ + kOweNs : 0;
        return;
    }
    const std::lock_guard guard(mutex_);
    standing_.error = owed.error().message;
}

void BudgetSync::take(Shard& shard, const redis::Reply& reply, const LeaseRequest& request,
                      uint64_t now_ns) {
    const auto text = reply.as_text();
    const auto answer = text ? parse_lease_reply(*text, request) : text.error();
    if (!answer) {
        shard.holder->lost(now_ns);
        const std::lock_guard guard(mutex_);
        standing_.error = answer.error().message;
        ++standing_.lost;
        return;
    }
    const LeaseOutcome outcome = shard.holder->answered(*answer);
    if (outcome == LeaseOutcome::unknown) {
        is_owed_ = true;
        if (may_set(now_ns)) {
            shard.to_set = shard.holder->unknown_budgets();
            shard.sets_unknown = true;
        }
    } else if (outcome == LeaseOutcome::taken && shard.sets_unknown) {
        // Somebody else was faster, and his numbers stay.
        shard.to_set.clear();
        shard.sets_unknown = false;
    }
    if (outcome == LeaseOutcome::duplicate) {
        draw_host_id(*tables_);
        for (Shard& other : shards_)
            other.holder->rename(host_id(*tables_), first_seq());
    }
    const std::lock_guard guard(mutex_);
    standing_.duplicates += outcome == LeaseOutcome::duplicate ? 1 : 0;
    standing_.hosts = std::max(standing_.hosts, answer->hosts);
}

void BudgetSync::put_in_force() {
    for (Shard& shard : shards_)
        for (auto& [name, budget] : shard.budgets) {
            const Share& share = shard.holder->share(name);
            const bool never_leased = !budget.put && share.valid_until_ns == 0;
            if (never_leased || (budget.put && *budget.put == share))
                continue;
            const Status put = put_share(
                *tables_, budget.service_id, budget.dimension,
                {to_gate(share.now), share.added, share.valid_until_ns, to_gate(share.after)});
            budget.put = share;
            if (!put) {
                const std::lock_guard guard(mutex_);
                standing_.error = name + ": " + put.error().message;
            }
        }
}

// Its loss harms nobody but who looks: the next one comes soon.
void BudgetSync::beat(uint64_t now_ns) {
    if (now_ns < beat_due_ns_ || !drill_.check())
        return;
    beat_due_ns_ = now_ns + static_cast<uint64_t>(nanoseconds(kHeartbeatPeriod).count());
    const auto mode = mode_of(*tables_, WholeGate{});
    std::pair<uint64_t, std::string> refused;
    std::optional<CutRate> cut;
    {
        const std::lock_guard guard(mutex_);
        refused = refused_;
        cut = cut_;
    }
    const auto reply = redis_->run(heartbeat_command(
        HostKeys(fleet_.name), {.id = host_id(*tables_),
                                .name = machine_name(),
                                .version = SLUICE_VERSION,
                                .mode = std::string(mode ? mode_name(*mode) : ""),
                                .policy_version = policy_version_,
                                .fleet_version = from_fleet_ ? from_fleet_->version : 0,
                                .is_canary = from_fleet_ && from_fleet_->is_canary,
                                .refused_version = refused.first,
                                .refusal = refused.second,
                                .cut = cut,
                                .lag = redis_->health().round_trip}));
    const auto word = reply ? reply->as_text() : reply.error();
    const std::lock_guard guard(mutex_);
    if (!word)
        standing_.unlisted = word.error().message;
    else
        standing_.unlisted = *word == "full" ? "the list of hosts is full" : "";
}

void BudgetSync::look_at_fleet() {
    if (!is_view_wanted_.exchange(false))
        return;
    std::vector<unsigned> numbers;
    for (const Shard& shard : shards_)
        numbers.push_back(shard.number);
    const Status may_ask = drill_.check();
    auto view = may_ask ? read_fleet_view(*redis_, fleet_.name, numbers)
                        : Result<FleetView>(may_ask.error());
    const std::lock_guard guard(mutex_);
    view_ = std::move(view);
    viewed_at_ = std::chrono::steady_clock::now();
}

void BudgetSync::report_refusal(uint64_t version, std::string why) {
    const std::lock_guard guard(mutex_);
    refused_ = {version, std::move(why)};
}

void BudgetSync::report_cut(const std::optional<CutRate>& cut) {
    const std::lock_guard guard(mutex_);
    cut_ = cut;
}

std::optional<Result<FleetView>> BudgetSync::view() {
    const std::lock_guard guard(mutex_);
    if (view_ && std::chrono::steady_clock::now() - viewed_at_ < kViewFresh)
        return view_;
    is_view_wanted_ = true;
    return std::nullopt;
}

FleetStanding BudgetSync::standing() const {
    const std::lock_guard guard(mutex_);
    return standing_;
}

void BudgetSync::publish(uint64_t now_ns) {
    FleetStanding now;
    now.is_shared = !shards_.empty();
    now.fleet = fleet_.name;
    now.policy_version = tables_ && from_fleet_ ? from_fleet_->version : 0;
    if (tables_)
        now.host = host_id(*tables_);
    if (redis_)
        now.redis = redis_->health();
    for (const Shard& shard : shards_)
        for (const auto& [name, budget] : shard.budgets) {
            const Share& share = shard.holder->share(name);
            const Allowance& allowed = share.at(now_ns);
            now.is_learning = now.is_learning || shard.holder->is_learning();
            now.budgets.push_back(
                {.service = budget.service,
                 .dimension = budget.dimension,
                 .limit = shard.holder->limit(name),
                 .demand = shard.holder->demand(name),
                 .share = allowed.per_second,
                 .unlimited = allowed.unlimited,
                 .is_leased = now_ns < share.valid_until_ns,
                 .left = nanoseconds(now_ns < share.valid_until_ns
                                         ? static_cast<int64_t>(share.valid_until_ns - now_ns)
                                         : 0)});
        }
    const std::lock_guard guard(mutex_);
    now.hosts = now.is_shared ? standing_.hosts : 0;
    now.duplicates = standing_.duplicates;
    now.lost = standing_.lost;
    now.error = std::move(standing_.error);
    now.unlisted = std::move(standing_.unlisted);
    now.sources = sources_.standing();
    now.drill_left = drill_.left();
    standing_ = std::move(now);
}

}  // namespace sluice
