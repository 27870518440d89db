// What FeedSync does when it may have missed something: compares itself with Redis.
#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>

#include "fleet/feed_sync.h"
#include "operate/gate_access.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

// Only what went wrong without a trace is found by it: 8 KiB from Redis each time.
constexpr milliseconds kCompare = 60s;
// Where the number of members is another one although all digests agree, all is read; not more
// often than this, as somebody may have written there by hand what never agrees.
constexpr auto kRecount = 1h;
// In one exchange.
constexpr size_t kMostBuckets = 64;
constexpr size_t kMostTombstones = 512;
// To read a million bans takes Redis 1.5 s. One host at a time does so, and rests in between, so
// that however many come back together, leases never wait behind more than one exchange and Redis
// spends 40 % of a core on it.
constexpr double kRest = 1.5;
// A host that died in its turn; longer than any exchange.
constexpr milliseconds kTurn = 5s;

redis::Command digest_of_bucket(const FeedKeys& keys, unsigned bucket) {
    redis::Command command{"GETRANGE", keys.digest};
    command.add(2 * bucket).add(2 * bucket + 1);
    return command;
}

// All that makes sense; what somebody wrote there by hand does not.
std::vector<FeedRecord> records_of(std::span<const redis::Reply> fields) {
    std::vector<FeedRecord> records;
    for (size_t i = 0; i + 1 < fields.size(); i += 2) {
        const auto member = fields[i].as_text(), value = fields[i + 1].as_text();
        auto record = member && value ? parse_feed_record(*member, *value)
                                      : Result<FeedRecord>(failed("no text"));
        if (record)
            records.push_back(*std::move(record));
    }
    return records;
}

bool has_digest(const std::vector<FeedRecord>& records, const redis::Reply& digest) {
    uint16_t sum = 0;
    for (const FeedRecord& record : records)
        sum = static_cast<uint16_t>(sum + record.digest);
    const auto text = digest.as_text();
    if (!text || text->size() != 2)
        return records.empty();
    return sum == (static_cast<uint8_t>((*text)[0]) << 8 | static_cast<uint8_t>((*text)[1]));
}

}  // namespace

// What the stream still has of the same history is cheaper to read there than in buckets.
Status FeedSync::catch_up() {
    while (!book_.epoch.empty() && !book_.feed_id.empty()) {
        const auto heard = hear();
        if (!heard)
            return heard.error();
        if (heard->meta.epoch != book_.epoch || !heard->is_whole)
            break;
        if (const Status taken = take(heard->entries); !taken)
            return taken;
        if (heard->is_all)
            break;
    }
    return {};
}

// Or goes on with it. Two have it at once only where one was held up for longer than kTurn.
Status FeedSync::take_turn() {
    redis::Command set{"SET", keys_->turn, "taken", is_my_turn_ ? "XX" : "NX", "PX"};
    set.add(kTurn.count());
    const auto replies = ask({set});
    if (!replies)
        return replies.error();
    is_waiting_ = !is_my_turn_ && (*replies)[0].is_nil();
    if (is_waiting_)
        return failed("another host reads all bans of the fleet; this one waits for its turn",
                      "it tries again by itself");
    is_my_turn_ = true;
    return {};
}

Status FeedSync::compare() {
    if (const Status caught_up = catch_up(); !caught_up)
        return caught_up;
    // The newest entry comes first: what is written meanwhile is news later, at worst twice.
    const auto replies = ask({{"XREVRANGE", keys_->feed, "+", "-", "COUNT", "1"},
                              feed_meta_command(*keys_),
                              {"GET", keys_->digest},
                              {"HGETALL", keys_->switches},
                              {"TIME"},
                              {"ZCARD", keys_->order}});
    if (!replies)
        return replies.error();
    const auto newest = (*replies)[0].as_array();
    const auto meta = parse_feed_meta((*replies)[1]);
    const auto digests = parse_feed_digests((*replies)[2]);
    const auto members = (*replies)[5].as_integer();
    for (const Status& read : {meta ? Status() : meta.error(), digests ? Status() : digests.error(),
                               newest ? Status() : newest.error(), learn_time((*replies)[4]),
                               members ? Status() : members.error()})
        if (!read)
            return read;

    const bool is_same = meta->epoch == book_.epoch;
    // One bucket in 65,536 has the digest of an empty one.
    const bool must_read_all = !is_same || is_miscounted_;
    const bool is_known = is_same || (book_.epoch.empty() && book_.size() == 0);
    if (meta->accepted_rev != 0 && (!is_known || meta->accepted_rev > book_.rev))
        is_accepted_ = true;
    book_.clear_away(*meta, now_ms());
    std::vector<unsigned> differing = unread_;
    for (unsigned bucket = 0; bucket < kFeedBuckets; ++bucket)
        if (must_read_all || book_.digests()[bucket] != (*digests)[bucket])
            differing.push_back(bucket);
    std::sort(differing.begin(), differing.end());
    differing.erase(std::unique(differing.begin(), differing.end()), differing.end());
    Found found;
    if (const Status read = read_buckets(differing, found); !read)
        return read;
    const auto unexplained = without_tombstones(found.absent);
    if (!unexplained)
        return unexplained.error();

    if (!found.news.empty() || !found.absent.empty() || !unexplained->empty() || is_accepted_) {
        const auto lock = lock_gate(pin_dir_, kPatience);
        if (!lock)
            return lock.error();
        FeedGate gate(*tables_);
        for (const Status& done :
             {put(gate, found.news), take_absent(gate, found.absent, *unexplained, found, is_known),
              is_accepted_ ? drop_lost(gate) : Status()})
            if (!done)
                return done;
    }
    take_switches((*replies)[3], is_known || is_accepted_);
    // Of a new history all is read: what it takes back may be among what the old one had.
    book_.feed_id.clear();
    if (is_known && !newest->empty())
        if (const auto entry = newest->front().as_array(); entry && !entry->empty())
            book_.feed_id = std::string(entry->front().as_text() ? *entry->front().as_text() : "");
    book_.epoch = meta->epoch;
    book_.rev = meta->rev;
    unread_ = found.damaged;
    if (must_read_all)
        all_read_ = Clock::now();
    is_miscounted_ = found.damaged.empty() && Clock::now() - all_read_ > kRecount &&
                     static_cast<int64_t>(book_.size() - book_.lost()) != *members;
    run_id_ = redis_->health().run_id;
    is_accepted_ = must_compare_ = false;
    is_changed_ = true;
    compare_due_ = Clock::now() + jittered(kCompare);
    const std::lock_guard guard(mutex_);
    standing_.damaged = std::move(found.damaged);
    return {};
}

