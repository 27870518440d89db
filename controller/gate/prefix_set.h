// PrefixSet: many prefixes, to be asked whether one of them contains another.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

#include "gate/rule_key.h"

namespace sluice {

class PrefixSet {
  public:
    void add(const RuleKey& key) {
        keys_.insert(order(key));
        auto& lengths = lengths_[key.family() == Family::ipv4 ? 0 : 1];
        if (std::find(lengths.begin(), lengths.end(), key.length) == lengths.end())
            lengths.push_back(key.length);
    }
    [[nodiscard]] bool covers(const RuleKey& key) const {
        const auto& lengths = lengths_[key.family() == Family::ipv4 ? 0 : 1];
        return std::any_of(lengths.begin(), lengths.end(), [&](uint32_t length) {
            return length <= key.length &&
                   keys_.contains(order({sluice_network(key.network, length), length}));
        });
    }

  private:
    using Order = std::tuple<uint64_t, uint64_t, uint32_t>;
    static Order order(const RuleKey& key) {
        return {key.network.high, key.network.low, key.length};
    }
    std::set<Order> keys_;
    std::array<std::vector<uint32_t>, 2> lengths_;  // those in use, in no order
};

}  // namespace sluice
