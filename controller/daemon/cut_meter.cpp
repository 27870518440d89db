#include "daemon/cut_meter.h"

#include <cmath>
#include <utility>

#include "policy/rule_id.h"

namespace sluice {

namespace {

constexpr size_t kHeaviest = 10;

// By a limit: of its own kind, or of the same in observe mode.
bool is_by_limit(uint32_t index) {
    const uint32_t verdict =
        index < SLUICE_VERDICTS ? index : index - (SLUICE_VERDICTS - SLUICE_FIRST_DROP);
    return sluice_is_drop(static_cast<int>(verdict)) != 0 && verdict != SLUICE_drop_malformed &&
           verdict != SLUICE_drop_banned;
}

// `heaviest` and `sources`, as far as samples show.
void add_spread(const HeavySources& heavy, CutMeter::Clock::time_point now, CutRate& rate) {
    const auto all = heavy.heaviest(HeavyBy::dropped, std::nullopt, HeavySources::kMost, now);
    double sum = 0, most = 0;
    for (const HeavySource& source : all) {
        if (!parse_rule_id(source.rule))
            continue;  // a ban, or malformed
        if (rate.sources < kHeaviest)
            most += source.dropped;
        sum += source.dropped;
        rate.sources++;
    }
    rate.heaviest = sum > 0 ? most / sum : 0;
}

}  // namespace

std::optional<CutRate> CutMeter::measure(const Tables& tables, const HeavySources& heavy,
                                         Clock::time_point now) {
    const Counters counters = read_counters(tables);
    Reading reading{now};
    for (uint32_t index = 0; index < counters.size(); ++index) {
        const auto packets = static_cast<double>(counters[index].packets);
        reading.packets += packets;
        if (is_by_limit(index))
            reading.cut += packets;
    }
    const auto before = std::exchange(before_, reading);
    const double passed_s = before ? std::chrono::duration<double>(now - before->at).count() : 0;
    // The first reading, or of another gate.
    if (passed_s <= 0 || reading.packets < before->packets || reading.cut < before->cut) {
        rate_.reset();
        return std::nullopt;
    }
    CutRate rate{.packets = (reading.packets - before->packets) / passed_s,
                 .cut = (reading.cut - before->cut) / passed_s};
    if (rate_) {
        const double kept =
            std::exp(-passed_s / std::chrono::duration<double>(CutMeter::kMemory).count());
        rate.packets = kept * rate_->packets + (1 - kept) * rate.packets;
        rate.cut = kept * rate_->cut + (1 - kept) * rate.cut;
    }
    add_spread(heavy, now, rate);
    rate_ = rate;
    return rate_;
}

}  // namespace sluice
