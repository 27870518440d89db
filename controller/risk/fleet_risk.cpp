#include "risk/fleet_risk.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "base/quantities.h"
#include "fleet/budget_sync.h"
#include "observe/timestamp.h"
#include "risk/member_source.h"
#include "risk/seen_sources.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

// How often a host says that it leads, or looks whether somebody does, with a tenth of jitter.
constexpr milliseconds kRound = 1s;
constexpr milliseconds kDrainPause = 1s;
// What one ZSCAN looks at: half a millisecond of Redis.
constexpr size_t kScanCount = 500;
// A pass is done in this part of its time, so that a busy machine has some to spare.
constexpr double kPassPart = 0.9;
// Between two looks at everything else that is due.
constexpr size_t kMostScans = 8;
// Whom the fleet's hosts are asked for; more than may be banned in a minute by default.
constexpr size_t kMostWanted = 256;
constexpr milliseconds kWantedTime = 1min;
constexpr size_t kMostSeen = 4'096;
constexpr size_t kMostOrders = 100;
// News of a second; a HyperLogLog needs not all of them.
constexpr size_t kMostVerified = 1'000;
constexpr milliseconds kVerifiedTime = 2h;
// Scores above this part of `enter` outlive a leader, the highest of them.
constexpr double kCheckpoint = 0.1;
constexpr size_t kMostCheckpoints = 10'000;
constexpr size_t kCheckpointChunk = 500;
constexpr milliseconds kCheckpointTime = 1min;  // of one that is never finished
constexpr std::string_view kSource = "risk";    // of bans, and who signs them

double score_of(std::string_view text) {
    double score = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), score);
    return failure == std::errc{} && end == text.data() + text.size() ? score : std::nan("");
}

std::string span_of(const std::optional<std::chrono::nanoseconds>& time) {
    return time ? "for " + format_duration(*time) : "for good";
}

}  // namespace

FleetRisk::FleetRisk(Options options, const RedisDrill& drill)
    : options_(std::move(options)),
      drill_(drill),
      keys_(options_.fleet),
      feed_(options_.fleet),
      audit_(options_.state_dir),
      judge_(options_.risk),
      random_(static_cast<uint32_t>(redis::random_seed())) {
    auto redis = Redis::open(redis_options(options_.redis));
    if (redis)
        redis_.emplace(*std::move(redis));
    else
        standing_.error = redis.error().message;
}

FleetRisk::~FleetRisk() {
    if (redis_ && leads())
        (void)ask({risk_lead_command(keys_, options_.host, options_.lead, false)});
}

void FleetRisk::change(const RiskSettings& settings) {
    // Of another set nothing is known.
    if (settings.zset != options_.risk.zset || settings.drain != options_.risk.drain) {
        judge_.book.members().forget();
        in_pass_ = false;
        pass_due_ = Clock::now();
    }
    options_.risk = settings;
    judge_.change(settings);
}

void FleetRisk::verified(const Prefix& source) {
    if (verified_.size() < kMostVerified)
        verified_.push_back(source);
}

void FleetRisk::order(const RiskOrder& order) {
    if (orders_.size() < kMostOrders)
        orders_.push_back(order);
}

uint64_t FleetRisk::now_ms() const {
    const auto since = std::chrono::duration_cast<milliseconds>(Clock::now() - heard_);
    return heard_ms_ == 0 ? 0 : heard_ms_ + static_cast<uint64_t>(since.count());
}

bool FleetRisk::leads() const {
    return token_ != 0 && Clock::now() < leads_until_;
}

