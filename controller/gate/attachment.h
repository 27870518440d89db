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
    std::string interface;  // its name today, where that can be told from here
    unsigned index = 0;
    uint32_t slot = 0;
    bool native = false;
    bool dispatcher = false;  // beside others, else alone by a pinned link
    uint32_t program_id = 0;
    bool here = true;      // in this network namespace, so that its state is known
    bool lost = false;     // somebody took it off, or another program is there now
    bool expired = false;  // not confirmed in time: passes everything
    std::vector<std::string> warnings = {};  // for people, each with its mend

    // Whether packets are decided there.
    [[nodiscard]] bool acts() const { return !lost && !expired; }
};
// Why it does not act, for people, with the mend; empty where it does.
std::string why_idle(const Attachment& attachment);

// Attaches the gate of `tables`, or replaces the program where it is attached already: atomically,
// with neither a gap nor a packet charged twice. Refused with the reason: no such interface, one
// that is down, another XDP program in the way, no native XDP where it was asked for, a device
// above or below on which the gate sees the same packets already, all slots taken. What is left of
// an attachment that is lost gives its slot away: to an interface of its name first.
// The caller holds the WriterLock.
Result<Attachment> attach(Tables& tables, const AttachRequest& request);

// Puts the gate of `tables` in the place of another version's, which the link pinned at `link_pin`
// holds: atomically, and with that link, whose pin moves to these tables' directory. Can be
// repeated where it was cut off. The caller holds the WriterLock of both.
Result<Attachment> take_over(Tables& tables, const std::string& link_pin);

// Takes the gate off one interface, by its name today. ErrorCode::not_found where it is not
// attached there.
Status detach(Tables& tables, std::string_view interface);

// All attachments, each compared with what the kernel says.
Result<std::vector<Attachment>> attachments(const Tables& tables);

// Whether the gate is on interfaces of this network namespace, and of no other.
bool attached_here(const Tables& tables);

// What people know the interface of a slot by: its name today, where that can be told from here.
std::string present_name(const sluice_interface& entry);

}  // namespace sluice
