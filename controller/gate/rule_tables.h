// RuleTables: all flat tables about sources together, as the packet path reads them.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "gate/ban4_table.h"
#include "gate/prefix_codes.h"
#include "gate/rule_lengths.h"
#include "gate/rule_table.h"

namespace sluice {

class RuleTables {
  public:
    // `tables` stays where it is for as long as this.
    explicit RuleTables(Tables& tables);

    // At the start of each operation: another writer may have been here.
    void begin();
    // Makes the rules of a prefix exactly these, or leaves them as they were.
    Status set(const RuleKey& key, std::span<const uint64_t> wanted);
    // At the end of each operation: lengths and codes follow the rules.
    Status finish();

    // A new content for everything: first built beside the old one, then published.
    struct Prepared {
        Ban4Table::Prepared bans4;
        RuleTable::Prepared rules;
        std::vector<RuleRow> rows;  // without plain exact bans
        std::array<LengthSet, 2> lengths;
    };
    // Rows are sorted by prefix.
    Result<Prepared> prepare(std::span<const RuleRow> rows);
    Status commit(const Prepared& prepared);

    // What holds for exactly this prefix.
    [[nodiscard]] std::vector<uint64_t> values(const RuleKey& key) const;
    // visit(key, value) for every rule, plain exact bans and expired rules included.
    template <class Visit>
    Status for_each(Visit&& visit) const {
        auto status = rules_.for_each(visit);
        if (status)
            status = bans4_.for_each([&](uint32_t address, uint64_t until) {
                visit(RuleKey::of_ipv4(address), ban4_value(until));
            });
        return status;
    }

    // Prefixes with expired rules: what was displaced, and what a look at a few more lines finds.
    std::vector<RuleKey> take_displaced();
    [[nodiscard]] std::vector<RuleKey> find_expired(size_t most);

    [[nodiscard]] const Ban4Table& bans4() const { return bans4_; }
    [[nodiscard]] const RuleTable& rules() const { return rules_; }
    [[nodiscard]] const RuleLengths& lengths() const { return lengths_; }
    [[nodiscard]] const PrefixCodes& codes() const { return codes_; }

  private:
    static uint64_t ban4_value(uint64_t until) {
        return sluice_rule_value(until, SLUICE_RULE_BAN, 0, 128);
    }

    const Tables* tables_;
    Ban4Table bans4_;
    RuleTable rules_;
    RuleLengths lengths_;
    PrefixCodes codes_;
    TouchedNetworks touched_;
    bool rules_changed_ = false;
    uint32_t cursor_;
};

}  // namespace sluice
