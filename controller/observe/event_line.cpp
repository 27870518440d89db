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

// Kinds that no event ever came for are looked for each so many times: that reads every counter.
constexpr unsigned kFullScans = 16;

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

EventNames::EventNames(const Tables& tables) : tables_(&tables), base_(all_drops()) {}

std::string EventNames::service_name(uint32_t service) const {
    return service == SLUICE_SERVICE_OTHER || service >= tables_->sizes.services
               ? "other"
               : text_of(tables_->service_names[service].name, SLUICE_NAME_BYTES);
}

Untold EventNames::untold(const Kind& kind, uint64_t packets) const {
    return {service_name(std::get<2>(kind)), std::string(counter_name(std::get<3>(kind))), packets};
}

uint64_t EventNames::counter(const Kind& kind) const {
    const auto [cpu, interface, service, index] = kind;
    const TableSizes& sizes = tables_->sizes;
    if (cpu >= sizes.cpus || interface >= sizes.interfaces || service >= sizes.services ||
        index >= SLUICE_COUNTERS)
        return 0;
    const size_t row = (size_t{cpu} * sizes.interfaces + interface) * sizes.services + service;
    return __atomic_load_n(&tables_->counters[row].by_verdict[index].packets, __ATOMIC_RELAXED);
}

EventNames::Counts EventNames::all_drops() const {
    const TableSizes& sizes = tables_->sizes;
    Counts found;
    for (uint32_t cpu = 0; cpu < sizes.cpus; ++cpu)
        for (uint16_t interface = 0; interface < sizes.interfaces; ++interface)
            for (uint16_t service = 0; service < sizes.services; ++service)
                for (uint32_t index = SLUICE_FIRST_DROP; index < SLUICE_COUNTERS; ++index) {
                    const Kind kind{cpu, interface, service, index};
                    if (const uint64_t packets = counter(kind); packets != 0)
                        found.emplace(kind, packets);
                }
    return found;
}

uint64_t& EventNames::last_of(const Kind& kind, uint64_t count) {
    const auto [last, is_first] = seen_.try_emplace(kind, 0);
    if (const auto base = is_first ? base_.find(kind) : base_.end(); base != base_.end()) {
        // One that waited in the ring is older than the start.
        last->second = std::min(base->second, count - 1);
        before_.push_back(untold(kind, last->second));
        base_.erase(base);
    }
    return last->second;
}

std::vector<Untold> EventNames::before() {
    return std::exchange(before_, {});
}

std::vector<Untold> EventNames::settle() {
    for (const auto& [kind, packets] : std::exchange(base_, {})) {
        before_.push_back(untold(kind, packets));
        seen_.emplace(kind, packets);
    }
    if (settled_++ % kFullScans == 0)
        for (const auto& [kind, packets] : all_drops())
            seen_.try_emplace(kind, 0);
    std::vector<Untold> found;
    for (auto& [kind, seen] : seen_) {
        if (std::get<3>(kind) < SLUICE_FIRST_DROP)
            continue;
        const uint64_t now = counter(kind);
        if (now < seen)  // its service's id was given to another
            seen = 0;
        if (std::exchange(resting_[kind], now) != now || now == seen)
            continue;
        found.push_back(untold(kind, now - seen));
        seen = now;
    }
    return found;
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
    event.service = service_name(raw.service);
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
    // Counters of a service whose id was given to another begin at nothing again.
    const auto since = [&raw](uint64_t& last) {
        const uint64_t before = std::exchange(last, raw.count);
        return raw.count > before ? raw.count - before : raw.count;
    };
    const Kind kind{raw.cpu, raw.interface, raw.service, index};
    event.sampled_of = since(last_of(kind, raw.count));
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
