// PrefixSet: many prefixes, to be asked whether one of them contains another.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <tuple>

#include "gate/rule_key.h"
#include "gate/rule_lengths.h"

namespace sluice {

class PrefixSet {
  public:
    void add(const RuleKey& key) {
        keys_.insert(order(key));
        lengths_[key.family() == Family::ipv4 ? 0 : 1].set(key.length);
    }
    [[nodiscard]] bool covers(const RuleKey& key) const {
        const auto& lengths = lengths_[key.family() == Family::ipv4 ? 0 : 1];
        if (lengths.none())
            return false;
        for (uint32_t length = 0; length <= key.length; ++length)
            if (lengths.test(length) &&
                keys_.contains(order({sluice_network(key.network, length), length})))
                return true;
        return false;
    }

  private:
    using Order = std::tuple<uint64_t, uint64_t, uint32_t>;
    static Order order(const RuleKey& key) {
        return {key.network.high, key.network.low, key.length};
    }
    std::set<Order> keys_;
    std::array<LengthSet, 2> lengths_;
};

}  // namespace sluice
