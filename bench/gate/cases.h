// What is measured: one kind of packet from so many sources, and the verdict that it gets.
#pragma once

#include <sluice/verdict.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flood.h"
#include "measured_gate.h"

namespace sluice::bench {

struct Case {
    std::string name;
    sluice_verdict verdict;
    lab::FloodPlan packets;

    // "1", "1000", or "spoofed".
    [[nodiscard]] std::string sources() const;
};

std::vector<Case> all_cases();

// Policy and bans under which every case gets its verdict, all in force at once as in production.
Status prepare(MeasuredGate& gate);

}  // namespace sluice::bench
