// Attaching a whole gate (tables, protected set, policy, program) and taking it away: all or
// nothing.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/attachment.h"
#include "operate/config_file.h"
#include "operate/operator.h"
#include "policy/policy.h"

namespace sluice {

struct AttachOptions {
    std::string interface;
    std::string pin_dir;
    std::optional<XdpMode> xdp_mode;           // absent: the configuration's
    std::optional<std::string> config;         // absent: the policy in force, on a new gate none
    const ConfigFile* first_config = nullptr;  // instead of none: of a gate without a policy
    std::optional<std::chrono::nanoseconds> confirm;
    std::chrono::milliseconds timeout{};
    Operator who;
    // Told what new tables will take, before they are made.
    std::function<void(uint64_t needed_bytes, uint64_t available_bytes)> before_tables;
    // Of a new gate, with its policy in force and before a packet meets it.
    std::function<Status(Tables&)> before_attach;
};

struct AttachReport {
    Attachment attachment;
    bool new_gate = false;
    uint64_t table_bytes = 0;
    uint64_t policy_version = 0;
    std::string policy_source;
    std::vector<std::string> warnings;  // those of the attachment included
};

// Where anything fails, a gate that was made for this is removed again, and one that stood before
// goes on as it was.
Result<AttachReport> attach_gate(const AttachOptions& options);

struct DetachReport {
    bool gate_removed = false;  // it was the last interface
    // What went with the tables.
    size_t bans = 0;
    size_t allows = 0;
    size_t overrides = 0;  // of modes, by an operator
    std::vector<std::string> still_attached;
    std::vector<std::string> warnings;
};

// Without any interface left, the tables go too: nothing reads them any more.
Result<DetachReport> detach_gate(const std::string& pin_dir, const std::string& interface,
                                 std::chrono::milliseconds timeout);

}  // namespace sluice
