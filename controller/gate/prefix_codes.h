// PrefixCodes: two bits for each IPv4 /24 that say whether rules about it have to be looked up.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>

#include "gate/rule_table.h"
#include "gate/tables.h"

namespace sluice {

constexpr size_t kWideNetworks = 1U << 16;  // the /16s of IPv4

// The /16s whose codes have to be computed anew.
class TouchedNetworks {
  public:
    // Does nothing for IPv6.
    void add(const RuleKey& key);
    void add_all() { bits_.set(); }
    // Whether the rule lies in one of them or covers it; never for IPv6.
    [[nodiscard]] bool meets(const RuleKey& key) const;
    [[nodiscard]] bool any() const { return bits_.any(); }
    [[nodiscard]] bool contains(size_t network) const { return bits_[network]; }
    void clear() { bits_.reset(); }

  private:
    std::bitset<kWideNetworks> bits_;
};

class PrefixCodes {
  public:
    explicit PrefixCodes(const Tables& tables) : tables_(&tables) {}

    // The code of an address as the packet path finds it.
    [[nodiscard]] sluice_code code(uint32_t address) const;

    // Computes the codes of the touched networks from all live rules that meet them. `any` says
    // whether there are IPv4 rules at all.
    void recompute(const TouchedNetworks& touched, std::span<const RuleRow> rules, bool any) const;

  private:
    const Tables* tables_;
};

}  // namespace sluice
