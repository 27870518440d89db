// One event of the packet path, in words.
#pragma once

#include <sluice/event.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

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

// Puts names to the numbers of raw events, and keeps count of what each one stands for.
class EventNames {
  public:
    // `tables` stays where it is for as long as this.
    explicit EventNames(const Tables& tables) : tables_(&tables) {}

    Event name(const sluice_event& raw);

  private:
    // As the policy of that version has it; empty where another one is in force by now.
    std::string limit_of(uint64_t version, const std::string& service, Rule rule);

    // CPU, interface, service, verdict with its would_ twin.
    using Kind = std::tuple<uint32_t, uint16_t, uint16_t, uint32_t>;

    const Tables* tables_;
    uint64_t policy_version_ = 0;
    std::optional<Policy> policy_;
    std::map<Kind, uint64_t> seen_;   // the counter at the last event
    std::map<Kind, uint64_t> drawn_;  // at the last one that was drawn
};

}  // namespace sluice
