// One event of the packet path, in words.
#pragma once

#include <sluice/event.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gate/tables.h"
#include "net/address.h"
#include "policy/policy.h"

namespace sluice {

struct Event {
    uint64_t wall_ns = 0;
    std::string interface;
    IpAddress source;
    IpAddress destination;
    uint8_t protocol = 0;
    uint16_t source_port = 0;
    uint16_t destination_port = 0;
    std::string service;
    std::string verdict;  // "would_drop_…" in observe mode
    std::string rule;     // empty where no limit is at work
    std::string limit;    // "20/s"; empty likewise
    uint64_t policy_version = 0;
    uint64_t measured_ns = 0;  // how far ahead of the limit
    uint64_t sampled_of = 0;   // packets that it stands for: those since the last one like it
    uint64_t weight = 0;       // of its source's packets; 1 where it was favoured, not drawn
    bool passed = false;
    bool connection = false;  // SYN without ACK

    [[nodiscard]] nlohmann::ordered_json to_json() const;
};

// Packets of one service and verdict that no event stands for.
struct Untold {
    std::string service;
    std::string verdict;
    uint64_t packets = 0;
};

// Puts names to the numbers of raw events, and keeps count of what each one stands for, so that
// with what no event stands for it adds up to the counters.
class EventNames {
  public:
    // `tables` stays where it is for as long as this.
    explicit EventNames(const Tables& tables);

    Event name(const sluice_event& raw);

    // Drops from before the first event that was named here; each is told once.
    std::vector<Untold> before();
    // Drops that no event came for and, as their counter rests since the last call, none will. To
    // be called with the ring emptied, about once a second.
    std::vector<Untold> settle();

  private:
    // CPU, interface, service, verdict with its would_ twin.
    using Kind = std::tuple<uint32_t, uint16_t, uint16_t, uint32_t>;
    using Counts = std::map<Kind, uint64_t>;

    // As the policy of that version has it; empty where another one is in force by now.
    std::string limit_of(uint64_t version, const std::string& service, Rule rule);
    [[nodiscard]] std::string service_name(uint32_t service) const;
    [[nodiscard]] Untold untold(const Kind& kind, uint64_t packets) const;
    [[nodiscard]] uint64_t counter(const Kind& kind) const;
    // Every counter of drops that is not zero.
    [[nodiscard]] Counts all_drops() const;
    // The counter at the last event of this kind; where this is the first one, before it.
    uint64_t& last_of(const Kind& kind, uint64_t count);

    const Tables* tables_;
    uint64_t policy_version_ = 0;
    std::optional<Policy> policy_;
    Counts seen_;     // the counter at the last event
    Counts drawn_;    // at the last one that was drawn
    Counts base_;     // at the start, of kinds without an event since
    Counts resting_;  // at the last settle()
    std::vector<Untold> before_;
    unsigned settled_ = 0;
};

}  // namespace sluice
