// Opening a pinned gate: to look at it, or as its only writer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "gate/tables.h"

namespace sluice {

// ErrorCode::unreachable where no gate is pinned.
Result<Tables> open_gate(const std::string& pin_dir);

// The lock of a pin directory that is still there once the lock is held: whoever detaches a gate
// removes the directory that others wait for. ErrorCode::unreachable where it is gone.
Result<WriterLock> lock_gate(const std::string& pin_dir, std::chrono::milliseconds timeout);

struct WritableGate {
    WriterLock lock;
    std::shared_ptr<Tables> opened;
    Tables& tables;
    bool mended = false;  // a change that was cut off before
};

// The gate that its caller has open already, where that is still the pinned one; else nothing. To
// open a gate maps all of its tables, which takes milliseconds.
using KeptGate = std::function<std::shared_ptr<Tables>()>;

Result<std::shared_ptr<Tables>> open_gate(const std::string& pin_dir, const KeptGate& kept);

// Whether a change of bans, allows or the policy is under way, or its writer was killed.
bool is_cut_off(const Tables& tables);

// As open_gate, with everybody else kept from writing.
Result<WritableGate> open_gate_to_write(const std::string& pin_dir,
                                        std::chrono::milliseconds timeout,
                                        const KeptGate& kept = {});

bool is_on_bpffs(const std::string& path);
// Where everybody's pins lie.
bool is_bpffs_root(const std::string& path);

// A pin directory that cannot be used, with a hint where there is one.
Error cannot_open(const std::string& operation, int error_number);

// Removes all pins of a gate, or what is left of one; how many there were.
Result<size_t> remove_pin_files(const std::string& pin_dir);
// The same, and the directory where nothing else is in it.
Status remove_pins(const std::string& pin_dir);

}  // namespace sluice
