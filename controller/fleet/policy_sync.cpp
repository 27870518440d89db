#include "fleet/policy_sync.h"

#include <utility>
#include <vector>

#include "base/clocks.h"
#include "fleet/budget_sync.h"
#include "fleet/canary_hosts.h"
#include "fleet/policy_budgets.h"
#include "fleet/policy_in_redis.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How late a host hears of a version, with a tenth of jitter.
constexpr milliseconds kPoll = 250ms;
// Another program writes the tables: soon it is done.
constexpr milliseconds kRetryBusy = 100ms;
// What can't be put in force can be a moment later, where what is in its way has gone.
constexpr milliseconds kRetryRefused = 5s;
// A disk that was full may have room again.
constexpr milliseconds kRetrySave = 1s;
// Who changes the policy writes its shared budgets at once. If he was killed in between, some host
// does it: not all of them at the same moment.
constexpr milliseconds kForgotten = 3s;

}  // namespace

PolicySync::PolicySync(const std::string& state_dir, const RedisDrill& drill)
    : file_(state_dir), drill_(drill), random_(static_cast<uint32_t>(redis::random_seed())) {}

// --- from other threads --------------------------------------------------------------------------

void PolicySync::follow(FleetMember member) {
    const std::lock_guard guard(mutex_);
    next_member_ = std::move(member);
}

std::optional<FleetVersion> PolicySync::take_offer() {
    const std::lock_guard guard(mutex_);
    return std::exchange(offer_, std::nullopt);
}

void PolicySync::answered(const Status& status) {
    const std::lock_guard guard(mutex_);
    answer_ = status;
}

PolicyStanding PolicySync::standing() const {
    const std::lock_guard guard(mutex_);
    return standing_;
}

// --- in its own thread ---------------------------------------------------------------------------

bool PolicySync::step() {
    std::optional<FleetMember> member;
    {
        const std::lock_guard guard(mutex_);
        member = std::exchange(next_member_, std::nullopt);
    }
    if (member && *member != member_)
        begin(*std::move(member));
    take_answer();
    save_in_time();
    if (!redis_)
        return false;
    const bool was_offered = is_offered_;
    const auto now = Clock::now();
    if (now >= due_) {
        due_ = now + jittered(kPoll);
        const Status may_ask = drill_.check();
        note(may_ask ? poll() : may_ask);
    }
    if (!is_offered_ && version_ && fetched_ != applied_ && now >= offer_due_)
        offer();
    return is_offered_ && !was_offered;
}

Status PolicySync::round() {
    (void)step();
    if (!redis_)
        return failed("this host is in no fleet: its policy has no [redis]",
                      "add [redis] url = \"redis://…\" to its configuration");
    const std::string error = standing().error;
    return error.empty() ? Status() : failed(error);
}

void PolicySync::begin(FleetMember member) {
    const bool is_same = member.redis == member_.redis && member.fleet == member_.fleet;
    member_ = std::move(member);
    if (!is_same) {
        redis_.reset();
        version_.reset();
        fetched_ = applied_ = {};
        overrides_.clear();
        seen_rev_ = 0;
        is_offered_ = false;
    }
    Status opened;
    if (member_.redis && !redis_) {
        keys_.emplace(member_.fleet);
        auto redis = Redis::open(redis_options(*member_.redis));
        if (redis)
            redis_.emplace(*std::move(redis));
        else
            opened = redis.error();
    }
    due_ = {};
    const auto kept = is_same ? std::nullopt : file_.load(member_.fleet);
    if (!is_same) {
        newest_ms_ = kept ? kept->since_ms : 0;
        unsaved_.reset();
    }
    const std::lock_guard guard(mutex_);
    if (!is_same) {
        standing_ = {};
        // Whoever puts policies in force began with it.
        standing_.applied = kept ? kept->version : 0;
        standing_.is_canary = kept && kept->is_canary;
        offer_.reset();
        answer_.reset();
    }
    standing_.is_followed = member_.redis.has_value();
    standing_.fleet = member_.fleet;
    standing_.error = opened ? std::string() : opened.error().message;
}

void PolicySync::take_answer() {
    std::optional<Status> answer;
    {
        const std::lock_guard guard(mutex_);
        answer = std::exchange(answer_, std::nullopt);
    }
    if (!answer || !is_offered_ || !version_)
        return;
    is_offered_ = false;
    const bool is_busy = !*answer && answer->error().busy;
    offer_due_ = Clock::now() + (is_busy ? kRetryBusy : kRetryRefused);
    if (*answer) {
        applied_ = fetched_;
        newest_ms_ = version_->since_ms;
        unsaved_ = version_;
        save_due_ = {};
    }
    const std::lock_guard guard(mutex_);
    standing_.refused = *answer || is_busy ? 0 : version_->version;
    standing_.refusal = standing_.refused == 0 ? std::string() : answer->error().message;
    if (*answer) {
        standing_.applied = version_->version;
        standing_.is_canary = version_->is_canary;
    }
}

