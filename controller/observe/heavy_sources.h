// Who is heavy right now, by sampled packets.
//
// The gate keeps no address of anybody: its tables hold tags, and a drop writes nothing about its
// source. What is known comes from sampled events, each scaled to the packets that it stands for.
// Rates are therefore estimates, good for whoever is heavy and coarse for everybody else.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "observe/event_line.h"

namespace sluice {

enum class HeavyBy { dropped, passed, connections };

// ErrorCode::usage for any other word.
Result<HeavyBy> parse_heavy_by(std::string_view word);

// One source at one service; packets a second, what observe mode let through among the dropped.
struct HeavySource {
    IpAddress source;
    std::string service;
    double dropped = 0;
    double passed = 0;
    double connections = 0;  // openings, dropped or not
    std::string rule;        // that refused it last, or the verdict where no limit is at work

    [[nodiscard]] double by(HeavyBy what) const;
};

class HeavySources {
  public:
    using Clock = std::chrono::steady_clock;

    // Rates are means that forget with this time constant.
    static constexpr std::chrono::seconds kMemory{5};
    // More sources than an operator can look at, and a few MiB.
    static constexpr size_t kMost = 16'384;

    void add(const Event& event, Clock::time_point now);

    // The heaviest first, without those that have nothing of what is asked for.
    [[nodiscard]] std::vector<HeavySource> heaviest(HeavyBy by,
                                                    const std::optional<std::string>& service,
                                                    size_t most, Clock::time_point now) const;
    [[nodiscard]] size_t size() const { return sources_.size(); }

  private:
    struct Sums {
        double dropped = 0;
        double passed = 0;
        double connections = 0;
        std::string rule;
        Clock::time_point updated{};
    };
    using Key = std::pair<IpAddress, std::string>;

    static double faded(const Sums& sums, Clock::time_point now);
    void forget_lighter_half(Clock::time_point now);

    std::map<Key, Sums> sources_;
};

}  // namespace sluice
