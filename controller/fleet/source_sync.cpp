#include "fleet/source_sync.h"

#include <algorithm>
#include <cmath>

#include "gate/policy_store.h"
#include "gate/service_ids.h"
#include "gate/source_rules.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

constexpr uint64_t kSecond = 1'000'000'000;

// Between two rounds of calls, but for a tenth up or down: the windows of sources.lua are longer.
constexpr uint64_t kRoundNs = kSecond;
// How long a source is looked at before it is judged.
constexpr uint64_t kJudgeNs = kSecond;
constexpr uint64_t kLetGoNs = 2 * kSecond;
// After so long all windows that a host told anything in have gone by.
constexpr uint64_t kClearNs = 5 * kSecond;
// Where too many hosts call, each leaves out some rounds.
constexpr uint64_t kBackOffNs = 6 * kSecond;
// Of samples that wait to be taken in; events are not more than that in the longest pause.
constexpr size_t kMostSeen = 4096;
// What a few dozen looks can tell: a source that is refused all the time sends that much at least.
constexpr double kMostRefused = 1 - 1.0 / 64;

double ms(nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
}

// More than an operator looks at.
constexpr size_t kMostShown = 20;

uint8_t class_of(Tables& tables, const IpAddress& source) {
    const auto found = SourceRules(tables).lookup(source);
    return found ? found->source_class : uint8_t{0};
}

}  // namespace

void LimitUse::fade(nanoseconds elapsed) {
    const double left = std::exp(-ms(elapsed) / ms(kMemory));
    for (double* sum : {&looked_ns_, &busy_ns_, &looks_, &full_})
        *sum *= left;
}

void LimitUse::add(const UseSample& look, double part) {
    looked_ns_ += look.looked_ns;
    busy_ns_ += look.busy_ns * part;
    looks_ += 1;
    full_ += look.is_full ? 1 : 0;
}

double LimitUse::demand() const {
    if (looked_ns_ <= 0)
        return 0;
    const double refused = std::min(full_ / looks_, kMostRefused);
    return busy_ns_ / looked_ns_ / (1 - refused);
}

void SourceSync::saw(const IpAddress& source, uint32_t service_id) {
    const std::lock_guard guard(mutex_);
    if (seen_.size() < kMostSeen)
        seen_.emplace_back(source, service_id);
}

void SourceSync::follow(Tables& tables, const Policy& policy, LeasePool pool) {
    std::map<uint32_t, std::string> before;
    before.swap(services_);
    for (const Service& service : policy.services)
        services_[find_service_id(tables, service.name).value_or(SLUICE_SERVICE_OTHER)] =
            service.name;
    if (pool != pool_ || policy.fleet.name != fleet_ || before.empty())
        forget_told();
    fleet_ = policy.fleet.name;
    pool_ = pool;
    std::erase_if(watched_, [&](const auto& entry) {
        const auto& [source, service_id] = entry.first;
        const auto now = services_.find(service_id), then = before.find(service_id);
        return now == services_.end() || then == before.end() || now->second != then->second ||
               counted_source(tables, source) != source;
    });
    // Those of a daemon that died are over within two seconds.
    if (before.empty())
        heed_parts(tables, false);
}

void SourceSync::forget_told() {
    shards_ = {};
    for (auto& [key, watched] : watched_)
        for (Limit& limit : watched.limits)
            limit.window = 0;
}

void SourceSync::forget() {
    services_.clear();
    watched_.clear();
    forget_told();
    standing_.watched = standing_.told = standing_.shared = 0;
    standing_.heaviest.clear();
    const std::lock_guard guard(mutex_);
    seen_.clear();
}

void SourceSync::take_in(Tables& tables, uint64_t now_ns) {
    std::vector<std::pair<IpAddress, uint32_t>> seen;
    {
        const std::lock_guard guard(mutex_);
        seen.swap(seen_);
    }
    for (const auto& [source, service_id] : seen)
        if (services_.contains(service_id) &&
            service_in_force(tables, service_id).source_limits != 0)
            watch(tables, {counted_source(tables, source), service_id}, now_ns);
}

