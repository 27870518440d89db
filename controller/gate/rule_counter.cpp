#include "gate/rule_counter.h"

#include <cstring>
#include <utility>

namespace sluice {

namespace {

// To sweep is no change, and goes on for as long as much has ended.
constexpr uint64_t kSweptMeanwhile = 5'000'000'000;

}  // namespace

Result<RuleCounts> RuleCounter::of(Tables& tables) {
    const SourceRules rules(tables);
    if (!still_holds(tables)) {
        // Read first: what changes while it is counted makes it be counted again.
        const uint64_t changes = tables.settings().changes;
        const bool is_whole = tables.settings().rules_dirty == 0;
        last_.reset();
        auto counts = rules.counts();
        if (!counts || !is_whole)
            return counts;
        last_ = Counted{tables.seed(), changes, gate_now_ns(tables), *std::move(counts)};
    }
    RuleCounts counts = last_->counts;
    // Written by other programs, which count no changes.
    const auto by_hand = rules.bans_by_hand();
    if (!by_hand)
        return by_hand.error();
    counts.bans_by_hand = *by_hand;
    return counts;
}

bool RuleCounter::still_holds(const Tables& tables) const {
    const sluice_gate& settings = tables.settings();
    if (!last_ || std::memcmp(&last_->seed, &settings.seed, sizeof(settings.seed)) != 0 ||
        last_->changes != settings.changes || settings.rules_dirty != 0)
        return false;
    const uint64_t now = gate_now_ns(tables);
    return now < last_->counts.first_end_ns &&
           (!last_->counts.unswept || now - last_->at_ns < kSweptMeanwhile);
}

}  // namespace sluice
