#include "fleet/heartbeat.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "base/text.h"
#include "heartbeat.lua.h"

namespace sluice {

namespace {

// Of a name of a machine: as many as the kernel allows.
constexpr size_t kLongestName = 64;
// An error of the policy's, with its place; not more than heartbeat.lua takes with the rest.
constexpr size_t kLongestRefusal = 160;

template <class Number>
Number number(std::string_view text) {
    Number value{};
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// Other programs may have written it, and people read it.
std::string word(std::string_view text) {
    return printable(shortened(text, kLongestName));
}

std::string cut_text(const CutRate& cut) {
    std::array<char, 96> text{};
    (void)std::snprintf(text.data(), text.size(), "%.3f %.3f %.0f %.4f", cut.packets, cut.cut,
                        cut.sources, cut.heaviest);
    return text.data();
}

// Nothing where it makes no sense: it may come from anywhere.
std::optional<CutRate> parse_cut(std::string_view text) {
    constexpr double kMost = 1e12;  // packets a second, and more than there are sources
    CutRate cut;
    for (double* field : {&cut.packets, &cut.cut, &cut.sources, &cut.heaviest}) {
        const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), *field);
        if (failure != std::errc{} || !(*field >= 0 && *field <= kMost))
            return std::nullopt;
        text.remove_prefix(std::min(text.size(), static_cast<size_t>(end - text.data()) + 1));
    }
    return cut.heaviest <= 1 && text.empty() ? std::optional(cut) : std::nullopt;
}

void take(Heartbeat& heartbeat, std::string_view key, std::string_view value) {
    if (key == "name")
        heartbeat.name = word(value);
    else if (key == "version")
        heartbeat.version = word(value);
    else if (key == "mode")
        heartbeat.mode = word(value);
    else if (key == "policy")
        heartbeat.policy_version = number<uint64_t>(value);
    else if (key == "fleet")
        heartbeat.fleet_version = number<uint64_t>(value);
    else if (key == "canary")
        heartbeat.is_canary = value == "1";
    else if (key == "refused")
        heartbeat.refused_version = number<uint64_t>(value);
    else if (key == "refusal")
        heartbeat.refusal = printable(shortened(value, kLongestRefusal));
    else if (key == "cut")
        heartbeat.cut = parse_cut(value);
    else if (key == "lag_us")
        heartbeat.lag = std::chrono::microseconds(number<uint32_t>(value));
}

}  // namespace

HostKeys::HostKeys(std::string_view fleet)
    : seen("sluice:{" + std::string(fleet) + ":hosts}"), words(seen + ":words") {}

redis::Command heartbeat_command(const HostKeys& keys, const Heartbeat& heartbeat) {
    // Lines, so that redis-cli shows them as they are.
    std::string words = "name=" + word(heartbeat.name) + "\nversion=" + heartbeat.version +
                        "\npolicy=" + std::to_string(heartbeat.policy_version) +
                        "\nmode=" + heartbeat.mode +
                        "\nlag_us=" + std::to_string(heartbeat.lag.count());
    if (heartbeat.fleet_version != 0)
        words += "\nfleet=" + std::to_string(heartbeat.fleet_version) +
                 (heartbeat.is_canary ? "\ncanary=1" : "");
    if (heartbeat.refused_version != 0)
        words += "\nrefused=" + std::to_string(heartbeat.refused_version) +
                 "\nrefusal=" + printable(shortened(heartbeat.refusal, kLongestRefusal));
    if (heartbeat.cut)
        words += "\ncut=" + cut_text(*heartbeat.cut);
    return lua::kHeartbeat.call({keys.seen, keys.words}).add(heartbeat.id).add(words);
}

Heartbeat parse_heartbeat(std::string_view id, std::string_view words) {
    Heartbeat heartbeat;
    heartbeat.id = word(id);
    while (!words.empty()) {
        const std::string_view line = words.substr(0, words.find('\n'));
        words.remove_prefix(std::min(words.size(), line.size() + 1));
        if (const size_t equals = line.find('='); equals != std::string_view::npos)
            take(heartbeat, line.substr(0, equals), line.substr(equals + 1));
    }
    return heartbeat;
}

}  // namespace sluice
