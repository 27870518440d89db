#include "risk/ban_allowance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace sluice {

namespace {

constexpr uint64_t kMinute = 60'000;
constexpr uint64_t kHour = 60 * kMinute;

std::string percent(double share) {
    char text[32];
    (void)std::snprintf(text, sizeof text, "%g %%", 100 * share);
    return text;
}

}  // namespace

void BanAllowance::change(const RiskSettings& settings) {
    per_minute_ = settings.max_bans_per_minute;
    per_hour_ = settings.max_bans_per_hour;
    share_ = settings.max_share;
}

void BanAllowance::forget_before(uint64_t now_ms) {
    while (!bans_.empty() && bans_.front() + kHour <= now_ms)
        bans_.pop_front();
}

bool BanAllowance::take(size_t verified, uint64_t now_ms) {
    if (stopped_)
        return false;
    forget_before(now_ms);
    const auto in_minute = static_cast<size_t>(std::count_if(
        bans_.begin(), bans_.end(), [&](uint64_t ban) { return ban + kMinute > now_ms; }));
    const auto of_verified = static_cast<size_t>(share_ * static_cast<double>(verified));
    std::string reason;
    if (in_minute >= per_minute_)
        reason = std::to_string(in_minute) + " bans within a minute";
    else if (bans_.size() >= per_hour_)
        reason = std::to_string(bans_.size()) + " bans within an hour";
    else if (bans_.size() >= std::max(kAlwaysAllowed, of_verified))
        reason = std::to_string(bans_.size()) + " bans within an hour are " + percent(share_) +
                 " of the " + std::to_string(verified) + " sources that are verified";
    if (!reason.empty()) {
        stopped_ = Stop{std::move(reason), now_ms};
        return false;
    }
    bans_.push_back(now_ms);
    return true;
}

void BanAllowance::give_back() {
    if (!bans_.empty())
        bans_.pop_back();
    // There was none before that ban was taken, so it came of bans that did not come about.
    stopped_.reset();
}

void BanAllowance::release() {
    stopped_.reset();
    bans_.clear();
}

void BanAllowance::restore(const std::vector<uint64_t>& recent, std::optional<Stop> stopped) {
    bans_.assign(recent.begin(), recent.end());
    stopped_ = std::move(stopped);
}

}  // namespace sluice
