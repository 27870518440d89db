#include "tune/cpu_set.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/text.h"
#include "tune/number.h"

namespace sluice {

namespace {

constexpr unsigned kGroupBits = 32;

std::string_view trimmed(std::string_view text) {
    const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t'; };
    while (!text.empty() && is_blank(text.back()))
        text.remove_suffix(1);
    while (!text.empty() && is_blank(text.front()))
        text.remove_prefix(1);
    return text;
}

std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    size_t comma = text.empty() ? std::string_view::npos : text.find(',');
    for (; comma != std::string_view::npos; comma = text.find(',')) {
        parts.push_back(text.substr(0, comma));
        text.remove_prefix(comma + 1);
    }
    if (!text.empty() || !parts.empty())
        parts.push_back(text);
    return parts;
}

}  // namespace

Result<CpuSet> parse_cpu_list(std::string_view text) {
    const Error wrong = failed(in_quotes(trimmed(text)) + " is no list of CPUs", "such as 0-3,8");
    CpuSet cpus;
    for (const std::string_view part : split(trimmed(text))) {
        const size_t dash = part.find('-');
        const auto first = whole_number<unsigned>(part.substr(0, dash));
        const auto last =
            dash == std::string_view::npos ? first : whole_number<unsigned>(part.substr(dash + 1));
        if (!first || !last || *first > *last || *last >= kMostCpus)
            return wrong;
        for (unsigned cpu = *first; cpu <= *last; ++cpu)
            cpus.insert(cpu);
    }
    return cpus;
}

Result<CpuSet> parse_cpu_mask(std::string_view text) {
    const Error wrong =
        failed(in_quotes(trimmed(text)) + " is no mask of CPUs", "such as 3 or f0,0000000f");
    auto groups = split(trimmed(text));
    if (groups.empty() || groups.size() > kMostCpus / kGroupBits)
        return wrong;
    std::reverse(groups.begin(), groups.end());
    CpuSet cpus;
    unsigned first = 0;
    for (const std::string_view group : groups) {
        const auto bits = whole_number<uint32_t>(group, 16);
        if (!bits)
            return wrong;
        for (unsigned bit = 0; bit < kGroupBits; ++bit)
            if ((*bits >> bit & 1) != 0)
                cpus.insert(first + bit);
        first += kGroupBits;
    }
    return cpus;
}

std::string cpu_list_text(const CpuSet& cpus) {
    std::string text;
    for (auto first = cpus.begin(); first != cpus.end();) {
        auto next = first;
        unsigned last = *first;
        while (++next != cpus.end() && *next == last + 1)
            last = *next;
        text += (text.empty() ? "" : ",") + std::to_string(*first);
        if (last != *first)
            text += '-' + std::to_string(last);
        first = next;
    }
    return text;
}

std::string cpu_mask_text(const CpuSet& cpus) {
    const unsigned groups = cpus.empty() ? 1 : *cpus.rbegin() / kGroupBits + 1;
    std::vector<uint32_t> bits(groups);
    for (const unsigned cpu : cpus)
        bits[cpu / kGroupBits] |= uint32_t{1} << cpu % kGroupBits;
    std::string text;
    for (auto group = bits.rbegin(); group != bits.rend(); ++group) {
        char digits[9];
        (void)std::snprintf(digits, sizeof digits, text.empty() ? "%x" : "%08x", *group);
        text += (text.empty() ? "" : ",") + std::string(digits);
    }
    return text;
}

}  // namespace sluice
