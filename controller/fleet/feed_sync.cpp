#include "fleet/feed_sync.h"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "fleet/budget_sync.h"
#include "gate/policy_store.h"
#include "operate/gate_access.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// How late a host hears of a change, with a tenth of jitter.
constexpr milliseconds kPoll = 250ms;
// What one answer brings: a few hundred KiB.
constexpr size_t kMostEntries = 512;
// Whoever is called once waits so long for its turn to read much.
constexpr milliseconds kTurnPatience = 30s;
// The book is written down after so many times what that took, and not more often than this.
constexpr int kSavePause = 4;
constexpr milliseconds kLeastSavePause = 1s;

uint64_t wall_ms() {
    return static_cast<uint64_t>(std::chrono::duration_cast<milliseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
}

}  // namespace

FeedSync::FeedSync(std::string pin_dir, const std::string& state_dir, const RedisDrill& drill)
    : pin_dir_(std::move(pin_dir)),
      drill_(drill),
      file_(state_dir),
      redis_ms_(wall_ms()),
      random_(static_cast<uint32_t>(redis::random_seed())) {}

// --- when ----------------------------------------------------------------------------------------

void FeedSync::step() {
    if (look_at_gate())
        look_at_policy();
    if (!redis_) {
        publish();
        return;
    }
    const auto now = Clock::now();
    if (now >= due_) {
        due_ = now + jittered(kPoll);
        const Status done = must_compare_ || now >= compare_due_ ? compare() : poll();
        if (!done)
            must_compare_ = true;
        note(done);
        if (const Status followed = follow_switches(); !followed && done)
            note(followed);
    }
    save_in_time();
    publish();
}

Status FeedSync::round() {
    if (const auto gate = open_gate(pin_dir_); !gate)
        return gate.error();
    if (!look_at_gate())
        return failed("the gate in " + pin_dir_ + " is being taken off or put on", "try again");
    look_at_policy();
    if (!settings_)
        return failed("this host is in no fleet: its policy has no [redis]",
                      "add [redis] url = \"redis://…\" to its configuration");
    Status done = redis_ ? compare() : Status(failed(standing().error));
    const auto deadline = Clock::now() + kTurnPatience;
    while (!done && is_waiting_ && Clock::now() < deadline) {
        std::this_thread::sleep_for(kPoll);
        done = compare();
    }
    if (done)
        done = follow_switches();
    note(done);
    if (done && is_changed_)
        done = file_.save(book_, fleet_);
    publish();
    return done;
}

