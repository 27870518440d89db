// What does not cost a packet's time but somebody's: new policies, long lists, memory.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/result.h"
#include "contender.h"

namespace sluice::bench {

struct UpkeepOptions {
    unsigned rounds = 7;
    uint32_t bans = 1'000'000;
    uint32_t sources = 1'000'000;
};

// Prints as it goes.
Result<nlohmann::json> measure_policy_switch(const UpkeepOptions& options, std::ostream& out);
// Loading and dumping a list of bans, and what it takes of the kernel's memory.
Result<nlohmann::json> measure_lists(const Cast& cast, const UpkeepOptions& options,
                                     std::ostream& out);
Result<nlohmann::json> measure_source_memory(const Cast& cast, const UpkeepOptions& options,
                                             std::ostream& out);

}  // namespace sluice::bench
