#include "observe/event_line.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "gate/counters.h"
#include "gate/policy_store.h"
#include "observe/timestamp.h"
#include "policy/compile.h"
#include "policy/rule_id.h"
#include "policy/written_rate.h"

namespace sluice {

namespace {

IpAddress address_of(const uint8_t (&bytes)[16]) {
    std::array<uint8_t, 16> copy{};
    std::copy(std::begin(bytes), std::end(bytes), copy.begin());
    return IpAddress::from_bytes(copy);
}

std::string protocol_name(uint8_t protocol) {
    switch (protocol) {
        case IPPROTO_TCP:
            return "tcp";
        case IPPROTO_UDP:
            return "udp";
        case IPPROTO_ICMP:
            return "icmp";
        case IPPROTO_ICMPV6:
            return "icmp6";
        default:
            return "proto/" + std::to_string(protocol);
    }
}

std::string text_of(const char* text, size_t most) {
    return {text, ::strnlen(text, most)};
}

}  // namespace

nlohmann::ordered_json Event::to_json() const {
    using Json = nlohmann::ordered_json;
    const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
    return {{"time", format_timestamp(wall_ns)},
            {"iface", interface},
            {"src", source.to_string()},
            {"dst", destination.to_string()},
            {"proto", protocol_name(protocol)},
            {"sport", source_port},
            {"dport", destination_port},
            {"service", service},
            {"verdict", verdict},
            {"rule", text(rule)},
            {"policy_version", policy_version},
            {"limit", text(limit)},
            {"measured", measured_ns == 0 ? Json() : Json(static_cast<double>(measured_ns) / 1e9)},
            {"sampled_of", sampled_of}};
}

std::string EventNames::limit_of(uint64_t version, const std::string& service, Rule rule) {
    if (version != policy_version_) {
        policy_version_ = version;
        const auto installed = current_policy(*tables_);
        policy_.reset();
        if (installed && installed->version == version)
            policy_ = installed->policy;
    }
    return policy_ ? written_rate(*policy_, service, rule) : std::string();
}

Event EventNames::name(const sluice_event& raw) {
    const Tables& t = *tables_;
    const uint32_t index = sluice_counter_index(raw.verdict, raw.flags & SLUICE_EVENT_WOULD);

    Event event;
    event.wall_ns = raw.time_ns + static_cast<uint64_t>(wall_minus_monotonic_ns());
    if (raw.interface < t.sizes.interfaces)
        event.interface = text_of(t.interfaces[raw.interface].name, sizeof(sluice_interface::name));
    event.source = address_of(raw.source);
    event.destination = address_of(raw.destination);
    event.protocol = raw.protocol;
    event.source_port = raw.source_port;
    event.destination_port = raw.destination_port;
    event.service = raw.service == SLUICE_SERVICE_OTHER || raw.service >= t.sizes.services
                        ? "other"
                        : text_of(t.service_names[raw.service].name, SLUICE_NAME_BYTES);
    event.verdict = index < SLUICE_COUNTERS ? counter_name(index) : "unknown";
    if (raw.rule < SLUICE_RULES) {
        const Rule rule = rule_from_index(raw.rule);
        event.rule = format_rule_id({event.service, rule});
        event.limit = limit_of(raw.policy_version, event.service, rule);
    }
    event.policy_version = raw.policy_version;
    event.measured_ns = raw.measured;
    event.passed = !sluice_is_drop(raw.verdict);
    event.connection = (raw.flags & SLUICE_EVENT_CONNECTION) != 0;
    // Counters of a gate made anew begin at nothing again.
    const auto since = [&raw](uint64_t& last) {
        const uint64_t before = std::exchange(last, raw.count);
        return raw.count > before ? raw.count - before : raw.count;
    };
    const Kind kind{raw.cpu, raw.interface, raw.service, index};
    event.sampled_of = since(seen_[kind]);
    event.weight = 1;
    if ((raw.flags & SLUICE_EVENT_FIRST) == 0) {
        // How many there were before the first one says nothing about now.
        const auto [last, is_new] = drawn_.try_emplace(kind, raw.count);
        if (!is_new)
            event.weight = since(last->second);
    }
    return event;
}

}  // namespace sluice
