// What would happen to a source's next packet, and by whose word: from the packet path's tables.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "net/address.h"

namespace sluice {

enum class PacketKind : uint8_t {
    automatic,   // of data; of a new connection, too, where the service limits those
    connection,  // a TCP SYN
    data,        // a TCP segment with payload, or a datagram
    other,       // a bare ACK, ICMP, …
};

struct Question {
    // One of: a service by its name; a protocol, and its port; neither: every service, of which
    // the strictest answer counts.
    std::optional<std::string> service;
    std::optional<uint8_t> protocol;  // IPPROTO_*
    std::optional<uint16_t> port;
    std::optional<IpAddress> destination;
    PacketKind kind = PacketKind::automatic;
};

struct Why {
    struct Bucket {
        std::string rate;  // as the policy has it: "60/s", "10 per 60s"
        uint64_t burst = 0;
        uint64_t available = 0;
    };

    std::string verdict;  // a name of the counters: "drop_banned", "would_drop_banned"
    std::string rule;     // id of what decides, or comes nearest to: "login.per_source.data"
    std::string service;
    std::string source_class;  // empty where it has none
    uint64_t policy_version = 0;
    std::string
        actor;  // who said so: "policy", "operator", "schedule:NAME", or as noted with a ban
    std::optional<std::chrono::nanoseconds> expires_in;  // nothing: for good, or no end to wait for
    std::optional<Bucket> bucket;
    std::vector<std::string> notes;
};

// Reads only. ErrorCode::not_found where the policy has no such service.
Result<Why> why(Tables& tables, const IpAddress& source, const Question& question);

// The service of a packet, as the packet path finds it.
uint32_t service_of(const Tables& tables, uint8_t protocol, std::optional<uint16_t> port,
                    const std::optional<IpAddress>& destination);

}  // namespace sluice
