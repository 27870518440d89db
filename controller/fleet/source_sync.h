// Heavy sources across the fleet: what this host sees of them is told to Redis, and where a source
// has more than its limit on all hosts together, this host's part of it is put in force.
//
// Addresses come from sampled events; how much of its limits a source uses is seen from the words
// that the packet path keeps for it, which cost nothing to look at. For one thread, which may wait
// for Redis; saw() is for others as well.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fleet/redis_drill.h"
#include "fleet/source_message.h"
#include "gate/source_parts.h"
#include "redis/redis.h"

namespace sluice {

// A limit of a source that hosts share now.
struct SharedSource {
    IpAddress source;  // as limits count it
    std::string service;
    Dimension dimension{};
    double part = 1;     // of the limit, on this host
    double limits = 0;   // its use in the whole fleet, in limits
    uint32_t hosts = 0;  // that told of it
};

struct SourcesStanding {
    size_t watched = 0;     // sources at a service, of which packets were sampled
    size_t told = 0;        // limits of them that were in the last round of calls
    size_t shared = 0;      // limits that hold in part only, now
    uint64_t unplaced = 0;  // times that a part had no room in the gate: the whole limit held
    uint64_t untold = 0;    // calls that Redis had no time or no room for
    uint64_t lost = 0;      // calls without an answer
    std::string error;      // of the last round; empty where it was answered
    std::vector<SharedSource> heaviest;  // of those that are shared, a few
};

// Uses of limits, in limits: 1 is all that one source may do on one host without a fleet.
class LimitUse {
  public:
    // What is older counts the less.
    static constexpr std::chrono::milliseconds kMemory{1000};

    void fade(std::chrono::nanoseconds elapsed);
    // `part` as it was in force at that look.
    void add(const UseSample& look, double part);
    // Packets that were refused included.
    [[nodiscard]] double demand() const;

  private:
    double looked_ns_ = 0, busy_ns_ = 0;
    double looks_ = 0, full_ = 0;
};

class SourceSync {
  public:
    // A source is told of from half of a limit on; it stays so, once told, while it has an eighth.
    static constexpr double kTell = 0.5, kKeep = 0.125;
    // As many as a host may tell a second, and an effort of 1 % of a core to look at them.
    static constexpr size_t kMostWatched = kMostSourceRows;

    // A packet of it was sampled.
    void saw(const IpAddress& source, uint32_t service_id);

    // Of another policy. What is watched stays, as far as it means the same.
    void follow(Tables& tables, const Policy& policy, LeasePool pool);
    // The gate has gone, or Redis has. Parts that are in force end by themselves.
    void forget();
    // Looks at all that are watched. To be called at irregular times, some 20 ms apart.
    void look(Tables& tables, const SampleTime& time);
    // Tells Redis what is due, and puts in force what it says.
    void exchange(Tables& tables, Redis& redis, const RedisDrill& drill, uint64_t now_ns);

    [[nodiscard]] const SourcesStanding& standing() const { return standing_; }

  private:
    struct Key {
        IpAddress source;  // as limits count it
        uint32_t service_id = 0;
        friend auto operator<=>(const Key&, const Key&) = default;
    };
    struct Limit {
        LimitUse use;
        uint64_t window = 0;  // of the last call about it that was answered
        uint32_t said = 0;    // last, in that window
        uint32_t said_before = 0;
        std::optional<double> part;
        uint64_t until_ns = 0;  // of the part
        SourceAbove fleet;      // what it was made of
    };
    struct Watched {
        uint8_t source_class = 0;
        uint64_t since_ns = 0;
        std::array<Limit, kDimensions.size()> limits;
    };
    struct Shard {
        uint64_t window = 0;    // of the last call that was answered
        uint64_t again_ns = 0;  // Redis is not asked before
        uint64_t clear_ns = 0;  // 0: it left nothing there
    };
    struct Row {
        Key key;
        Dimension dimension{};
    };
    struct Call {
        std::vector<Row> rows;
        std::vector<ToldUse> uses;
    };

    void forget_told();
    void take_in(Tables& tables, uint64_t now_ns);
    void watch(Tables& tables, const Key& key, uint64_t now_ns);
    void let_go(const Tables& tables, uint64_t now_ns);
    [[nodiscard]] std::map<unsigned, Call> due(const Tables& tables, uint64_t now_ns);
    void add_rows(const Key& key, const Watched& watched, uint8_t limited,
                  std::map<unsigned, Call>& calls) const;
    void take(const Tables& tables, Shard& shard, const Call& call, const SourcesReply& reply,
              uint64_t sent_ns);
    void put(const Tables& tables, const Row& row, Limit& limit, double part, uint64_t until_ns);
    void note_parts(const Tables& tables, uint64_t now_ns);
    void note_heaviest();

    std::string fleet_;
    LeasePool pool_ = LeasePool::enforce;
    std::map<uint32_t, std::string> services_;  // names by id
    std::map<Key, Watched> watched_;
    std::array<Shard, kLeaseShards> shards_;
    uint64_t looked_ns_ = 0;
    uint64_t due_ns_ = 0;
    std::minstd_rand random_{std::random_device()()};
    SourcesStanding standing_;

    std::mutex mutex_;
    std::vector<std::pair<IpAddress, uint32_t>> seen_;  // since the last look
};

}  // namespace sluice