void SourceSync::watch(Tables& tables, const Key& key, uint64_t now_ns) {
    if (watched_.contains(key))
        return;
    if (watched_.size() >= kMostWatched) {
        const auto weight = [now_ns](const auto& entry) {
            double most = now_ns - entry.second.since_ns < kJudgeNs ? kTell : 0;
            for (const Limit& limit : entry.second.limits)
                most = std::max(most, limit.part ? 2 * kTell : limit.use.demand());
            return most;
        };
        const auto lightest =
            std::min_element(watched_.begin(), watched_.end(),
                             [&](const auto& a, const auto& b) { return weight(a) < weight(b); });
        if (weight(*lightest) >= kTell)
            return;
        watched_.erase(lightest);
    }
    watched_[key] = {
        .source_class = class_of(tables, key.source), .since_ns = now_ns, .limits = {}};
}

// Whoever is light again makes room.
void SourceSync::let_go(const Tables& tables, uint64_t now_ns) {
    std::erase_if(watched_, [&](auto& entry) {
        auto& [key, watched] = entry;
        bool is_light = now_ns - watched.since_ns >= kLetGoNs;
        for (const Limit& limit : watched.limits)
            is_light = is_light && !limit.part && limit.use.demand() < kKeep;
        return is_light || service_in_force(tables, key.service_id).source_limits == 0;
    });
}

void SourceSync::look(Tables& tables, const SampleTime& time) {
    take_in(tables, time.now_ns);
    const nanoseconds elapsed(static_cast<int64_t>(time.now_ns - looked_ns_));
    looked_ns_ = time.now_ns;
    for (auto& [key, watched] : watched_) {
        const SourceParts words(tables, key.source, key.service_id);
        const uint8_t limited = service_in_force(tables, key.service_id).source_limits;
        for (const Dimension dimension : kDimensions) {
            const auto d = static_cast<size_t>(dimension);
            if ((limited & 1U << d) == 0)
                continue;
            Limit& limit = watched.limits.at(d);
            if (limit.part && limit.until_ns <= time.now_ns)
                limit.part.reset();
            limit.use.fade(elapsed);
            limit.use.add(words.use(dimension, watched.source_class, time), limit.part.value_or(1));
        }
    }
    standing_.watched = watched_.size();
    note_parts(tables, time.now_ns);
}

void SourceSync::note_parts(const Tables& tables, uint64_t now_ns) {
    size_t shared = 0;
    for (const auto& [key, watched] : watched_)
        for (const Limit& limit : watched.limits)
            shared += limit.part && limit.until_ns > now_ns ? 1 : 0;
    if ((shared != 0) != (standing_.shared != 0))
        heed_parts(tables, shared != 0);
    standing_.shared = shared;
}

void SourceSync::note_heaviest() {
    std::vector<SharedSource> all;
    for (const auto& [key, watched] : watched_)
        for (const Dimension dimension : kDimensions) {
            const Limit& limit = watched.limits.at(static_cast<size_t>(dimension));
            if (limit.part)
                all.push_back({key.source, services_.at(key.service_id), dimension, *limit.part,
                               limit.fleet.limits, limit.fleet.hosts});
        }
    const size_t count = std::min(kMostShown, all.size());
    std::partial_sort(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
        [](const SharedSource& a, const SharedSource& b) { return a.limits > b.limits; });
    all.resize(count);
    standing_.heaviest = std::move(all);
}

void SourceSync::add_rows(const Key& key, const Watched& watched, uint8_t limited,
                          std::map<unsigned, Call>& calls) const {
    for (const Dimension dimension : kDimensions) {
        const auto d = static_cast<size_t>(dimension);
        const Limit& limit = watched.limits.at(d);
        const double demand = limit.use.demand();
        const unsigned number = lease_shard(key.source.to_string());
        const uint64_t last = shards_.at(number).window;
        const bool is_told = limit.part || (limit.window != 0 && limit.window + 1 >= last);
        if ((limited & 1U << d) == 0 || demand < (is_told ? kKeep : kTell))
            continue;
        Call& call = calls[number];
        if (call.rows.size() >= kMostSourceRows)
            continue;
        call.rows.push_back({key, dimension});
        call.uses.push_back(
            {.name = source_limit_name(pool_, services_.at(key.service_id), dimension, key.source),
             .use = static_cast<uint32_t>(std::lround(demand * kUseUnit)),
             .said = limit.window == last ? limit.said : 0,
             .said_before = limit.window == last       ? limit.said_before
                            : limit.window + 1 == last ? limit.said
                                                       : 0});
    }
}