Status FeedSync::read_buckets(const std::vector<unsigned>& buckets, Found& found) {
    is_my_turn_ = is_waiting_ = false;
    for (size_t first = 0; first < buckets.size(); first += kMostBuckets) {
        const auto begun = Clock::now();
        const size_t count = std::min(kMostBuckets, buckets.size() - first);
        if (buckets.size() > kMostBuckets)
            if (const Status turn = take_turn(); !turn)
                return turn;
        const auto torn = read_chunk(std::span(buckets).subspan(first, count), false, found);
        if (!torn)
            return torn.error();
        // Somebody may have written between the two readings; hardly twice in the same bucket.
        const auto damaged = read_chunk(*torn, true, found);
        if (!damaged)
            return damaged.error();
        std::ranges::copy(*damaged, std::back_inserter(found.damaged));
        if (first + count < buckets.size())
            std::this_thread::sleep_for(kRest * (Clock::now() - begun));
    }
    if (!is_my_turn_)
        return {};
    const auto over = ask({{"UNLINK", keys_->turn}});
    return over ? Status() : over.error();
}

// Returns those whose digest is of something else. They are left for another look, unless this is
// the last one.
Result<std::vector<unsigned>> FeedSync::read_chunk(std::span<const unsigned> buckets, bool is_last,
                                                   Found& found) {
    std::vector<unsigned> torn;
    if (buckets.empty())
        return torn;
    std::vector<redis::Command> commands;
    for (const unsigned bucket : buckets) {
        commands.push_back({"HGETALL", keys_->bucket(bucket)});
        commands.push_back(digest_of_bucket(*keys_, bucket));
    }
    const auto replies = ask(commands);
    if (!replies)
        return replies.error();
    for (size_t i = 0; i < buckets.size(); ++i) {
        const auto fields = (*replies)[2 * i].as_array();
        if (!fields)
            return fields.error();
        const auto records = records_of(*fields);
        if (!has_digest(records, (*replies)[2 * i + 1])) {
            torn.push_back(buckets[i]);
            if (!is_last)
                continue;
        }
        auto difference = book_.compare(buckets[i], records, now_ms());
        std::ranges::move(difference.news, std::back_inserter(found.news));
        std::ranges::move(difference.absent, std::back_inserter(found.absent));
    }
    return torn;
}

// Leaves those in `absent` that somebody took back, and returns the others.
Result<std::vector<HeldMember>> FeedSync::without_tombstones(std::vector<HeldMember>& absent) {
    std::vector<HeldMember> taken, unexplained;
    for (size_t first = 0; first < absent.size(); first += kMostTombstones) {
        const size_t count = std::min(kMostTombstones, absent.size() - first);
        std::vector<redis::Command> commands;
        for (size_t i = first; i < first + count; ++i)
            commands.push_back({"ZSCORE", keys_->gone, absent[i].member});
        const auto replies = ask(commands);
        if (!replies)
            return replies.error();
        for (size_t i = 0; i < count; ++i)
            ((*replies)[i].is_nil() ? unexplained : taken).push_back(std::move(absent[first + i]));
    }
    absent = std::move(taken);
    return unexplained;
}

// A server that lost something is no order to drop bans.
Status FeedSync::take_absent(FeedGate& gate, std::vector<HeldMember>& taken,
                             const std::vector<HeldMember>& unexplained, const Found& found,
                             bool is_known) {
    const bool are_few = is_known && unexplained.size() <= kMostUnexplained;
    for (const HeldMember& member : unexplained) {
        const bool is_damaged =
            std::ranges::find(found.damaged, feed_bucket(member.record.prefix)) !=
            found.damaged.end();
        if (is_accepted_ || (are_few && !is_damaged))
            taken.push_back(member);
        else
            book_.mark_lost(member.record.prefix, member.member);
    }
    return remove(gate, taken);
}

void FeedSync::take_switches(const redis::Reply& reply, bool is_known) {
    const auto fields = reply.as_array();
    if (!fields)
        return;
    std::map<std::string, HeldSwitch, std::less<>> switches;
    for (size_t i = 0; i + 1 < fields->size(); i += 2) {
        const auto target = (*fields)[i].as_text(), value = (*fields)[i + 1].as_text();
        const auto word =
            target && value ? parse_feed_switch(*value) : Result<FeedSwitch>(failed("no text"));
        if (word && !word->is_over(now_ms()))
            switches[std::string(*target)] = {*word, false};
    }
    for (const auto& [target, held] : book_.switches)
        if (!switches.contains(target) && !held.word.is_over(now_ms()) &&
            (!is_known || (held.lost && !is_accepted_)))
            switches[target] = {held.word, true};
    book_.switches = std::move(switches);
}

}  // namespace sluice
