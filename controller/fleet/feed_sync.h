// This host's side of the fleet's change feed: hears of bans, allows and switches within a quarter
// of a second, and compares itself with Redis whenever it may have missed something.
//
// Where Redis is comes from the policy in the gate, so this needs nothing but its pins and a
// folder. For one thread, which may wait for Redis; standing() alone is for others as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fleet/feed_book.h"
#include "fleet/feed_file.h"
#include "fleet/feed_gate.h"
#include "fleet/redis_drill.h"
#include "gate/tables.h"
#include "redis/redis.h"

namespace sluice {

// With the same state in Redis so many bans may be absent there, though nobody took them back
// within the hour that tombstones last: a host that was away for longer meets a few. More of them,
// or any of a state that was lost, stay until somebody says that this is right.
inline constexpr size_t kMostUnexplained = 100;

struct FeedStanding {
    bool is_followed = false;  // the policy names a Redis
    std::string fleet;
    uint64_t rev = 0;      // of the last change that is in force here
    size_t records = 0;    // bans and allows of the fleet
    size_t switches = 0;   // of the fleet
    size_t lost = 0;       // of both: Redis does not have them any more; they hold until accepted
    uint64_t refused = 0;  // fleet bans that this host's own guards keep from its packets, so far
    std::string refusal;   // the last of them, and why
    std::string error;     // of the last round; empty where it was answered
    std::vector<unsigned> damaged;  // buckets that Redis has lost a part of
    std::optional<std::chrono::steady_clock::time_point>
        synced;  // the last round that was answered
    redis::Health redis;
};

class FeedSync {
  public:
    // While `drill` is on, Redis is not asked.
    FeedSync(std::string pin_dir, const std::string& state_dir, const RedisDrill& drill);

    // Does what is due. To be called every 50 ms or so.
    void step();
    // The next step compares with Redis, whatever is due.
    void compare_soon();
    // Writes down what is not on disk yet; to be called at the end.
    void save();
    // Compares with Redis now, and writes the book down: for a host without a daemon.
    Status round();
    [[nodiscard]] FeedStanding standing() const;

  private:
    using Clock = std::chrono::steady_clock;
    // Who writes to the gate otherwise is done by then; if not, the next poll tries again.
    static constexpr std::chrono::milliseconds kPatience{200};

    // What the stream has since the last time.
    struct Heard {
        FeedMeta meta;
        std::vector<FeedEntry> entries;
        bool is_all = false;    // there was no more
        bool is_whole = false;  // nothing was cut in between
    };
    // What Redis has of the buckets that differ.
    struct Found {
        std::vector<FeedRecord> news;
        std::vector<HeldMember> absent;
        std::vector<unsigned> damaged;  // what is there is not what was put there
    };

    bool look_at_gate();
    void look_at_policy();
    Status begin(const Policy& policy);
    Result<Heard> hear();
    Status poll();
    // feed_compare.cpp
    Status compare();
    Status catch_up();
    Status take_turn();
    Status read_buckets(const std::vector<unsigned>& buckets, Found& found);
    Result<std::vector<unsigned>> read_chunk(std::span<const unsigned> buckets, bool is_last,
                                             Found& found);
    Result<std::vector<HeldMember>> without_tombstones(std::vector<HeldMember>& absent);
    Status take_absent(FeedGate& gate, std::vector<HeldMember>& taken,
                       const std::vector<HeldMember>& unexplained, const Found& found,
                       bool is_known);
    void take_switches(const redis::Reply& reply, bool is_known);
    // feed_sync.cpp again
    Status take(const std::vector<FeedEntry>& entries);
    Status take_one(FeedGate& gate, const FeedEntry& entry);
    Status put(FeedGate& gate, std::vector<FeedRecord>& records);
    Status remove(FeedGate& gate, const std::vector<HeldMember>& members);
    Status drop_lost(FeedGate& gate);
    Status follow_switches();
    Result<std::vector<redis::Reply>> ask(const std::vector<redis::Command>& commands);
    Status learn_time(const redis::Reply& reply);
    [[nodiscard]] uint64_t now_ms() const;
    std::chrono::milliseconds jittered(std::chrono::milliseconds time);
    void note(const Status& status);
    void save_in_time();
    void publish();

    std::string pin_dir_;
    const RedisDrill& drill_;
    FeedFile file_;
    std::optional<Tables> tables_;
    std::optional<uint64_t> pin_;  // of these tables
    uint64_t policy_version_ = 0;
    std::optional<RedisSettings> settings_;
    std::string fleet_;
    std::optional<FeedKeys> keys_;
    std::optional<Redis> redis_;
    std::string run_id_;  // of the server that was compared with

    FeedBook book_;
    std::vector<unsigned> unread_;  // buckets that are to be read whatever their digests say
    bool must_compare_ = true;
    bool is_my_turn_ = false;     // to read much
    bool is_waiting_ = false;     // for that
    bool is_miscounted_ = false;  // Redis has more members, or fewer, and the same digests
    Clock::time_point all_read_{};
    bool is_accepted_ = false;  // somebody said that what Redis has is right
    bool is_changed_ = false;   // since the book was written down
    uint64_t redis_ms_;         // Redis's clock, when it was last heard, and when that was
    Clock::time_point heard_ = Clock::now();
    Clock::time_point due_{}, compare_due_{};
    Clock::time_point saved_{};
    Clock::duration save_took_{};
    std::minstd_rand random_;

    mutable std::mutex mutex_;
    FeedStanding standing_;
};

}  // namespace sluice
