// How many bans the scores may lead to before somebody has to look: what writes scores may be
// wrong, or in the wrong hands, and must not be able to ban everybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice {

class BanAllowance {
  public:
    // So few bans within an hour are no share of anything worth the name.
    static constexpr size_t kAlwaysAllowed = 10;

    explicit BanAllowance(const RiskSettings& settings) { change(settings); }
    void change(const RiskSettings& settings);

    // Whether one more ban may go, and counts it. Where it may not, none may before release().
    // `verified`: active sources that are known to have completed a handshake.
    bool take(size_t verified, uint64_t now_ms);
    // The last one that was taken did not come about.
    void give_back();

    struct Stop {
        std::string reason;  // for people
        uint64_t since_ms = 0;

        friend bool operator==(const Stop&, const Stop&) = default;
    };
    [[nodiscard]] const std::optional<Stop>& stopped() const { return stopped_; }
    // An operator has looked: it begins to count anew.
    void release();

    // Bans within the last hour, oldest first.
    [[nodiscard]] const std::deque<uint64_t>& recent() const { return bans_; }
    // As another one has left it.
    void restore(const std::vector<uint64_t>& recent, std::optional<Stop> stopped);

  private:
    void forget_before(uint64_t now_ms);

    size_t per_minute_ = 0, per_hour_ = 0;
    double share_ = 0;
    std::deque<uint64_t> bans_;
    std::optional<Stop> stopped_;
};

}  // namespace sluice
