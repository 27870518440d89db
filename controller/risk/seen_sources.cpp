#include "risk/seen_sources.h"

#include <algorithm>
#include <functional>

namespace sluice {

namespace {

bool is_within(uint64_t since_ms, uint64_t time_ms, uint64_t now_ms) {
    return since_ms != 0 && since_ms + time_ms > now_ms;
}

}  // namespace

size_t SeenSources::Hash::operator()(const Prefix& source) const {
    // Only who really sends is in here, so nobody can fill a bucket by writing names down.
    const std::hash<uint64_t> hash;
    return hash(source.address().high64() * 0x9e3779b97f4a7c15U ^ source.address().low64());
}

SeenSources::Times* SeenSources::find_or_add(const Prefix& source, uint64_t now_ms) {
    if (const auto found = sources_.find(source); found != sources_.end())
        return &found->second;
    if (sources_.size() >= kMost)
        tidy(now_ms);
    // Where all of them are active, one more says little.
    return sources_.size() >= kMost ? nullptr : &sources_[source];
}

void SeenSources::see(const Prefix& source, uint64_t now_ms) {
    if (Times* times = find_or_add(source, now_ms))
        times->seen_ms = now_ms;
}

bool SeenSources::verify(const Prefix& source, uint64_t now_ms) {
    Times* times = find_or_add(source, now_ms);
    if (times == nullptr)
        return false;
    const bool is_news = !is_within(times->verified_ms, kVerifiedMs, now_ms);
    times->seen_ms = times->verified_ms = now_ms;
    return is_news;
}

bool SeenSources::is_seen(const Prefix& source, uint64_t now_ms) const {
    const auto found = sources_.find(source);
    return found != sources_.end() && is_within(found->second.seen_ms, kSeenMs, now_ms);
}

bool SeenSources::is_verified(const Prefix& source, uint64_t now_ms) const {
    const auto found = sources_.find(source);
    return found != sources_.end() && is_within(found->second.verified_ms, kVerifiedMs, now_ms);
}

size_t SeenSources::verified(uint64_t now_ms) const {
    return static_cast<size_t>(std::ranges::count_if(sources_, [&](const auto& entry) {
        return is_within(entry.second.verified_ms, kVerifiedMs, now_ms);
    }));
}

void SeenSources::tidy(uint64_t now_ms) {
    std::erase_if(sources_, [&](const auto& entry) {
        return !is_within(entry.second.seen_ms, kSeenMs, now_ms) &&
               !is_within(entry.second.verified_ms, kVerifiedMs, now_ms);
    });
}

}  // namespace sluice
