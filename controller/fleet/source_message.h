// One call to sources.lua, what a host sees of heavy sources, and its answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "fleet/lease_message.h"
#include "net/address.h"
#include "policy/policy.h"
#include "redis/command.h"
#include "redis/reply.h"

namespace sluice {

// Uses are told in thousandths of a limit.
inline constexpr double kUseUnit = 1000;
// What a call may carry, as sources.lua has it.
inline constexpr size_t kMostSourceRows = 1000;

// Sources are spread over as many keys as budgets are, by their address; the same on every host.
struct SourceKeys {
    SourceKeys(std::string_view fleet, unsigned shard);

    std::string windows[3];
};

// As one limit of a source is called in Redis. Hosts that only observe count apart: they take
// nothing from those that enforce.
std::string source_limit_name(LeasePool pool, std::string_view service, Dimension dimension,
                              const IpAddress& source);

struct ToldUse {
    std::string name;
    uint32_t use = 0;          // on this host
    uint32_t said = 0;         // last, in the window of the last call that was answered; 0: nothing
    uint32_t said_before = 0;  // in the window before that one
};

redis::Command sources_command(const SourceKeys& keys, uint64_t last_window,
                               std::span<const ToldUse> uses);

struct SourceAbove {
    size_t row = 0;
    double limits = 0;   // its use in the whole fleet
    uint32_t hosts = 0;  // that told of it
};

enum class SourcesOutcome : uint8_t {
    taken,
    busy,  // nothing of it: too many hosts call
    full,  // not all of it: too many sources
};

struct SourcesReply {
    uint64_t window = 0;
    SourcesOutcome outcome = SourcesOutcome::taken;
    std::vector<SourceAbove> above;
};

// An error where it is no answer to a call with so many rows.
Result<SourcesReply> parse_sources_reply(const redis::Reply& reply, size_t rows);

}  // namespace sluice
