#include "gate/rule_lengths.h"

#include <algorithm>
#include <string>

namespace sluice {

namespace {

unsigned index_of(Family family) {
    return family == Family::ipv4 ? 0 : 1;
}

void store(uint8_t& where, size_t value) {
    __atomic_store_n(&where, static_cast<uint8_t>(value), __ATOMIC_RELEASE);
}

Error too_many(Family family, size_t count) {
    return failed(std::to_string(count) + " different prefix lengths of " +
                      (family == Family::ipv4 ? "IPv4" : "IPv6") + " rules, at most " +
                      std::to_string(SLUICE_MAX_LENGTHS) + " can be looked up",
                  "write some prefixes as shorter or longer ones");
}

}  // namespace

std::span<const uint8_t> RuleLengths::in_use(Family family) const {
    const auto& gate = tables_->settings();
    const unsigned index = index_of(family);
    const size_t count = __atomic_load_n(&gate.rule_lengths[index], __ATOMIC_ACQUIRE);
    return {&gate.rule_length[index][0], std::min<size_t>(count, SLUICE_MAX_LENGTHS)};
}

Status RuleLengths::check(Family family, const LengthSet& lengths) {
    if (lengths.count() > SLUICE_MAX_LENGTHS)
        return too_many(family, lengths.count());
    return {};
}

Status RuleLengths::add(Family family, uint32_t length) const {
    const auto used = in_use(family);
    if (std::find(used.begin(), used.end(), length) != used.end())
        return {};
    const size_t count = used.size();
    if (count == SLUICE_MAX_LENGTHS)
        return too_many(family, count + 1);
    // A packet reads upwards meanwhile: each length moves up before its old place is overwritten,
    // so it may be seen twice, and is never missed.
    auto& gate = tables_->settings();
    auto* const list = gate.rule_length[index_of(family)];
    size_t place = count;
    store(list[count], count > 0 ? list[count - 1] : length);
    store(gate.rule_lengths[index_of(family)], count + 1);
    for (; place > 0 && list[place - 1] < length; --place)
        store(list[place], list[place - 1]);
    store(list[place], length);
    return {};
}

Status RuleLengths::keep_only(Family family, const LengthSet& lengths) const {
    auto& gate = tables_->settings();
    auto& count = gate.rule_lengths[index_of(family)];
    auto* const list = gate.rule_length[index_of(family)];
    for (size_t i = 0; i < count;) {
        if (lengths.test(list[i])) {
            ++i;
            continue;
        }
        // Moving down, a length could slip past a packet that reads upwards: after each step wait
        // until every packet has it in its new place.
        for (size_t moved = i; moved + 1U < count; ++moved) {
            store(list[moved], list[moved + 1]);
            if (auto waited = wait_for_packets_in_flight(); !waited)
                return waited;
        }
        store(count, count - 1U);
    }
    return {};
}

}  // namespace sluice