// By shard; a call without rows takes away what is left of those before.
std::map<unsigned, SourceSync::Call> SourceSync::due(const Tables& tables, uint64_t now_ns) {
    std::map<unsigned, Call> calls;
    for (const auto& [key, watched] : watched_)
        if (now_ns - watched.since_ns >= kJudgeNs)
            add_rows(key, watched, service_in_force(tables, key.service_id).source_limits, calls);
    std::erase_if(calls,
                  [&](const auto& entry) { return shards_.at(entry.first).again_ns > now_ns; });
    for (unsigned number = 0; number < shards_.size(); ++number) {
        Shard& shard = shards_.at(number);
        if (calls.contains(number))
            shard.clear_ns = now_ns + kClearNs;
        else if (shard.clear_ns != 0 && shard.clear_ns <= now_ns)
            calls[number];
    }
    return calls;
}

void SourceSync::exchange(Tables& tables, Redis& redis, const RedisDrill& drill, uint64_t now_ns) {
    if (now_ns < due_ns_)
        return;
    due_ns_ = now_ns + std::uniform_int_distribution<uint64_t>(kRoundNs - kRoundNs / 10,
                                                               kRoundNs + kRoundNs / 10)(random_);
    let_go(tables, now_ns);
    const std::map<unsigned, Call> calls = due(tables, now_ns);
    std::vector<redis::Command> commands;
    standing_.told = 0;
    for (const auto& [number, call] : calls) {
        commands.push_back(
            sources_command(SourceKeys(fleet_, number), shards_.at(number).window, call.uses));
        standing_.told += call.rows.size();
    }
    if (commands.empty()) {
        standing_.error.clear();
        standing_.heaviest.clear();
        return;
    }
    const Status may_ask = drill.check();
    const auto replies =
        may_ask ? redis.run(commands) : Result<std::vector<redis::Reply>>(may_ask.error());
    standing_.error = replies ? std::string() : replies.error().message;
    size_t at = 0;
    for (const auto& [number, call] : calls) {
        Shard& shard = shards_.at(number);
        const auto reply = replies ? parse_sources_reply((*replies)[at++], call.rows.size())
                                   : Result<SourcesReply>(replies.error());
        if (reply) {
            take(tables, shard, call, *reply, now_ns);
            continue;
        }
        ++standing_.lost;
        standing_.error = reply.error().message;
    }
    note_parts(tables, now_ns);
    note_heaviest();
}

void SourceSync::take(const Tables& tables, Shard& shard, const Call& call,
                      const SourcesReply& reply, uint64_t sent_ns) {
    shard.window = reply.window;
    standing_.untold += reply.outcome == SourcesOutcome::taken ? 0 : 1;
    if (call.rows.empty())
        shard.clear_ns = 0;
    if (reply.outcome == SourcesOutcome::busy) {
        shard.again_ns = sent_ns + kBackOffNs;
        return;
    }
    std::vector<SourceAbove> fleet(call.rows.size());
    for (const SourceAbove& above : reply.above)
        fleet[above.row] = above;
    for (size_t i = 0; i < call.rows.size(); ++i) {
        const auto found = watched_.find(call.rows[i].key);
        if (found == watched_.end())
            continue;
        Limit& limit = found->second.limits.at(static_cast<size_t>(call.rows[i].dimension));
        if (limit.window != reply.window)
            limit.said_before = limit.window + 1 == reply.window ? limit.said : 0;
        limit.window = reply.window;
        limit.said = call.uses[i].use;
        limit.fleet = fleet[i];
        const double part = fleet[i].limits > 1 ? call.uses[i].use / kUseUnit / fleet[i].limits : 1;
        put(tables, call.rows[i], limit, part, sent_ns + SLUICE_PART_NS);
    }
}

void SourceSync::put(const Tables& tables, const Row& row, Limit& limit, double part,
                     uint64_t until_ns) {
    const SourceParts words(tables, row.key.source, row.key.service_id);
    if (part >= 1) {
        if (limit.part)
            words.drop(row.dimension);
        limit.part.reset();
        return;
    }
    if (!words.put(row.dimension, part, until_ns)) {
        ++standing_.unplaced;
        return;
    }
    limit.part = std::max(part, kLeastPart);
    limit.until_ns = until_ns;
}

}  // namespace sluice
