// What makes irqbalance leave the interrupts of tuned cards alone, instead of fighting it.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "tune/journal.h"
#include "tune/machine.h"

namespace sluice {

// For `irqbalance --policyscript`: called with a device's sysfs path and an interrupt's number, it
// takes those of `ports` out of its hands, whatever numbers they have by then.
std::string irqbalance_policy(const std::vector<std::string>& ports);
// A drop-in for irqbalance.service that names the script at `policy_path`.
std::string irqbalance_drop_in(const std::string& policy_path);

// The cards of all interfaces that are tuned, and `ports`, each once.
std::vector<std::string> ports_to_leave_alone(const Machine& machine, const JournalFolder& journals,
                                              std::vector<std::string> ports);

struct IrqbalanceFiles {
    std::string policy, drop_in;        // paths
    std::vector<std::string> commands;  // that install them, for people
};
// Writes both beside the journals; installing them is for whoever owns irqbalance. `folder` is
// where the machine itself has the journals, which is elsewhere than here where it was captured.
Result<IrqbalanceFiles> write_irqbalance_files(const JournalFolder& journals,
                                               const std::vector<std::string>& ports,
                                               const std::string& folder);

}  // namespace sluice
