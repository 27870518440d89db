#include "tune/device.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "tune/number.h"

namespace sluice {

namespace {

// Beyond it nothing is a number of queues, descriptors or microseconds of any card.
constexpr uint32_t kLargestNumber = 1'000'000;
constexpr std::string_view kDefault = "default ";

Error not_understood(DevicePart part, std::string_view text) {
    return failed(in_quotes(text) + " makes no sense as " + std::string(part_name(part)));
}

// Pairs of a name and a value.
template <class Take>
Status read_pairs(DevicePart part, std::string_view text, Take take) {
    std::istringstream words{std::string(text)};
    for (std::string name, value; words >> name;)
        if (!(words >> value) || !take(name, value))
            return not_understood(part, text);
    return {};
}

bool read_number(const std::string& text, unsigned& number) {
    const auto value = whole_number<unsigned>(text);
    if (!value || *value > kLargestNumber)
        return false;
    number = *value;
    return true;
}

Status set_channels(DeviceFacts& facts, std::string_view text) {
    Channels channels = facts.channels.value_or(Channels{});
    const Status read = read_pairs(
        DevicePart::channels, text, [&](const std::string& name, const std::string& value) {
            return (name == "rx" && read_number(value, channels.rx)) ||
                   (name == "tx" && read_number(value, channels.tx)) ||
                   (name == "combined" && read_number(value, channels.combined));
        });
    if (read)
        facts.channels = channels;
    return read;
}

Status set_rings(DeviceFacts& facts, std::string_view text) {
    Rings rings = facts.rings.value_or(Rings{});
    const Status read =
        read_pairs(DevicePart::rings, text, [&](const std::string& name, const std::string& value) {
            return (name == "rx" && read_number(value, rings.rx)) ||
                   (name == "tx" && read_number(value, rings.tx));
        });
    if (read)
        facts.rings = rings;
    return read;
}

Status set_coalescing(DeviceFacts& facts, std::string_view text) {
    Coalescing coalescing = facts.coalescing.value_or(Coalescing{});
    const Status read = read_pairs(
        DevicePart::coalescing, text, [&](const std::string& name, const std::string& value) {
            if (name == "adaptive-rx" && (value == "on" || value == "off")) {
                coalescing.adaptive_rx = value == "on";
                return true;
            }
            return name == "rx-usecs" && read_number(value, coalescing.rx_usecs);
        });
    if (read)
        facts.coalescing = coalescing;
    return read;
}

Status set_spread(DeviceFacts& facts, std::string_view text) {
    if (const auto queues = default_queues(DevicePart::spread, text)) {
        for (size_t bucket = 0; bucket < facts.spread.size(); ++bucket)
            facts.spread[bucket] = static_cast<uint32_t>(bucket % *queues);
        return {};
    }
    std::vector<uint32_t> spread;
    std::istringstream words{std::string(text)};
    for (std::string word; words >> word;) {
        unsigned queue = 0;
        if (!read_number(word, queue))
            return not_understood(DevicePart::spread, text);
        spread.push_back(queue);
    }
    facts.spread = std::move(spread);
    return {};
}

}  // namespace

unsigned receiving(const Channels& channels) {
    return channels.combined != 0 ? channels.combined : std::min(channels.rx, channels.tx);
}

std::string default_spread(unsigned queues) {
    return std::string(kDefault) + std::to_string(queues);
}

std::optional<unsigned> default_queues(DevicePart part, std::string_view text) {
    if (part != DevicePart::spread)
        return std::nullopt;
    const auto queues = number_behind(kDefault, text);
    return queues && *queues != 0 && *queues <= kLargestNumber ? queues : std::nullopt;
}

bool is_default(const std::vector<uint32_t>& spread, unsigned queues) {
    for (size_t bucket = 0; bucket < spread.size(); ++bucket)
        if (queues == 0 || spread[bucket] != bucket % queues)
            return false;
    return !spread.empty();
}

bool is_even(const std::vector<uint32_t>& spread, unsigned queues) {
    std::vector<size_t> buckets(queues);
    for (const uint32_t queue : spread) {
        if (queue >= queues)
            return false;
        buckets[queue]++;
    }
    const auto [least, most] = std::ranges::minmax_element(buckets);
    return least != buckets.end() && *most - *least <= 1;
}

std::string_view part_name(DevicePart part) {
    switch (part) {
        case DevicePart::channels:
            return "channels";
        case DevicePart::rings:
            return "rings";
        case DevicePart::coalescing:
            return "coalescing";
        case DevicePart::spread:
            break;
    }
    return "spread";
}

std::optional<std::string> part_text(const DeviceFacts& facts, DevicePart part) {
    switch (part) {
        case DevicePart::channels:
            if (!facts.channels)
                return std::nullopt;
            return "rx " + std::to_string(facts.channels->rx) + " tx " +
                   std::to_string(facts.channels->tx) + " combined " +
                   std::to_string(facts.channels->combined);
        case DevicePart::rings:
            if (!facts.rings)
                return std::nullopt;
            return "rx " + std::to_string(facts.rings->rx) + " tx " +
                   std::to_string(facts.rings->tx);
        case DevicePart::coalescing:
            if (!facts.coalescing)
                return std::nullopt;
            return std::string("adaptive-rx ") + (facts.coalescing->adaptive_rx ? "on" : "off") +
                   " rx-usecs " + std::to_string(facts.coalescing->rx_usecs);
        case DevicePart::spread:
            break;
    }
    if (facts.spread.empty())
        return std::nullopt;
    std::string text;
    for (const uint32_t queue : facts.spread)
        text += (text.empty() ? "" : " ") + std::to_string(queue);
    return text;
}

Status set_part(DeviceFacts& facts, DevicePart part, std::string_view text) {
    switch (part) {
        case DevicePart::channels:
            return set_channels(facts, text);
        case DevicePart::rings:
            return set_rings(facts, text);
        case DevicePart::coalescing:
            return set_coalescing(facts, text);
        case DevicePart::spread:
            break;
    }
    return set_spread(facts, text);
}

}  // namespace sluice
