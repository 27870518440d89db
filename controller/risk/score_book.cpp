#include "risk/score_book.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

namespace sluice {

namespace {

using std::chrono::nanoseconds;

// Below this part of `leave` a score says nothing any more.
constexpr double kWorthless = 0.01;
// Where there is no longest ban, what would last longer than this is for good.
constexpr nanoseconds kLongestTimed = std::chrono::hours(24);

uint64_t milliseconds_of(nanoseconds time) {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(time).count());
}

std::array<uint64_t, 2> random_seed() {
    std::random_device random;
    const auto word = [&random] { return (uint64_t{random()} << 32 | random()) | 1; };
    return {word(), word()};
}

bool is_banned(const SourceScore& score, uint64_t now_ms) {
    return score.banned_until_ms > now_ms;
}

}  // namespace

size_t ScoreBook::Hash::operator()(const Prefix& source) const {
    const IpAddress& address = source.address();
    uint64_t hash = address.high64() * seed[0] + address.low64() * seed[1];
    hash ^= hash >> 32;
    hash *= seed[1];
    return static_cast<size_t>(hash ^ hash >> 29);
}

ScoreBook::ScoreBook(const RiskSettings& settings)
    : settings_(settings), sources_(0, Hash{random_seed()}) {}

SourceScore ScoreBook::faded(SourceScore score, uint64_t now_ms) const {
    if (now_ms > score.at_ms) {
        const double lives = static_cast<double>(now_ms - score.at_ms) /
                             static_cast<double>(milliseconds_of(settings_.half_life));
        score.score *= std::exp2(-lives);
        score.at_ms = now_ms;
    }
    const bool is_over = score.banned_until_ms != 0 && !is_banned(score, now_ms);
    if (score.is_held && is_over)
        score.score = std::min(score.score, std::nextafter(settings_.leave, 0));
    if (score.is_held && !is_banned(score, now_ms) && score.score < settings_.leave)
        score.is_held = false;
    return score;
}

void ScoreBook::queue(const Prefix& source, SourceScore& score) {
    if (!score.is_queued)
        due_.push_back(source);
    score.is_queued = true;
}

void ScoreBook::add(const Prefix& source, double amount, uint64_t now_ms) {
    if (!(amount > 0) || !std::isfinite(amount))
        return;
    auto found = sources_.find(source);
    if (found == sources_.end()) {
        if (sources_.size() >= kMostSources)
            make_room(now_ms);
        found = sources_.emplace(source, SourceScore{.at_ms = now_ms, .since_ms = now_ms}).first;
    }
    SourceScore& score = found->second;
    score = faded(score, now_ms);
    score.score += amount;
    if (score.score >= settings_.enter && !score.is_held)
        queue(source, score);
}

void ScoreBook::see(std::string_view member, const Prefix& source, double score, uint64_t now_ms) {
    if (!std::isfinite(score))
        return;
    const double added = members_.take(member, score);
    if (added > 0)
        add(source, settings_.weight * std::min(added, settings_.max_step), now_ms);
}

std::vector<Prefix> ScoreBook::take_due(size_t most, uint64_t now_ms) {
    std::vector<Prefix> taken;
    for (size_t looked_at = 0; looked_at < most && !due_.empty(); ++looked_at) {
        const Prefix source = due_.front();
        due_.pop_front();
        const auto found = sources_.find(source);
        if (found == sources_.end() || !found->second.is_queued)
            continue;
        found->second.is_queued = false;
        found->second = faded(found->second, now_ms);
        // Whoever waits fades.
        if (found->second.score >= settings_.leave && !found->second.is_held)
            taken.push_back(source);
    }
    return taken;
}

std::vector<Prefix> ScoreBook::waiting(size_t most) const {
    const auto end = due_.begin() + static_cast<std::ptrdiff_t>(std::min(most, due_.size()));
    return {due_.begin(), end};
}

void ScoreBook::wait(const Prefix& source) {
    if (const auto found = sources_.find(source); found != sources_.end())
        queue(source, found->second);
}

uint32_t ScoreBook::times_at(const SourceScore& score, uint64_t now_ms) const {
    const bool is_forgotten = score.banned_until_ms < now_ms &&
                              now_ms - score.banned_until_ms > milliseconds_of(settings_.memory);
    return is_forgotten ? 0 : score.times;
}

