#include "fleet/heartbeat.h"

#include <charconv>

#include "base/text.h"
#include "heartbeat.lua.h"

namespace sluice {

namespace {

// Of a name of a machine: as many as the kernel allows.
constexpr size_t kLongestName = 64;

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

void take(Heartbeat& heartbeat, std::string_view key, std::string_view value) {
    if (key == "name")
        heartbeat.name = word(value);
    else if (key == "version")
        heartbeat.version = word(value);
    else if (key == "mode")
        heartbeat.mode = word(value);
    else if (key == "policy")
        heartbeat.policy_version = number<uint64_t>(value);
    else if (key == "lag_us")
        heartbeat.lag = std::chrono::microseconds(number<uint32_t>(value));
}

}  // namespace

HostKeys::HostKeys(std::string_view fleet)
    : seen("sluice:{" + std::string(fleet) + ":hosts}"), words(seen + ":words") {}

redis::Command heartbeat_command(const HostKeys& keys, const Heartbeat& heartbeat) {
    // Lines, so that redis-cli shows them as they are.
    const std::string words = "name=" + word(heartbeat.name) + "\nversion=" + heartbeat.version +
                              "\npolicy=" + std::to_string(heartbeat.policy_version) +
                              "\nmode=" + heartbeat.mode +
                              "\nlag_us=" + std::to_string(heartbeat.lag.count());
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
