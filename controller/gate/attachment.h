// Putting the gate on an interface, replacing it there, and taking it off again.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/policy.h"

namespace sluice {

struct AttachRequest {
    std::string interface;
    XdpMode mode = XdpMode::automatic;
    // Unless confirmed within this time, the gate passes everything from then on.
    std::optional<std::chrono::nanoseconds> confirm;
};

struct Attachment {
    std::string interface;
    unsigned index = 0;
    uint32_t slot = 0;
    bool native = false;
    bool dispatcher = false;  // beside others, else alone by a pinned link
    uint32_t program_id = 0;
    bool lost = false;     // somebody took it off, or another program is there now
    bool expired = false;  // not confirmed in time: passes everything
    std::vector<std::string> warnings = {};  // for people, each with its mend
};

// Attaches the gate of `tables`, or replaces the program where it is attached already: atomically,
// with neither a gap nor a packet charged twice. Refused with the reason: no such interface, one
// that is down, another XDP program in the way, no native XDP where it was asked for, a device
// above or below on which the gate sees the same packets already, all slots taken.
// The caller holds the WriterLock.
Result<Attachment> attach(Tables& tables, const AttachRequest& request);

// Takes the gate off one interface. ErrorCode::not_found where it is not attached there.
Status detach(Tables& tables, std::string_view interface);

// All attachments, each compared with what the kernel says.
Result<std::vector<Attachment>> attachments(const Tables& tables);

}  // namespace sluice