Result<FleetRisk::Replies> FleetRisk::ask(const std::vector<redis::Command>& commands) {
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

void FleetRisk::step(const RiskJudge::World& world) {
    if (!redis_)
        return;
    Status done;
    const bool is_due = Clock::now() >= round_due_;
    if (is_due) {
        const auto tenth = kRound / 10;
        round_due_ =
            Clock::now() + kRound - tenth +
            milliseconds(std::uniform_int_distribution<int64_t>(0, 2 * tenth.count())(random_));
        done = round(world);
    }
    if (done && leads() && (in_pass_ || Clock::now() >= pass_due_)) {
        const Status walked = walk();
        walk_error_ = walked ? std::string() : walked.error().message;
    }
    if (!leads())
        walk_error_.clear();
    // Between two rounds the last one's error holds.
    if (!done || is_due)
        round_error_ = done ? std::string() : done.error().message;
    standing_.error = round_error_.empty() ? walk_error_ : round_error_;
}

// --- each second ---------------------------------------------------------------------------------

Status FleetRisk::round(const RiskJudge::World& world) {
    const bool wants = !options_.risk.zset.empty();
    std::vector<redis::Command> commands{
        risk_lead_command(keys_, options_.host, options_.lead, wants), {"GET", keys_.wanted}};
    if (const uint64_t now = now_ms(); now != 0 && !verified_.empty()) {
        const std::string key = keys_.verified(now);
        redis::Command add{"PFADD", key};
        for (const Prefix& source : verified_)
            add.add(source.to_string());
        commands.push_back(add);
        commands.push_back(redis::Command{"PEXPIRE", key}.add(kVerifiedTime.count()));
    }
    const size_t sent_orders = orders_.size();
    if (sent_orders != 0) {
        redis::Command push{"RPUSH", keys_.orders};
        for (const RiskOrder& order : orders_)
            push.add(order.format());
        commands.push_back(push);
    }
    const auto sent = Clock::now();
    const auto replies = ask(commands);
    if (!replies)
        return replies.error();
    if (commands.size() > 2)
        verified_.clear();
    orders_.erase(orders_.begin(), orders_.begin() + static_cast<std::ptrdiff_t>(sent_orders));
    const auto lead_reply = parse_risk_lead((*replies)[0]);
    if (!lead_reply)
        return lead_reply.error();
    heard_ms_ = lead_reply->now_ms;
    heard_ = Clock::now();
    leader_ = lead_reply->leader;
    // From when it was asked for: Redis counts from later on.
    leads_until_ = sent + options_.lead;
    const bool is_new = lead_reply->is_mine && lead_reply->token != token_;
    if (!lead_reply->is_mine)
        lose_lead();
    if (is_new)
        if (const Status taken = take_lead(*lead_reply); !taken)
            return taken;
    if (leads())
        return this->lead(world);
    const auto wanted = (*replies)[1].is_nil() ? std::string_view() : (*replies)[1].as_text();
    return wanted ? tell_seen(*wanted, world) : wanted.error();
}

void FleetRisk::lose_lead() {
    if (token_ == 0)
        return;
    token_ = 0;
    in_pass_ = false;
    judge_ = RiskJudge(options_.risk);
    written_state_.clear();
    written_wanted_.clear();
}

Status FleetRisk::take_lead(const RiskLead& lead) {
    lose_lead();
    // Before anything else: from here on the former leader can't ban.
    const auto fenced = ask({risk_fence_command(feed_.base, lead.token)});
    if (!fenced)
        return fenced.error();
    if (const auto ours = fenced->front().as_integer(); !ours || *ours != 1)
        return failed("risk: a leader with a higher token was here",
                      "did Redis lose sluice:{F:risk}:token? it ends by itself");
    if (const Status read = read_checkpoint(); !read)
        return read;
    token_ = lead.token;
    standing_.is_read = false;
    pass_due_ = Clock::now();
    return {};
}

Status FleetRisk::read_checkpoint() {
    std::string cursor = "0";
    do {
        const auto replies =
            ask({redis::Command{"HSCAN", keys_.score, cursor, "COUNT"}.add(kScanCount)});
        if (!replies)
            return replies.error();
        const auto parts = replies->front().as_array();
        if (!parts || parts->size() != 2)
            return failed("risk: Redis's answer makes no sense");
        const auto next = (*parts)[0].as_text();
        const auto fields = (*parts)[1].as_array();
        if (!next || !fields)
            return failed("risk: Redis's answer makes no sense");
        cursor = *next;
        for (size_t i = 0; i + 1 < fields->size(); i += 2) {
            const auto source = (*fields)[i].as_text();
            const auto score = (*fields)[i + 1].as_text();
            if (!source || !score)
                continue;
            if (const auto entry = parse_checkpoint(*source, *score))
                judge_.book.restore(*entry, now_ms());
        }
    } while (cursor != "0");
    const auto state = ask({{"GET", keys_.state}});
    if (!state)
        return state.error();
    if (const auto text = state->front().as_text()) {
        RiskState left = parse_state(*text);
        judge_.allowance.restore(left.recent, std::move(left.stopped));
        written_state_ = *text;
    }
    return {};
}

// Of the sources that the leader looks for, those that this host's gate has seen.
Status FleetRisk::tell_seen(std::string_view wanted, const RiskJudge::World& world) {
    redis::Command add{"ZADD", keys_.seen};
    bool any = false;
    for (const Prefix& source : parse_sources(wanted, kMostWanted)) {
        if (!world.is_seen(source))
            continue;
        any = true;
        add.add(now_ms()).add(source.to_string());
    }
    if (!any)
        return {};
    const auto told = ask({add, redis::Command{"PEXPIRE", keys_.seen}.add(kWantedTime.count())});
    return told ? Status() : told.error();
}

Status FleetRisk::lead(const RiskJudge::World& world) {
    const uint64_t now = now_ms();
    const uint64_t since = now - std::min(now, SeenSources::kSeenMs);
    const auto replies = ask({redis::Command{"LRANGE", keys_.orders, "0"}.add(kMostOrders - 1),
                              redis::Command{"LTRIM", keys_.orders}.add(kMostOrders).add("-1"),
                              redis::Command{"ZRANGEBYSCORE", keys_.seen}
                                  .add(since)
                                  .add("+inf")
                                  .add("LIMIT")
                                  .add("0")
                                  .add(kMostSeen),
                              {"PFCOUNT", keys_.verified(now), keys_.verified(now, 1)},
                              redis::Command{"ZREMRANGEBYSCORE", keys_.seen, "-inf"}.add(since)});
    if (!replies)
        return replies.error();
    const auto orders = (*replies)[0].as_array();
    const auto seen = (*replies)[2].as_array();
    const auto verified = (*replies)[3].as_integer();
    if (!orders || !seen || !verified)
        return failed("risk: Redis's answer makes no sense");
    for (const redis::Reply& reply : *orders)
        if (const auto text = reply.as_text())
            if (const auto order = parse_order(*text))
                obey(*order);
    std::set<Prefix> seen_elsewhere;
    for (const redis::Reply& reply : *seen)
        if (const auto text = reply.as_text())
            if (const auto source = Prefix::parse(*text))
                seen_elsewhere.insert(*source);
    RiskJudge::World fleet = world;
    fleet.is_seen = [&](const Prefix& source) {
        return seen_elsewhere.contains(source) || world.is_seen(source);
    };
    fleet.verified = std::max<size_t>(world.verified, static_cast<size_t>(*verified));
    const auto bans = judge_.decide(fleet, now);
    const Status banned = ban(bans);
    for (const Status& done : {banned, write_wanted(), write_state()})
        if (!done)
            return done;
    return {};
}

void FleetRisk::obey(const RiskOrder& order) {
    switch (order.kind) {
        case RiskOrder::Kind::clear:
            (void)judge_.book.clear(order.source);
            break;
        case RiskOrder::Kind::forget_due:
            (void)judge_.book.clear_due();
            break;
        case RiskOrder::Kind::release:
            judge_.allowance.release();
            break;
    }
}

// Into both audit logs first.
Status FleetRisk::ban(const std::vector<RiskBan>& bans) {
    if (bans.empty())
        return {};
    std::vector<redis::Command> entries, commands;
    for (const RiskBan& ban : bans) {
        const AuditEntry entry{"ban --fleet", ban.source.to_string(), "",
                               std::string(kSource) + ' ' + span_of(ban.time), ban.reason()};
        (void)audit_.write({std::string(kSource), {}}, entry);
        entries.push_back(feed_audit_command(feed_, {.time = format_timestamp(wall_clock_ns()),
                                                     .actor = std::string(kSource),
                                                     .from = "",
                                                     .action = entry.action,
                                                     .target = entry.target,
                                                     .before = "",
                                                     .after = entry.after,
                                                     .reason = entry.reason}));
        commands.push_back(feed_ban_command(feed_, {.prefix = ban.source,
                                                    .source = std::string(kSource),
                                                    .ttl = ban.time,
                                                    .actor = std::string(kSource),
                                                    .reason = ban.reason(),
                                                    .token = token_}));
    }
    const auto take_all_back = [&](const Error& error) -> Status {
        for (const RiskBan& ban : bans)
            judge_.take_back(ban);
        return error;
    };
    if (const auto logged = ask(entries); !logged)
        return take_all_back(logged.error());
    if (!leads())
        return take_all_back(failed("risk: the lead has ended"));
    const auto replies = redis_->run(commands);
    if (!replies)
        return take_all_back(replies.error());
    Status status;
    bool fenced = false;
    redis::Command done{"HSET", keys_.score};
    for (size_t i = 0; i < bans.size(); ++i) {
        const auto banned = parse_feed_banned((*replies)[i]);
        fenced = fenced || (banned && banned->fenced);
        if (banned && !banned->fenced) {
            if (const auto score = judge_.book.find(bans[i].source, now_ms()))
                done.add(bans[i].source.to_string()).add(format_checkpoint(*score));
            continue;
        }
        judge_.take_back(bans[i]);
        if (!banned)
            status = banned.error();
    }
    if (fenced)
        lose_lead();
    // Whoever leads next is not to begin with the same bans, whenever that is.
    if (done.words().size() > 2)
        if (const auto noted = ask({done}); !noted)
            return noted.error();
    return status;
}

// Those who are due and still here were seen by nobody yet.
Status FleetRisk::write_wanted() {
    if (!leads())
        return {};
    const bool is_stopped = judge_.allowance.stopped().has_value();
    const std::string wanted =
        is_stopped ? std::string() : format_sources(judge_.book.waiting(kMostWanted));
    if (wanted.empty() && written_wanted_.empty())
        return {};
    const auto written =
        wanted.empty()
            ? ask({{"UNLINK", keys_.wanted}})
            : ask({redis::Command{"SET", keys_.wanted, wanted, "PX"}.add(kWantedTime.count())});
    if (!written)
        return written.error();
    written_wanted_ = wanted;
    return {};
}

Status FleetRisk::write_state() {
    const std::string state = format_state(judge_.allowance);
    if (!leads() || state == written_state_)
        return {};
    const auto written = ask({{"SET", keys_.state, state}});
    if (!written)
        return written.error();
    written_state_ = state;
    return {};
}

// --- the pass ------------------------------------------------------------------------------------

Status FleetRisk::walk() {
    if (!in_pass_ && Clock::now() < pass_due_)
        return {};
    if (!in_pass_) {
        pass_due_ = Clock::now() + (options_.risk.drain ? kDrainPause : options_.pass);
        if (const Status begun = begin_pass(); !begun) {
            // What can't be read now may be another set by then.
            judge_.book.members().forget();
            return begun;
        }
    }
    for (size_t scans = 0; in_pass_ && scans < kMostScans && leads(); ++scans) {
        const double elapsed = std::chrono::duration<double>(Clock::now() - pass_begun_).count();
        const double whole = kPassPart * std::chrono::duration<double>(options_.pass).count();
        const bool is_early =
            static_cast<double>(calls_) > static_cast<double>(all_calls_) * elapsed / whole;
        if (is_early && !options_.risk.drain)
            return {};
        if (const Status scanned = scan_once(); !scanned) {
            in_pass_ = false;
            judge_.book.members().forget();
            return scanned;
        }
    }
    return {};
}

Status FleetRisk::begin_pass() {
    const std::string drained = drained_key(options_.risk.zset);
    std::string set = options_.risk.zset;
    if (options_.risk.drain) {
        // What a pass that was cut off left may have been counted: better lost than twice.
        if (const auto gone = ask({{"UNLINK", drained}}); !gone)
            return gone.error();
        const auto moved = redis_->run(redis::Command{"RENAME", set, drained});
        if (!moved)
            return moved.error();
        if (moved->is_error() && moved->error_text().find("no such key") != std::string_view::npos)
            return {};
        if (const Status fine = moved->check(); !fine)
            return fine;
        set = drained;
    }
    const auto replies = ask({{"ZCARD", set}, redis::Command{"PING"}.add_run_id()});
    if (!replies)
        return replies.error().with_context(set);
    const auto count = (*replies)[0].as_integer();
    const auto run_id = (*replies)[1].as_text();
    if (!count || !run_id)
        return failed(set + ": Redis's answer makes no sense");
    // Another server may have another set under that name.
    if (*run_id != run_id_)
        judge_.book.members().forget();
    if (options_.risk.drain)
        judge_.book.members().forget(true);
    run_id_ = *run_id;
    judge_.book.members().begin_pass();
    cursor_ = "0";
    calls_ = 0;
    all_calls_ = static_cast<size_t>(*count) / kScanCount + 1;
    seen_ = {};
    pass_begun_ = Clock::now();
    in_pass_ = true;
    return {};
}

Status FleetRisk::scan_once() {
    const std::string set =
        options_.risk.drain ? drained_key(options_.risk.zset) : options_.risk.zset;
    const auto replies = ask({redis::Command{"ZSCAN", set, cursor_, "COUNT"}.add(kScanCount),
                              redis::Command{"PING"}.add_run_id()});
    if (!replies)
        return replies.error().with_context(set);
    // A cursor means nothing to another server.
    if (const auto run_id = (*replies)[1].as_text(); !run_id || *run_id != run_id_)
        return failed(set + ": another server answers: the pass begins anew");
    const auto parts = (*replies)[0].as_array();
    const auto next = parts && parts->size() == 2 ? (*parts)[0].as_text() : failed("");
    const auto members = next ? (*parts)[1].as_array() : failed("");
    if (!members)
        return failed(set + ": Redis's answer makes no sense");
    cursor_ = *next;
    ++calls_;
    take(*members);
    return cursor_ == "0" ? end_pass() : Status();
}

void FleetRisk::take(std::span<const redis::Reply> members) {
    const uint64_t now = now_ms();
    for (size_t i = 0; i + 1 < members.size(); i += 2) {
        const auto member = members[i].as_text();
        const auto score = members[i + 1].as_text();
        if (!member || !score)
            continue;
        ++seen_.members;
        const MemberSource found = source_of_member(*member);
        if (found.kind == MemberSource::Kind::source)
            judge_.book.see(*member, found.source, score_of(*score), now);
        else if (found.kind == MemberSource::Kind::identity)
            ++seen_.identities;
        else
            ++seen_.unreadable;
    }
}

Status FleetRisk::end_pass() {
    in_pass_ = false;
    judge_.book.members().end_pass();
    judge_.book.tidy(now_ms());
    standing_.is_read = true;
    ++standing_.passes;
    standing_.pass = std::chrono::duration_cast<milliseconds>(Clock::now() - pass_begun_);
    standing_.members = seen_.members;
    standing_.identities = seen_.identities;
    standing_.unreadable = seen_.unreadable;
    standing_.no_room = judge_.book.members().unknown();
    if (options_.risk.drain && leads())
        if (const auto gone = ask({{"UNLINK", drained_key(options_.risk.zset)}}); !gone)
            return gone.error();
    // Whoever is due need not wait for the next round.
    round_due_ = std::min(round_due_, judge_.book.due() != 0 ? Clock::now() : round_due_);
    return write_checkpoint();
}

Status FleetRisk::write_checkpoint() {
    const std::string key = keys_.new_score(token_);
    std::vector<redis::Command> commands;
    size_t fields = 0;
    for (const ScoreBook::Entry& entry : judge_.book.highest(kMostCheckpoints, now_ms())) {
        if (entry.score.score < kCheckpoint * options_.risk.enter && entry.score.times == 0)
            continue;
        if (fields++ % kCheckpointChunk == 0)
            commands.push_back({"HSET", key});
        commands.back().add(entry.source.to_string()).add(format_checkpoint(entry.score));
    }
    for (const redis::Command& command : commands) {
        const auto written =
            ask({command, redis::Command{"PEXPIRE", key}.add(kCheckpointTime.count())});
        if (!written)
            return written.error();
    }
    const auto committed = ask({risk_commit_command(keys_, options_.host, token_)});
    return committed ? Status() : committed.error();
}

// --- for others ----------------------------------------------------------------------------------

FleetRiskStanding FleetRisk::standing() const {
    FleetRiskStanding standing = standing_;
    standing.leads = leads();
    standing.leader = leader_;
    standing.now_ms = now_ms();
    standing.scored = judge_.book.size();
    standing.forgotten = judge_.book.forgotten();
    standing.counts = judge_.counts();
    standing.stopped = judge_.allowance.stopped();
    return standing;
}

std::vector<ScoreBook::Entry> FleetRisk::highest(size_t most) const {
    return leads() ? judge_.book.highest(most, now_ms()) : std::vector<ScoreBook::Entry>();
}

}  // namespace sluice
