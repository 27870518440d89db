// Services, their limits, and what becomes of their packets: totals from the gate, and rates from
// two readings of them.
#pragma once

#include "base/result.h"
#include "cli/answer.h"
#include "cli/session.h"

namespace sluice::cli {

// {"time_ns", "mode", "policy_version", "idle": […], "services": […]} from the tables, all counts
// since the gate was made; "idle" says of each attachment that drops nothing why, and the mend.
Result<Json> read_traffic(const Session& session);

// The same by the daemon, for whoever may not read the tables, or from the tables where it does not
// run.
Result<Json> ask_traffic(const Session& session);

// Adds "per_s" to each service and "asked_per_s" to each budget: since `before`.
void add_rates(Json& now, const Json& before);

// Two readings this far apart, with rates; ask_traffic() where `session` may wait.
constexpr std::chrono::seconds kMeasured{1};
Result<Json> measure_traffic(const Session& session);

}  // namespace sluice::cli
