// What the fleet says, as this host has heard it: to tell news from repetitions, and this host from
// Redis by their digests. No I/O; what follows from it is put into the gate by others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fleet/feed_message.h"
#include "gate/switches.h"

namespace sluice {

// One source's word about one prefix. Actor and reason are in the gate's listing.
struct HeldRecord {
    Prefix prefix{};
    uint64_t expires_ms = 0;  // of Redis's clock; 0: for good
    uint64_t rev = 0;         // 0: it is in the gate, and nothing else is known of it
    uint16_t digest = 0;
    bool lost = false;  // Redis does not have it any more, and nobody took it back

    [[nodiscard]] bool is_over(uint64_t now_ms) const {
        return expires_ms != 0 && expires_ms <= now_ms;
    }
};

struct HeldSwitch {
    FeedSwitch word;
    bool lost = false;
};

// A name in the book, with what stands there.
struct HeldMember {
    std::string member;
    HeldRecord record;
};

class FeedBook {
  public:
    using Bucket = std::map<std::string, HeldRecord, std::less<>>;  // by member

    // Where this host is in Redis's history.
    std::string epoch;    // empty: it has seen none
    std::string feed_id;  // the last entry that was read; empty: none
    uint64_t rev = 0;     // of the last change that is in here
    // What this host's operator had said before the fleet switched the gate off, to come back.
    struct Beaten {
        Mode mode = Mode::observe;
        uint64_t until_ms = 0;  // of the wall clock; 0: for good
    };
    std::optional<Beaten> beaten;
    std::map<std::string, HeldSwitch, std::less<>> switches;

    [[nodiscard]] const Bucket& bucket(unsigned number) const { return buckets_[number]; }
    [[nodiscard]] const FeedDigests& digests() const { return digests_; }
    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] size_t lost() const { return lost_; }
    [[nodiscard]] const HeldRecord* find(const Prefix& prefix, std::string_view member) const;
    // Everything that is lost.
    [[nodiscard]] std::vector<HeldMember> lost_members() const;

    // Whether it says more than what is held.
    [[nodiscard]] bool is_news(const FeedRecord& record) const;
    void put(const FeedRecord& record);
    // As it was written down, or found in the gate.
    void put(const std::string& member, const HeldRecord& record);
    void erase(const Prefix& prefix, std::string_view member);
    void mark_lost(const Prefix& prefix, std::string_view member);

    // What a removal is about, of what was said before its rev.
    [[nodiscard]] std::vector<HeldMember> taken_by(const FeedRemoval& removal,
                                                   uint64_t before) const;
    // What Redis has cleared away since it was over is no difference, and what it lost is no loss
    // once that is over.
    void clear_away(const FeedMeta& meta, uint64_t now_ms);

    // What differs in a bucket of which Redis has `records`.
    struct Difference {
        std::vector<FeedRecord> news;
        std::vector<HeldMember> absent;  // here, not over, not known to be lost, and not there
    };
    [[nodiscard]] Difference compare(unsigned bucket, const std::vector<FeedRecord>& records,
                                     uint64_t now_ms) const;

    void for_each(const std::function<void(const std::string&, const HeldRecord&)>& visit) const;

  private:
    void count(unsigned bucket, const HeldRecord& record, int sign);
    Bucket::iterator erase(unsigned bucket, Bucket::iterator at);

    std::vector<Bucket> buckets_ = std::vector<Bucket>(kFeedBuckets);
    FeedDigests digests_{};  // of what is not lost
    size_t size_ = 0, lost_ = 0;
};

}  // namespace sluice
