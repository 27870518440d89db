// A configuration put in force as a whole: its allows and classes, its services and limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "operate/config_file.h"
#include "operate/operator.h"

namespace sluice {

// The version that it got. With `confirm` it is taken back unless a confirmation comes in time.
// Where anything fails, the policy before stays as it was. The caller holds the WriterLock.
Result<uint64_t> apply_policy(Tables& tables, const ConfigFile& config,
                              std::optional<std::chrono::nanoseconds> confirm, const Operator& who);

// Not while one waits for its confirmation. The caller holds the WriterLock.
Status may_apply_policy(Tables& tables);

// What an operator should know of a policy in these tables, where there is anything: that nothing
// in it limits anybody, and what the tables were made too small for.
std::vector<std::string> remarks_on(const Tables& tables, const Policy& policy);

// After a writer was killed while it applied a policy: modes, allows and classes are those of the
// policy in force again. The caller holds the WriterLock.
Status mend_policy(Tables& tables, const Operator& who);

}  // namespace sluice
