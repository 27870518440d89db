#include "gate/prefix_codes.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdlib>
#include <memory>

namespace sluice {

namespace {

constexpr uint32_t kNetworksPerWide = 256;  // /24s of a /16: one line of codes
constexpr uint32_t kMappedBits = 96;

// What is known about a /24.
enum Fact : uint8_t {
    kAnything = 1,
    kAllowedForGood = 2,  // all of it, and not exempt
    kExemptSomewhere = 4,
    kBannedForGood = 8,   // all of it
    kSpeaksAgainst = 16,  // an allow or a protection somewhere in it
};

uint8_t facts_of(uint64_t value, bool covers) {
    const uint32_t flags = sluice_rule_flags(value);
    const bool for_good = covers && sluice_rule_until(value) == SLUICE_UNTIL_PERMANENT;
    unsigned facts = kAnything;
    if ((flags & SLUICE_RULE_EXEMPT) != 0)
        facts |= kExemptSomewhere;
    else if ((flags & SLUICE_RULE_ALLOW) != 0 && for_good)
        facts |= kAllowedForGood;
    if ((flags & (SLUICE_RULE_ALLOW | SLUICE_RULE_PROTECTED)) != 0)
        facts |= kSpeaksAgainst;
    if ((flags & SLUICE_RULE_BAN) != 0 && for_good)
        facts |= kBannedForGood;
    return static_cast<uint8_t>(facts);
}

sluice_code code_of(unsigned facts) {
    if (facts == 0)
        return SLUICE_CODE_NONE;
    if ((facts & kAllowedForGood) != 0 && (facts & kExemptSomewhere) == 0)
        return SLUICE_CODE_ALLOW;
    if ((facts & kBannedForGood) != 0 && (facts & kSpeaksAgainst) == 0)
        return SLUICE_CODE_BAN;
    return SLUICE_CODE_RULES;
}

// The /24s that an IPv4 rule covers or lies in: [first, last].
struct Range {
    uint32_t first;
    uint32_t last;
    bool covers;
};

Range range_of(const RuleKey& key) {
    const auto address = static_cast<uint32_t>(key.network.low);
    const uint32_t length = key.length - kMappedBits;
    const uint32_t first = address >> 8;
    const uint32_t count = length >= 24 ? 1 : 1U << (24 - length);
    return {first, first + count - 1, length <= 24};
}

sluice_code get(const sluice_code_line& line, uint32_t position) {
    const uint64_t word =
        __atomic_load_n(&line.word[position / SLUICE_CODES_PER_WORD % 8], __ATOMIC_RELAXED);
    return static_cast<sluice_code>(word >> (position % SLUICE_CODES_PER_WORD * 2) & 3);
}

// Whether any of the codes is set.
bool write_line(sluice_code_line& line, const uint8_t* facts) {
    uint64_t any = 0;
    for (uint32_t w = 0; w < std::size(line.word); ++w) {
        uint64_t word = 0;
        for (uint32_t i = 0; i < SLUICE_CODES_PER_WORD; ++i)
            word |= static_cast<uint64_t>(code_of(facts[w * SLUICE_CODES_PER_WORD + i])) << i * 2;
        any |= word;
        // From the old code to the new one at once: never by way of "nothing".
        if (line.word[w] != word)
            __atomic_store_n(&line.word[w], word, __ATOMIC_RELEASE);
    }
    return any != 0;
}

}  // namespace

void TouchedNetworks::add(const RuleKey& key) {
    if (key.family() != Family::ipv4)
        return;
    const auto [first, last, covers] = range_of(key);
    for (uint32_t wide = first >> 8; wide <= last >> 8; ++wide)
        bits_.set(wide);
}

bool TouchedNetworks::meets(const RuleKey& key) const {
    if (key.family() != Family::ipv4)
        return false;
    const auto [first, last, covers] = range_of(key);
    for (uint32_t wide = first >> 8; wide <= last >> 8; ++wide)
        if (bits_.test(wide))
            return true;
    return false;
}

sluice_code PrefixCodes::code(uint32_t address) const {
    const auto codes = tables_->prefix_codes.span();
    const uint32_t wide = address >> 16;
    if (get(codes[wide / kNetworksPerWide], wide) == SLUICE_CODE_NONE)
        return SLUICE_CODE_NONE;
    const uint32_t network = address >> 8;
    return get(codes[SLUICE_SUMMARY_LINES + network / kNetworksPerWide], network);
}

void PrefixCodes::recompute(const TouchedNetworks& touched, std::span<const RuleRow> rules,
                            bool any_rule) const {
    const auto codes = tables_->prefix_codes.span();
    // 16 MiB, of which only the touched pages ever exist.
    const std::unique_ptr<uint8_t, decltype(&std::free)> memory(
        static_cast<uint8_t*>(std::calloc(kWideNetworks, kNetworksPerWide)), &std::free);
    uint8_t* const facts = memory.get();
    // Without the memory everything has to be looked up, which is always right.
    const std::array<uint8_t, kNetworksPerWide> unknown = [] {
        std::array<uint8_t, kNetworksPerWide> all{};
        all.fill(kAnything);
        return all;
    }();

    std::bitset<kWideNetworks> ruled;
    for (const auto& row : rules) {
        if (row.key.family() != Family::ipv4 || facts == nullptr)
            continue;
        const auto [first, last, covers] = range_of(row.key);
        const uint8_t learned = facts_of(row.value, covers);
        for (uint32_t wide = first >> 8; wide <= last >> 8; ++wide) {
            if (!touched.contains(wide))
                continue;
            ruled.set(wide);
            const uint32_t begin = std::max(first, wide << 8);
            const uint32_t end = std::min(last, wide << 8 | 0xff);
            for (uint32_t network = begin; network <= end; ++network)
                facts[network] |= learned;
        }
    }

    auto& used = tables_->settings().codes;
    if (any_rule)
        __atomic_store_n(&used, 1U, __ATOMIC_RELEASE);
    for (uint32_t wide = 0; wide < kWideNetworks; ++wide) {
        const auto& summary = codes[wide / kNetworksPerWide];
        if (!touched.contains(wide) ||
            (facts != nullptr && !ruled.test(wide) && get(summary, wide) == SLUICE_CODE_NONE))
            continue;
        const uint8_t* const known =
            facts == nullptr ? unknown.data() : facts + size_t{wide} * kNetworksPerWide;
        const bool any = write_line(codes[SLUICE_SUMMARY_LINES + wide], known);
        auto& word = codes[wide / kNetworksPerWide].word[wide / SLUICE_CODES_PER_WORD % 8];
        const uint64_t bits = uint64_t{SLUICE_CODE_RULES} << (wide % SLUICE_CODES_PER_WORD * 2);
        __atomic_store_n(&word, any ? word | bits : word & ~bits, __ATOMIC_RELEASE);
    }
    if (!any_rule)
        __atomic_store_n(&used, 0U, __ATOMIC_RELEASE);
}

}  // namespace sluice
