// Bans whose turn it is: within the guards, the evidence and the caps. No I/O of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "risk/ban_allowance.h"
#include "risk/score_book.h"

namespace sluice {

struct RiskBan {
    Prefix source;
    std::optional<std::chrono::nanoseconds> time;  // nothing: for good
    uint32_t times = 0;                            // with this one
    SourceScore before;                            // what it was for

    // "score 123, ban 2", for lists and logs.
    [[nodiscard]] std::string reason() const;
};

struct RiskCounts {
    uint64_t bans = 0;
    uint64_t spared = 0;   // times that somebody allowed, protected or named in `never` was due
    uint64_t waiting = 0;  // are due, and wait to be seen by a gate, or for Redis or an operator

    friend bool operator==(const RiskCounts&, const RiskCounts&) = default;
};

class RiskJudge {
  public:
    explicit RiskJudge(const RiskSettings& settings)
        : settings_(settings), book(settings), allowance(settings) {}
    void change(const RiskSettings& settings);

    // What the judge asks of the world.
    struct World {
        // A gate has seen the source within the last minute.
        std::function<bool(const Prefix&)> is_seen;
        // It must not be banned.
        std::function<bool(const Prefix&)> is_guarded;
        size_t verified = 0;  // as BanAllowance::take() wants it
    };
    // Those who are due, some of them at each call. The caller bans them.
    std::vector<RiskBan> decide(const World& world, uint64_t now_ms);
    // Or could not: it is due again.
    void take_back(const RiskBan& ban);

    [[nodiscard]] const RiskCounts& counts() const { return counts_; }

  private:
    RiskSettings settings_;
    RiskCounts counts_;

  public:
    ScoreBook book;
    BanAllowance allowance;
};

}  // namespace sluice
