// One packet of one kind, asked about at one service: all its limits in the packet path's order.
#pragma once

#include <optional>

#include "base/result.h"
#include "gate/source_rules.h"
#include "gate/why.h"
#include "policy/policy.h"

namespace sluice {

struct Inquiry {
    const IpAddress& source;
    uint32_t service_id;
    PacketKind kind;  // not `automatic`
    const SourceLookup& found;
    const std::optional<Policy>& policy;  // for its numbers as written
};

enum class Severity : uint8_t { passes, would_drop, drops };

struct Answer {
    Why why;
    Severity severity = Severity::passes;
    double headroom = 2;  // of the limit that is nearest, 0 to 1; more where there is none

    [[nodiscard]] bool is_stricter_than(const Answer& other) const;
};

Result<Answer> ask_limits(const Tables& tables, const Inquiry& inquiry);

}  // namespace sluice
