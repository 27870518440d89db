#include "observe/heavy_sources.h"

#include <algorithm>
#include <cmath>

namespace sluice {

namespace {

constexpr double kMemorySeconds = std::chrono::duration<double>(HeavySources::kMemory).count();
// Less than one packet in twenty seconds is nobody that `top` is about.
constexpr double kLeastRate = 0.05;

}  // namespace

Result<HeavyBy> parse_heavy_by(std::string_view word) {
    if (word == "dropped")
        return HeavyBy::dropped;
    if (word == "passed")
        return HeavyBy::passed;
    if (word == "connections")
        return HeavyBy::connections;
    return make_error(ErrorCode::usage, '"' + std::string(word) + "\" is nothing to sort by",
                      "use dropped, passed or connections");
}

double HeavySource::by(HeavyBy what) const {
    switch (what) {
        case HeavyBy::dropped:
            return dropped;
        case HeavyBy::passed:
            return passed;
        default:
            return connections;
    }
}

double HeavySources::faded(const Sums& sums, Clock::time_point now) {
    return std::exp(-std::chrono::duration<double>(now - sums.updated).count() / kMemorySeconds);
}

void HeavySources::add(const Event& event, Clock::time_point now) {
    Key key{event.source, event.service};
    auto found = sources_.find(key);
    if (found == sources_.end()) {
        if (sources_.size() >= kMost)
            forget_lighter_half(now);
        found = sources_.emplace(std::move(key), Sums{}).first;
        found->second.updated = now;
    }
    Sums& sums = found->second;
    const double left = faded(sums, now);
    for (double* sum : {&sums.dropped, &sums.passed, &sums.connections})
        *sum *= left;
    sums.updated = now;

    const double rate = static_cast<double>(event.weight) / kMemorySeconds;
    (event.passed ? sums.passed : sums.dropped) += rate;
    if (event.connection)
        sums.connections += rate;
    if (!event.passed)
        sums.rule = event.rule.empty() ? event.verdict : event.rule;
}

void HeavySources::forget_lighter_half(Clock::time_point now) {
    std::vector<double> weights;
    weights.reserve(sources_.size());
    for (const auto& [key, sums] : sources_)
        weights.push_back((sums.dropped + sums.passed) * faded(sums, now));
    const auto middle = weights.begin() + static_cast<std::ptrdiff_t>(weights.size() / 2);
    std::nth_element(weights.begin(), middle, weights.end());
    const double least = *middle;
    std::erase_if(sources_, [&](const auto& entry) {
        const Sums& sums = entry.second;
        return (sums.dropped + sums.passed) * faded(sums, now) <= least;
    });
}

std::vector<HeavySource> HeavySources::heaviest(HeavyBy by,
                                                const std::optional<std::string>& service,
                                                size_t most, Clock::time_point now) const {
    std::vector<HeavySource> all;
    for (const auto& [key, sums] : sources_) {
        if (service && key.second != *service)
            continue;
        const double left = faded(sums, now);
        HeavySource source{
            key.first, key.second, sums.dropped * left, sums.passed * left, sums.connections * left,
            sums.rule};
        if (source.by(by) >= kLeastRate)
            all.push_back(std::move(source));
    }
    const size_t count = std::min(most, all.size());
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count), all.end(),
                      [by](const HeavySource& a, const HeavySource& b) {
                          return a.by(by) != b.by(by) ? a.by(by) > b.by(by) : a.source < b.source;
                      });
    all.resize(count);
    return all;
}

}  // namespace sluice
