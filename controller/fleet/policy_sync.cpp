#include "fleet/policy_sync.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include "fleet/budget_sync.h"
#include "fleet/canary_hosts.h"
#include "fleet/policy_budgets.h"

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
// Who changes the policy writes its shared budgets at once. If he was killed in between, some host
// does it: not all of them at the same moment.
constexpr milliseconds kForgotten = 3s;

uint64_t wall_clock_ms() {
    return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
}

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
    Status saved;
    if (*answer) {
        applied_ = fetched_;
        // Without it the next start has an older one until Redis answers.
        saved = file_.save(*version_);
    }
    const std::lock_guard guard(mutex_);
    standing_.refused = *answer || is_busy ? 0 : version_->version;
    standing_.refusal = standing_.refused == 0 ? std::string() : answer->error().message;
    if (*answer) {
        standing_.applied = version_->version;
        standing_.is_canary = version_->is_canary;
    }
    if (!saved)
        standing_.error = "the policy would not outlive a reboot: " + saved.error().message;
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
    {
        const std::lock_guard guard(mutex_);
        standing_.current = pointers->current;
        standing_.canary = pointers->canary;
        standing_.canary_hosts = pointers->canary_hosts;
        // An empty Redis is no order to have no policy.
        standing_.is_lost = wanted.version == 0 && standing_.applied != 0;
    }
    if (wanted.version != 0 && wanted != fetched_ && !is_offered_)
        if (const Status fetched = fetch(wanted); !fetched)
            return fetched;
    return write_forgotten_budgets(*pointers);
}

Status PolicySync::read_overrides() {
    const auto replies =
        redis_->run(std::vector<redis::Command>{{"HGETALL", keys_->base}, {"TIME"}});
    if (!replies)
        return replies.error();
    auto overrides = parse_policy_overrides((*replies)[0]);
    if (!overrides)
        return overrides.error();
    const auto time = (*replies)[1].as_array();
    const auto seconds = time && time->size() == 2 ? (*time)[0].as_text() : failed("no time");
    const auto micros = seconds ? (*time)[1].as_text() : seconds;
    if (!micros)
        return failed("TIME: Redis's answer makes no sense");
    const int64_t redis_ms = std::strtoll(std::string(*seconds).c_str(), nullptr, 10) * 1000 +
                             std::strtoll(std::string(*micros).c_str(), nullptr, 10) / 1000;
    ahead_ms_ = redis_ms - static_cast<int64_t>(wall_clock_ms());
    (void)drop_ended(*overrides, static_cast<uint64_t>(redis_ms));
    overrides_ = *std::move(overrides);
    return {};
}

Result<std::string> PolicySync::read_text(uint64_t version) {
    const auto replies = redis_->run(std::vector<redis::Command>{
        policy_version_command(*keys_, version), {"GET", keys_->text(version)}});
    if (!replies)
        return replies.error();
    const auto known = parse_policy_version(version, (*replies)[0]);
    return known ? parse_policy_text(*known, (*replies)[1]) : known.error();
}

Status PolicySync::fetch(const Wanted& wanted) {
    const bool is_same =
        version_ && fetched_.version == wanted.version && fetched_.since_ms == wanted.since_ms;
    auto text = is_same ? Result<std::string>(version_->text) : read_text(wanted.version);
    if (!text) {
        const std::lock_guard guard(mutex_);
        standing_.refused = wanted.version;
        standing_.refusal = text.error().message;
        return text.error();
    }
    version_ = FleetVersion{.fleet = member_.fleet,
                            .version = wanted.version,
                            .since_ms = wanted.since_ms,
                            .is_canary = wanted.is_canary,
                            .text = *std::move(text),
                            .overrides = wanted.overrides};
    for (PolicyOverride& entry : version_->overrides)
        entry.until_ms = static_cast<uint64_t>(static_cast<int64_t>(entry.until_ms) - ahead_ms_);
    fetched_ = wanted;
    offer_due_ = {};
    const std::lock_guard guard(mutex_);
    standing_.refused = 0;
    standing_.refusal.clear();
    return {};
}

void PolicySync::offer() {
    is_offered_ = true;
    const std::lock_guard guard(mutex_);
    offer_ = version_;
}

Status PolicySync::write_forgotten_budgets(const PolicyPointers& pointers) {
    const auto now = Clock::now();
    if (pointers.unwritten_ms != forgotten_ms_) {
        forgotten_ms_ = pointers.unwritten_ms;
        forgotten_since_ = now + milliseconds(random_() % kForgotten.count());
    }
    if (forgotten_ms_ == 0 || now < forgotten_since_ + kForgotten)
        return {};
    forgotten_since_ = now;
    auto text = read_text(pointers.current);
    if (!text)
        return text.error();
    const Status written = write_budgets_in_time(*redis_, member_.fleet, *text, overrides_,
                                                 budgets_version(forgotten_ms_));
    if (!written)
        return written;
    const auto noted = redis_->run(policy_written_command(*keys_, forgotten_ms_));
    return noted ? noted->check() : noted.error();
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