std::optional<nanoseconds> ScoreBook::next_ban(const Prefix& source, uint64_t now_ms) const {
    const auto found = sources_.find(source);
    const uint32_t times = found == sources_.end() ? 0 : times_at(found->second, now_ms);
    const nanoseconds longest = settings_.max_ban.value_or(kLongestTimed);
    nanoseconds time = settings_.ban;
    for (uint32_t i = 0; i < times && time <= longest; ++i)
        time *= 2;
    if (time > longest)
        return settings_.max_ban;
    return time;
}

void ScoreBook::banned(const Prefix& source, uint64_t now_ms) {
    const auto found = sources_.find(source);
    if (found == sources_.end())
        return;
    SourceScore& score = found->second;
    const auto time = next_ban(source, now_ms);
    score.times = times_at(score, now_ms) + 1;
    score.banned_until_ms = time ? now_ms + milliseconds_of(*time) : SourceScore::kForGood;
    score.is_held = true;
}

void ScoreBook::undo_ban(const Prefix& source, const SourceScore& before) {
    if (const auto found = sources_.find(source); found != sources_.end()) {
        found->second = before;
        queue(source, found->second);
    }
}

void ScoreBook::spare(const Prefix& source) {
    if (const auto found = sources_.find(source); found != sources_.end())
        found->second.is_held = true;
}

bool ScoreBook::clear(const Prefix& source) {
    return sources_.erase(source) != 0;
}

size_t ScoreBook::clear_due() {
    size_t cleared = 0;
    for (const Prefix& source : std::exchange(due_, {}))
        if (const auto found = sources_.find(source); found != sources_.end()) {
            found->second.is_queued = false;
            found->second.score = 0;
            ++cleared;
        }
    return cleared;
}

std::optional<SourceScore> ScoreBook::find(const Prefix& source, uint64_t now_ms) const {
    const auto found = sources_.find(source);
    return found == sources_.end() ? std::nullopt : std::optional(faded(found->second, now_ms));
}

std::vector<ScoreBook::Entry> ScoreBook::highest(size_t most, uint64_t now_ms) const {
    std::vector<Entry> all;
    all.reserve(sources_.size());
    for (const auto& [source, score] : sources_) {
        all.push_back({source, faded(score, now_ms)});
        all.back().score.times = times_at(score, now_ms);
    }
    const size_t count = std::min(most, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                      [](const Entry& a, const Entry& b) {
                          return a.score.score != b.score.score ? a.score.score > b.score.score
                                                                : a.source < b.source;
                      });
    all.resize(count);
    return all;
}

void ScoreBook::restore(const Entry& entry, uint64_t now_ms) {
    if (sources_.size() >= kMostSources || !std::isfinite(entry.score.score) ||
        !(entry.score.score >= 0))
        return;
    const auto [at, is_new] = sources_.emplace(entry.source, entry.score);
    if (!is_new)
        return;
    // Whom the former leader had not yet come to.
    const bool is_due = std::exchange(at->second.is_queued, false);
    at->second = faded(at->second, now_ms);
    if (is_due)
        queue(entry.source, at->second);
}

void ScoreBook::tidy(uint64_t now_ms) {
    std::erase_if(sources_, [&](const auto& entry) {
        const SourceScore score = faded(entry.second, now_ms);
        return score.score < kWorthless * settings_.leave && !score.is_queued &&
               !is_banned(score, now_ms) && times_at(score, now_ms) == 0;
    });
}

// The lower half of those who are not banned.
void ScoreBook::make_room(uint64_t now_ms) {
    std::vector<double> scores;
    scores.reserve(sources_.size());
    for (const auto& [source, score] : sources_)
        scores.push_back(faded(score, now_ms).score);
    const size_t half = scores.size() / 2;
    const auto middle = scores.begin() + static_cast<std::ptrdiff_t>(half);
    std::nth_element(scores.begin(), middle, scores.end());
    const double least = *middle;
    size_t left = half;  // all of them may have the same score
    const size_t before = sources_.size();
    std::erase_if(sources_, [&](const auto& entry) {
        const SourceScore& score = entry.second;
        if (left == 0 || is_banned(score, now_ms) || faded(score, now_ms).score > least)
            return false;
        --left;
        return true;
    });
    forgotten_ += before - sources_.size();
    std::erase_if(due_, [&](const Prefix& source) { return !sources_.contains(source); });
}

}  // namespace sluice
