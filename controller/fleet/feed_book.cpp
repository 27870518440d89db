#include "fleet/feed_book.h"

#include <set>
#include <utility>

namespace sluice {

namespace {

bool is_allow(std::string_view member) {
    return member.starts_with('+');
}

std::string_view source_in(std::string_view member) {
    return member.substr(is_allow(member) ? 1 : 0, member.find('|') - (is_allow(member) ? 1 : 0));
}

}  // namespace

void FeedBook::count(unsigned bucket, const HeldRecord& record, int sign) {
    const auto by = static_cast<size_t>(sign);
    size_ += by;
    lost_ += record.lost ? by : 0;
    if (!record.lost)
        digests_[bucket] = static_cast<uint16_t>(digests_[bucket] + sign * record.digest);
}

FeedBook::Bucket::iterator FeedBook::erase(unsigned bucket, Bucket::iterator at) {
    count(bucket, at->second, -1);
    return buckets_[bucket].erase(at);
}

const HeldRecord* FeedBook::find(const Prefix& prefix, std::string_view member) const {
    const Bucket& bucket = buckets_[feed_bucket(prefix)];
    const auto found = bucket.find(member);
    return found == bucket.end() ? nullptr : &found->second;
}

std::vector<HeldMember> FeedBook::lost_members() const {
    std::vector<HeldMember> found;
    for_each([&](const std::string& member, const HeldRecord& record) {
        if (record.lost)
            found.push_back({member, record});
    });
    return found;
}

bool FeedBook::is_news(const FeedRecord& record) const {
    const HeldRecord* held = find(record.prefix, record.member);
    return held == nullptr || held->rev < record.rev || held->lost;
}

void FeedBook::put(const FeedRecord& record) {
    put(record.member, {.prefix = record.prefix,
                        .expires_ms = record.expires_ms,
                        .rev = record.rev,
                        .digest = record.digest});
}

void FeedBook::put(const std::string& member, const HeldRecord& record) {
    const unsigned bucket = feed_bucket(record.prefix);
    const auto [at, is_new] = buckets_[bucket].try_emplace(member);
    if (!is_new)
        count(bucket, at->second, -1);
    at->second = record;
    count(bucket, record, 1);
}

void FeedBook::erase(const Prefix& prefix, std::string_view member) {
    const unsigned bucket = feed_bucket(prefix);
    const auto at = buckets_[bucket].find(member);
    if (at != buckets_[bucket].end())
        (void)erase(bucket, at);
}

void FeedBook::mark_lost(const Prefix& prefix, std::string_view member) {
    if (const HeldRecord* held = find(prefix, member)) {
        HeldRecord lost = *held;
        lost.lost = true;
        put(std::string(member), lost);
    }
}

std::vector<HeldMember> FeedBook::taken_by(const FeedRemoval& removal, uint64_t before) const {
    std::vector<HeldMember> taken;
    const auto look_at = [&](const std::string& member, const HeldRecord& record) {
        const bool meant = is_allow(member) == (removal.kind == RuleKind::allow) &&
                           (!removal.source || source_in(member) == *removal.source);
        if (meant && record.rev < before && removal.prefix.contains(record.prefix))
            taken.push_back({member, record});
    };
    if (removal.prefix.is_host())
        for (const auto& [member, record] : buckets_[feed_bucket(removal.prefix)])
            look_at(member, record);
    else
        for_each(look_at);
    return taken;
}

void FeedBook::clear_away(const FeedMeta& meta, uint64_t now_ms) {
    for (unsigned number = 0; number < kFeedBuckets; ++number)
        for (auto at = buckets_[number].begin(); at != buckets_[number].end();) {
            const HeldRecord& record = at->second;
            const bool cleared = record.expires_ms != 0 &&
                                 (record.expires_ms < meta.cleaned_ms ||
                                  (record.expires_ms == meta.cleaned_ms &&
                                   feed_place(record.prefix, at->first) <= meta.cleaned_place));
            at = cleared || (record.lost && record.is_over(now_ms)) ? erase(number, at)
                                                                    : std::next(at);
        }
}

FeedBook::Difference FeedBook::compare(unsigned bucket, const std::vector<FeedRecord>& records,
                                       uint64_t now_ms) const {
    Difference difference;
    std::set<std::string_view> there;
    for (const FeedRecord& record : records) {
        there.insert(record.member);
        if (is_news(record))
            difference.news.push_back(record);
    }
    for (const auto& [member, record] : buckets_[bucket])
        if (!there.contains(member) && !record.lost && !record.is_over(now_ms))
            difference.absent.push_back({member, record});
    return difference;
}

void FeedBook::for_each(
    const std::function<void(const std::string&, const HeldRecord&)>& visit) const {
    for (const Bucket& bucket : buckets_)
        for (const auto& [member, record] : bucket)
            visit(member, record);
}

}  // namespace sluice
