// Prefixes, deadlines and rules in the form that the packet path reads.
#pragma once

#include <sluice/ban.h>

#include <cstdint>

#include "net/address.h"

namespace sluice {

enum class RuleKind : uint8_t {
    ban = SLUICE_RULE_BAN,
    allow = SLUICE_RULE_ALLOW,
    protect = SLUICE_RULE_PROTECTED,
    classify = SLUICE_RULE_CLASS,
};

// A prefix as the packet path looks it up.
struct RuleKey {
    sluice_address network{};
    uint32_t length = 0;  // of 128

    static RuleKey of(const Prefix& prefix);
    static RuleKey of_ipv4(uint32_t address);  // a single address
    // From a line's entry, whose value carries the length.
    static RuleKey of_entry(const sluice_rule_entry& entry);

    [[nodiscard]] Family family() const;
    [[nodiscard]] Prefix prefix() const;
    // IPv6 prefixes longer than /64 do not fit in a line's 64 bits.
    [[nodiscard]] bool fits_line() const { return family() == Family::ipv4 || length <= 64; }
    [[nodiscard]] uint64_t line_network() const {
        return family() == Family::ipv4 ? network.low : network.high;
    }
    [[nodiscard]] bool is_ipv4_host() const { return family() == Family::ipv4 && length == 128; }
    [[nodiscard]] bool contains(const RuleKey& other) const;

    friend bool operator==(const RuleKey& a, const RuleKey& b) {
        return a.network.high == b.network.high && a.network.low == b.network.low &&
               a.length == b.length;
    }
};

sluice_address to_sluice(const IpAddress& address);

// Deadlines: monotonic ns with SLUICE_NEVER, or the 40-bit units of the tables.
uint64_t until_from_ns(uint64_t ns);
uint64_t until_to_ns(uint64_t until);

// Whether a deadline in units is still ahead, by the packet path's own comparison.
inline bool is_live(uint64_t until, uint64_t now_ns) {
    return until == SLUICE_UNTIL_PERMANENT || (now_ns >> SLUICE_DEADLINE_SHIFT) < until;
}

// The part of a rule's value that tells it from other rules of the same prefix.
inline uint64_t rule_identity(uint64_t value) {
    return value >> SLUICE_UNTIL_BITS;
}

// An exact IPv4 ban without FORCED has a table of its own.
inline bool is_plain_ban(const RuleKey& key, uint64_t value) {
    return key.is_ipv4_host() && sluice_rule_flags(value) == SLUICE_RULE_BAN;
}

}  // namespace sluice
