// A gate of another version replaced under traffic by one of this version.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "operate/config_file.h"
#include "operate/operator.h"

namespace sluice {

struct UpgradeOptions {
    std::string pin_dir;
    const ConfigFile* config = nullptr;
    std::chrono::milliseconds timeout{};
    Operator who;
    // What the old tables do not tell is to come from elsewhere: switches, and where `listed` is
    // false, because they cannot be read, bans and allows as well.
    std::function<void(Tables&, bool listed)> restore;
};

struct UpgradeReport {
    std::vector<std::string> interfaces;
    size_t rules = 0;  // bans and allows taken over
};

// Makes new tables beside the old ones, fills them, and puts the new program in the place of the
// old one on each interface: at every moment one of the two decides, with all bans. Per-source
// state and counters begin anew. Where anything fails before the first interface, the old gate goes
// on and nothing is left behind; cut off after that, the next call goes on from there.
// Refused, with what to do instead: a gate under a dispatcher or in another network namespace.
Result<UpgradeReport> upgrade_gate(const UpgradeOptions& options);

// After an upgrade was cut off at its very end: what is left to do that needs no configuration.
void finish_upgrade(const std::string& pin_dir);

}  // namespace sluice