bool FeedSync::look_at_gate() {
    const auto pin = gate_pin(pin_dir_);
    if (tables_ && pin && pin == pin_)
        return true;
    tables_.reset();
    redis_.reset();
    settings_.reset();
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

void FeedSync::look_at_policy() {
    const uint64_t version = current_policy_version(*tables_);
    if (version == policy_version_)
        return;
    const auto policy = current_policy(*tables_);
    if (!policy)
        return;  // one that is being changed is read the next time
    policy_version_ = policy->version;
    if (policy->policy.redis == settings_ && policy->policy.fleet.name == fleet_)
        return;
    note(begin(policy->policy));
}

// Another fleet, or the same one at another place.
Status FeedSync::begin(const Policy& policy) {
    settings_ = policy.redis;
    fleet_ = policy.fleet.name;
    redis_.reset();
    if (!settings_)
        return {};
    keys_.emplace(fleet_);
    book_ = file_.load(fleet_);
    auto unread = FeedGate(*tables_).align(book_);
    if (!unread)
        return unread.error();
    unread_ = *std::move(unread);
    must_compare_ = true;
    auto redis = Redis::open(redis_options(*settings_));
    if (!redis)
        return redis.error();
    redis_.emplace(*std::move(redis));
    return {};
}

milliseconds FeedSync::jittered(milliseconds time) {
    const auto tenth = time.count() / 10;
    return milliseconds(
        std::uniform_int_distribution(time.count() - tenth, time.count() + tenth)(random_));
}

// --- Redis ---------------------------------------------------------------------------------------

Result<std::vector<redis::Reply>> FeedSync::ask(const std::vector<redis::Command>& commands) {
    if (const Status may_ask = drill_.check(); !may_ask)
        return may_ask.error();
    auto replies = redis_->run(commands);
    if (!replies)
        return replies;
    for (const redis::Reply& reply : *replies)
        if (const Status fine = reply.check(); !fine)
            return fine.error();
    return replies;
}

Status FeedSync::learn_time(const redis::Reply& reply) {
    const auto parts = reply.as_array();
    if (!parts || parts->size() != 2)
        return failed("TIME: Redis's answer makes no sense");
    uint64_t values[2] = {};
    for (size_t i = 0; i < 2; ++i) {
        const auto text = (*parts)[i].as_text();
        values[i] = text ? std::strtoull(std::string(*text).c_str(), nullptr, 10) : 0;
    }
    redis_ms_ = values[0] * 1000 + values[1] / 1000;
    heard_ = Clock::now();
    return {};
}

uint64_t FeedSync::now_ms() const {
    const auto since = std::chrono::duration_cast<milliseconds>(Clock::now() - heard_);
    return redis_ms_ + static_cast<uint64_t>(since.count());
}

// --- what changed --------------------------------------------------------------------------------

Result<FeedSync::Heard> FeedSync::hear() {
    redis::Command read{"XREAD", "COUNT"};
    read.add(kMostEntries).add("STREAMS").add(keys_->feed);
    read.add(book_.feed_id.empty() ? "0" : book_.feed_id);
    const auto replies = ask({feed_meta_command(*keys_), read, {"TIME"}});
    if (!replies)
        return replies.error();
    auto meta = parse_feed_meta((*replies)[0]);
    if (!meta)
        return meta.error();
    auto entries = parse_feed_entries((*replies)[1]);
    if (!entries)
        return entries.error();
    if (const Status learned = learn_time((*replies)[2]); !learned)
        return learned.error();
    Heard heard{*std::move(meta), *std::move(entries), false, true};
    uint64_t expected = book_.rev;
    for (const FeedEntry& entry : heard.entries)
        if (entry.rev > book_.rev && entry.rev != ++expected)
            heard.is_whole = false;
    heard.is_all = heard.entries.size() < kMostEntries;
    if (heard.is_all && expected < heard.meta.rev)
        heard.is_whole = false;
    return heard;
}

Status FeedSync::poll() {
    const auto heard = hear();
    if (!heard)
        return heard.error();
    // Another server, or one that lost what it had: what it says now does not follow from before.
    if (heard->meta.epoch != book_.epoch || redis_->health().run_id != run_id_ || !heard->is_whole)
        return compare();
    if (const Status taken = take(heard->entries); !taken)
        return taken;
    if (!heard->is_all)
        due_ = Clock::now();
    return {};
}

Status FeedSync::take(const std::vector<FeedEntry>& entries) {
    if (entries.empty())
        return {};
    const auto lock = lock_gate(pin_dir_, kPatience);
    if (!lock)
        return lock.error();
    FeedGate gate(*tables_);
    std::vector<FeedRecord> records;  // those in a row go together
    for (const FeedEntry& entry : entries) {
        const auto* record = std::get_if<FeedRecord>(&entry.change);
        if (record != nullptr && book_.is_news(*record))
            records.push_back(*record);
        if (record != nullptr)
            continue;
        for (const Status& done : {put(gate, records), take_one(gate, entry)})
            if (!done)
                return done;
    }
    if (const Status done = put(gate, records); !done)
        return done;
    book_.feed_id = entries.back().id;
    book_.rev = std::max(book_.rev, entries.back().rev);
    is_changed_ = true;
    return {};
}

Status FeedSync::take_one(FeedGate& gate, const FeedEntry& entry) {
    if (const auto* removal = std::get_if<FeedRemoval>(&entry.change)) {
        if (const Status gone = remove(gate, book_.taken_by(*removal, entry.rev)); !gone)
            return gone;
        return gate.grant_grace(*removal, now_ms());
    }
    if (const auto* switched = std::get_if<FeedSwitched>(&entry.change)) {
        const auto held = book_.switches.find(switched->target);
        if (held != book_.switches.end() && held->second.word.rev >= entry.rev)
            return {};
        if (switched->to)
            book_.switches[switched->target] = {*switched->to, false};
        else if (held != book_.switches.end())
            book_.switches.erase(held);
    }
    if (std::holds_alternative<FeedAcceptance>(entry.change)) {
        // What has gone there without this host's notice is accepted, too.
        is_accepted_ = must_compare_ = true;
        return drop_lost(gate);
    }
    return {};
}

// The gate first: what is in the book is in force.
Status FeedSync::put(FeedGate& gate, std::vector<FeedRecord>& records) {
    if (records.empty())
        return {};
    const auto refused = gate.put(records, book_, now_ms());
    if (!refused)
        return refused.error();
    for (const FeedRecord& record : records)
        book_.put(record);
    records.clear();
    is_changed_ = true;
    const std::lock_guard guard(mutex_);
    standing_.refused += refused->count;
    if (!refused->first.empty())
        standing_.refusal = refused->first;
    return {};
}

Status FeedSync::remove(FeedGate& gate, const std::vector<HeldMember>& members) {
    for (const HeldMember& member : members) {
        if (const Status gone = gate.remove(member); !gone)
            return gone;
        book_.erase(member.record.prefix, member.member);
        is_changed_ = true;
    }
    return {};
}

Status FeedSync::drop_lost(FeedGate& gate) {
    std::erase_if(book_.switches, [](const auto& entry) { return entry.second.lost; });
    is_changed_ = true;
    return remove(gate, book_.lost_members());
}

// --- this host -----------------------------------------------------------------------------------

Status FeedSync::follow_switches() {
    FeedGate gate(*tables_);
    if (gate.follows_switches(book_, now_ms()))
        return {};
    const auto lock = lock_gate(pin_dir_, kPatience);
    if (!lock)
        return lock.error();
    is_changed_ = true;
    return gate.follow_switches(book_, now_ms());
}

void FeedSync::compare_soon() {
    must_compare_ = true;
    due_ = {};
}

void FeedSync::save() {
    if (!is_changed_ || !keys_)
        return;
    const auto begun = Clock::now();
    // Without it the next start reads everything; bans themselves are in the daemon's own state.
    (void)file_.save(book_, fleet_);
    saved_ = Clock::now();
    save_took_ = saved_ - begun;
    is_changed_ = false;
}

void FeedSync::save_in_time() {
    const Clock::duration pause =
        std::max<Clock::duration>(kLeastSavePause, kSavePause * save_took_);
    if (Clock::now() - saved_ >= pause)
        save();
}

void FeedSync::note(const Status& status) {
    const std::lock_guard guard(mutex_);
    standing_.error = status ? std::string() : status.error().message;
    if (status && redis_)
        standing_.synced = Clock::now();
}

FeedStanding FeedSync::standing() const {
    const std::lock_guard guard(mutex_);
    return standing_;
}

void FeedSync::publish() {
    const auto lost_switches =
        std::ranges::count_if(book_.switches, [](const auto& entry) { return entry.second.lost; });
    const std::lock_guard guard(mutex_);
    standing_.is_followed = settings_.has_value();
    standing_.fleet = fleet_;
    standing_.rev = book_.rev;
    standing_.records = book_.size();
    standing_.switches = book_.switches.size();
    standing_.lost = book_.lost() + static_cast<size_t>(lost_switches);
    if (redis_)
        standing_.redis = redis_->health();
}

}  // namespace sluice