// Without it the next start has an older one until Redis answers.
void PolicySync::save_in_time() {
    const auto now = Clock::now();
    if (!unsaved_ || now < save_due_)
        return;
    save_due_ = now + kRetrySave;
    const Status saved = file_.save(*unsaved_);
    if (saved)
        unsaved_.reset();
    const std::lock_guard guard(mutex_);
    standing_.unsaved = saved ? std::string() : saved.error().message;
}

PolicySync::Wanted PolicySync::pick(const PolicyPointers& pointers) const {
    const auto canaries = pointers.canary != 0 ? CanaryHosts::parse(pointers.canary_hosts)
                                               : failed("there is no canary");
    if (canaries && canaries->has(member_.id, member_.name))
        return {pointers.canary, pointers.canary_since_ms, true, overrides_};
    return {pointers.current, pointers.since_ms, false, overrides_};
}

Status PolicySync::poll() {
    const auto reply = redis_->run(policy_pointers_command(*keys_));
    const auto pointers = reply ? parse_policy_pointers(*reply) : reply.error();
    if (!pointers)
        return pointers.error();
    if (pointers->rev != seen_rev_) {
        if (const Status read = read_overrides(); !read)
            return read;
        seen_rev_ = pointers->rev;
    }
    const Wanted wanted = pick(*pointers);
    const bool is_older = wanted.version != 0 && pointers->stamp_ms < newest_ms_;
    {
        const std::lock_guard guard(mutex_);
        standing_.current = pointers->current;
        standing_.wanted = wanted.version;
        standing_.canary = pointers->canary;
        standing_.canary_hosts = pointers->canary_hosts;
        // An empty Redis is no order to have no policy.
        standing_.is_lost = wanted.version == 0 && standing_.applied != 0;
        standing_.is_older = is_older;
    }
    if (is_offered_ || is_older)
        return {};
    if (wanted.version != 0 && wanted != fetched_) {
        if (const Status fetched = fetch(wanted); !fetched)
            return fetched;
    } else if (fetched_ == applied_) {
        forget_refusal();
    }
    return write_forgotten_budgets(*pointers);
}

// Of a version that this host is not to have any more.
void PolicySync::forget_refusal() {
    const std::lock_guard guard(mutex_);
    standing_.refused = 0;
    standing_.refusal.clear();
}

Status PolicySync::read_overrides() {
    auto state = read_policy_state(*redis_, *keys_);
    if (!state)
        return state.error();
    ahead_ms_ = static_cast<int64_t>(state->now_ms) - static_cast<int64_t>(boot_clock_ms());
    overrides_ = std::move(state->overrides);
    return {};
}

Status PolicySync::fetch(const Wanted& wanted) {
    const bool is_same =
        version_ && fetched_.version == wanted.version && fetched_.since_ms == wanted.since_ms;
    std::string text = is_same ? version_->text : std::string();
    if (!is_same) {
        auto stored = read_policy_version(*redis_, *keys_, wanted.version);
        if (!stored) {
            const std::lock_guard guard(mutex_);
            standing_.refused = wanted.version;
            standing_.refusal = stored.error().message;
            return stored.error();
        }
        text = std::move(stored->text);
    }
    version_ = FleetVersion{.fleet = member_.fleet,
                            .version = wanted.version,
                            .since_ms = wanted.since_ms,
                            .is_canary = wanted.is_canary,
                            .text = std::move(text),
                            .overrides = wanted.overrides};
    for (PolicyOverride& entry : version_->overrides)
        entry.until_ms = static_cast<uint64_t>(static_cast<int64_t>(entry.until_ms) - ahead_ms_);
    fetched_ = wanted;
    offer_due_ = {};
    forget_refusal();
    return {};
}

void PolicySync::offer() {
    is_offered_ = true;
    const std::lock_guard guard(mutex_);
    offer_ = version_;
}

Status PolicySync::write_forgotten_budgets(const PolicyPointers& pointers) {
    const auto now = Clock::now();
    const uint64_t redis_ms = boot_clock_ms() + static_cast<uint64_t>(ahead_ms_);
    const bool is_due = pointers.again_ms != 0 && pointers.again_ms <= redis_ms;
    const uint64_t forgotten_ms =
        pointers.unwritten_ms == 0 && is_due ? pointers.again_ms : pointers.unwritten_ms;
    if (forgotten_ms != forgotten_ms_) {
        forgotten_ms_ = forgotten_ms;
        forgotten_since_ = now + milliseconds(random_() % kForgotten.count());
    }
    if (forgotten_ms_ == 0 || now < forgotten_since_ + kForgotten)
        return {};
    forgotten_since_ = now;
    if (pointers.unwritten_ms == 0) {
        const auto reply = redis_->run(policy_owe_command(*keys_, 0));
        const auto owed = reply ? parse_policy_owed(*reply) : reply.error();
        if (!owed)
            return owed.error();
    }
    return write_owed_budgets(*redis_, member_.fleet);
}

milliseconds PolicySync::jittered(milliseconds time) {
    const auto tenth = time.count() / 10;
    return milliseconds(
        std::uniform_int_distribution(time.count() - tenth, time.count() + tenth)(random_));
}

void PolicySync::note(const Status& status) {
    const std::lock_guard guard(mutex_);
    standing_.error = status ? std::string() : status.error().message;
}

}  // namespace sluice
