// Circuit breaker: what does not answer is left alone for a while, and asked by one probe first.
//
// One failure opens it. A caller that has several things to ask in one round would otherwise wait
// for the same dead server each time, while the next round comes soon enough.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace sluice::redis {

enum class BreakerState { closed, open, half_open };
std::string_view breaker_state_name(BreakerState state);
uint64_t random_seed();

class Breaker {
  public:
    using Clock = std::chrono::steady_clock;

    // Doubles from the first to the longest pause, and of each a random half is taken off: the
    // hosts of a fleet don't come back as one wave.
    static constexpr std::chrono::milliseconds kFirstPause{50};
    // A server that came back is found within this.
    static constexpr std::chrono::milliseconds kLongestPause{2'000};

    // The seed is of the random half: each breaker should have another.
    Breaker(Clock::time_point now, uint64_t seed) : since_(now), random_(seed) {}

    // Whether the caller may ask now. When the pause is over the first who asks is the probe, and
    // nobody else may until it succeeded or failed.
    [[nodiscard]] bool admit(Clock::time_point now);
    void succeeded(Clock::time_point now);
    void failed(Clock::time_point now, std::string reason);
    // The reason to wait is gone (another server took over): the next who asks is the probe.
    void end_pause(Clock::time_point now);

    [[nodiscard]] BreakerState state() const { return state_; }
    [[nodiscard]] Clock::time_point since() const { return since_; }     // of the state
    [[nodiscard]] const std::string& reason() const { return reason_; }  // empty while closed
    [[nodiscard]] Clock::time_point paused_until() const { return paused_until_; }

  private:
    void change(BreakerState state, Clock::time_point now);
    [[nodiscard]] Clock::duration next_pause();

    BreakerState state_ = BreakerState::closed;
    Clock::time_point since_;
    Clock::time_point paused_until_{};
    unsigned failures_ = 0;  // in a row
    std::string reason_;
    std::mt19937_64 random_;
};

}  // namespace sluice::redis
