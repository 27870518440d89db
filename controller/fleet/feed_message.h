// What is written to a fleet's change feed, and what comes out of it: members, records, entries and
// the calls of the scripts. controller/fleet/lua/feed.lua says how Redis keeps them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "gate/source_rules.h"
#include "net/address.h"
#include "policy/policy.h"
#include "redis/command.h"
#include "redis/reply.h"

namespace sluice {

// Bans and allows are spread over so many hashes, so that hosts compare and read little at a time.
inline constexpr unsigned kFeedBuckets = 4096;

using FeedDigests = std::array<uint16_t, kFeedBuckets>;

// All of them lie in one slot of a cluster, but `audit`.
struct FeedKeys {
    explicit FeedKeys(std::string_view fleet);
    [[nodiscard]] std::string bucket(unsigned number) const;

    std::string base;  // in front of all others
    std::string digest, feed, gone, meta, order, switches;
    std::string turn;  // there while a host reads much
    std::string audit;
};

// One source's word about one prefix.
struct FeedRecord {
    RuleKind kind = RuleKind::ban;  // or allow
    Prefix prefix{};
    std::string source{};
    uint64_t expires_ms = 0;  // of Redis's clock, since 1970; 0: for good
    uint64_t rev = 0;
    bool forced = false;
    bool exempt = false;
    uint64_t since_s = 0;
    std::string actor{};
    std::string reason{};
    std::string member{};  // as it is called there
    uint16_t digest = 0;   // what it adds to its bucket's
};

std::string feed_member(RuleKind kind, std::string_view source, const Prefix& prefix);
unsigned feed_bucket(const Prefix& prefix);
Result<FeedRecord> parse_feed_record(std::string_view member, std::string_view record);

// The fleet's word about "gate", a service or a rule.
struct FeedSwitch {
    Mode mode = Mode::observe;
    uint64_t expires_ms = 0;  // 0: stays
    uint64_t rev = 0;
    std::string actor{};
    std::string reason{};

    [[nodiscard]] bool is_over(uint64_t now_ms) const {
        return expires_ms != 0 && expires_ms <= now_ms;
    }
};
Result<FeedSwitch> parse_feed_switch(std::string_view value);

// Bans (or allows) of a prefix and all inside it are taken back.
struct FeedRemoval {
    RuleKind kind = RuleKind::ban;
    Prefix prefix{};
    std::optional<std::string> source{};  // nothing: all
    uint64_t grace_until_ms = 0;          // no ban is to hit it before; 0: at once
    std::string actor{};
};
struct FeedSwitched {
    std::string target;
    std::optional<FeedSwitch> to;  // nothing: given back
};
// What hosts have beyond what Redis has is to go.
struct FeedAcceptance {};
// Of a later version.
struct FeedUnknown {};

struct FeedEntry {
    std::string id;  // in the stream
    uint64_t rev = 0;
    std::variant<FeedUnknown, FeedRecord, FeedRemoval, FeedSwitched, FeedAcceptance> change;
};
// The reply to XREAD: oldest first.
Result<std::vector<FeedEntry>> parse_feed_entries(const redis::Reply& reply);

// How Redis's state as a whole stands.
struct FeedMeta {
    std::string epoch;  // another one after a wipe; empty: nothing was ever written
    uint64_t rev = 0;
    uint64_t accepted_rev = 0;  // 0: never
    // What had expired up to here was cleared away: first by time, then by place.
    uint64_t cleaned_ms = 0;
    std::string cleaned_place;
};
redis::Command feed_meta_command(const FeedKeys& keys);
Result<FeedMeta> parse_feed_meta(const redis::Reply& reply);
// Where a member stands among those that expire at the same time.
std::string feed_place(const Prefix& prefix, std::string_view member);

Result<FeedDigests> parse_feed_digests(const redis::Reply& reply);

// --- the audit log -------------------------------------------------------------------------------

struct FeedAudit {
    std::string time;  // as format_timestamp() has it
    std::string actor, from, action, target, before, after, reason;
};
redis::Command feed_audit_command(const FeedKeys& keys, const FeedAudit& entry);

// --- what operators write ------------------------------------------------------------------------

struct FeedBan {
    RuleKind kind = RuleKind::ban;  // or allow
    Prefix prefix{};
    std::string source{kOperatorList};
    Ttl ttl{};
    bool forced = false;
    bool exempt = false;
    std::string actor{};
    std::string reason{};
    std::optional<uint64_t> token{};  // of the leader that bans by scores
};
redis::Command feed_ban_command(const FeedKeys& keys, const FeedBan& ban);

struct FeedBanned {
    bool added = false;        // else it stood there
    bool kept_longer = false;  // and lasts longer already
    bool fenced = false;       // nothing was done: a leader with a higher token was here
    uint64_t expires_ms = 0;
};
// An error where there is no room.
Result<FeedBanned> parse_feed_banned(const redis::Reply& reply);

struct FeedUnban {
    RuleKind kind = RuleKind::ban;
    Prefix prefix{};
    std::optional<std::string> source{};  // nothing: all
    std::optional<std::chrono::nanoseconds> grace{};
    bool insists = false;  // on the grace, also where nothing is banned
    std::string actor{};
};
redis::Command feed_unban_command(const FeedKeys& keys, const FeedUnban& unban);

struct FeedUnbanned {
    enum class Outcome { done, more, missing, covered } outcome = Outcome::done;
    uint64_t removed = 0;
    std::string still_under;  // a prefix; empty: nothing holds any more
};
Result<FeedUnbanned> parse_feed_unbanned(const redis::Reply& reply);

// Without a mode the switch is given back.
redis::Command feed_switch_command(const FeedKeys& keys, std::string_view target,
                                   std::optional<Mode> mode,
                                   std::optional<std::chrono::nanoseconds> lasts,
                                   std::string_view actor, std::string_view reason);
// What it was before; nothing where the fleet had said nothing about it.
Result<std::optional<Mode>> parse_feed_switched(const redis::Reply& reply);

// `damaged` are buckets whose digests are wrong.
redis::Command feed_accept_command(const FeedKeys& keys, std::span<const unsigned> damaged);

}  // namespace sluice
