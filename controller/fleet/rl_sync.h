// This host's side of another limiter's keys: hears within a second what they say, and works out
// what that means for the services here. Its whitelist is put into the gate; the limits are for
// whoever puts policies in force. Nothing of it is ever written in Redis.
//
// step() is for one thread, which may wait for Redis; all else is for others as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/redis_drill.h"
#include "fleet/rl_memory.h"
#include "fleet/rl_policy.h"
#include "fleet/rl_whitelist.h"
#include "policy/policy.h"
#include "redis/redis.h"

namespace sluice {

// Whose keys are followed, and for which services.
struct RlMember {
    std::optional<RedisSettings> redis{};
    std::optional<RlSettings> settings{};  // nothing: nobody's
    std::vector<std::string> services{};   // of the policy in force

    friend bool operator==(const RlMember&, const RlMember&) = default;
};
RlMember rl_member(const Policy& own, const Policy& in_force);

struct RlStanding {
    bool is_followed = false;
    // By what was on disk, or by Redis: until then nothing is known of the services.
    bool is_heard = false;
    std::vector<RlService> services;  // those of which Redis says anything, or something wrong
    std::optional<double> users_per_source;
    RlWhitelist whitelist;        // as it was read last
    std::string whitelist_error;  // why it is not as Redis has it; empty where it is
    std::string unsaved;          // why what is known would not outlive a restart
    std::string error;            // of the last poll; empty where it was answered
    std::optional<std::chrono::steady_clock::time_point> synced;  // the last one that was
};

// By what the book has.
std::vector<RlService> rl_services(const RlMember& member, const RlBook& book);
// By what the disk has: what holds before Redis answers. Errors as those of RlFile::load().
Result<std::vector<RlService>> kept_rl_services(const RlMember& member,
                                                const std::string& state_dir);

class RlSync {
  public:
    // Called before the gate gets another whitelist, with the number of addresses before and after.
    using OnWhitelist = std::function<void(size_t before, size_t after)>;

    // While `drill` is on, Redis is not asked. It outlives this.
    RlSync(std::string pin_dir, const std::string& state_dir, const RedisDrill& drill,
           OnWhitelist on_whitelist);

    void follow(RlMember member);
    // Does what is due; whether the services have other limits now. To be called every 25 ms or so.
    bool step();
    [[nodiscard]] RlStanding standing() const;

  private:
    using Clock = std::chrono::steady_clock;

    void begin(RlMember member);
    Status poll();
    Status take_numbers(std::span<const redis::Reply> replies);
    [[nodiscard]] std::optional<RlNumbers> base_of(const std::string& key) const;
    Status take_whitelist(const redis::Reply& length);
    Status read_whitelist();
    Status put_whitelist();
    void save();
    bool publish();
    void note(const Status& status, Clock::time_point now);

    std::string pin_dir_;
    const RedisDrill& drill_;
    OnWhitelist on_whitelist_;
    RlFile file_;
    RlMember member_;
    std::vector<std::string> keys_;  // behind the prefix
    std::optional<Redis> redis_;
    Status sound_;  // why Redis is not asked, though it is to be followed
    RlBook book_;
    bool is_begun_ = false;
    Clock::time_point due_{};

    RlWhitelist whitelist_;
    int64_t whitelist_length_ = -1;            // as Redis had it; -1: never heard
    Clock::time_point whitelist_due_{};        // to be read, whatever its length
    std::optional<uint64_t> whitelisted_;      // the gate that has it, by its pin
    std::set<IpAddress> put_;                  // what that has
    std::optional<Clock::time_point> missed_;  // since when there is none, and may come back
    std::minstd_rand random_;

    mutable std::mutex mutex_;
    std::optional<RlMember> next_member_;
    RlStanding standing_;
};

}  // namespace sluice
