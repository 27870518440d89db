#include "redis/breaker.h"

#include <algorithm>
#include <utility>

namespace sluice::redis {

std::string_view breaker_state_name(BreakerState state) {
    switch (state) {
        case BreakerState::closed:
            return "closed";
        case BreakerState::open:
            return "open";
        case BreakerState::half_open:
            return "half-open";
    }
    return "open";
}

uint64_t random_seed() {
    std::random_device random;
    return uint64_t{random()} << 32 | random();
}

bool Breaker::admit(Clock::time_point now) {
    if (state_ == BreakerState::open && now >= paused_until_) {
        change(BreakerState::half_open, now);
        return true;
    }
    return state_ == BreakerState::closed;
}

void Breaker::succeeded(Clock::time_point now) {
    failures_ = 0;
    reason_.clear();
    change(BreakerState::closed, now);
}

void Breaker::failed(Clock::time_point now, std::string reason) {
    paused_until_ = now + next_pause();
    failures_++;
    reason_ = std::move(reason);
    change(BreakerState::open, now);
}

void Breaker::end_pause(Clock::time_point now) {
    paused_until_ = std::min(paused_until_, now);
}

void Breaker::change(BreakerState state, Clock::time_point now) {
    if (state_ != state)
        since_ = now;
    state_ = state;
}

Breaker::Clock::duration Breaker::next_pause() {
    constexpr unsigned kDoublings = 6;  // enough to reach the longest
    const Clock::duration full = std::min<Clock::duration>(
        kFirstPause * (1U << std::min(failures_, kDoublings)), kLongestPause);
    std::uniform_int_distribution<Clock::rep> half(full.count() / 2, full.count());
    return Clock::duration(half(random_));
}

}  // namespace sluice::redis
