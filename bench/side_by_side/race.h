// One row measured: its contenders receive in turn, round by round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "contender.h"
#include "rows.h"
#include "spread.h"

namespace sluice::bench {

struct RaceOptions {
    unsigned rounds = 7;
    uint64_t packets = 400'000;  // a turn, fewer of those who are slow
};

struct Finish {
    std::string name;
    double ns = 0;          // a packet, all the way from the generator; the median
    Spread ratio{};         // to the bare drop of the same round
    double dropped = 1;     // share that it dropped itself
    std::string problem{};  // why there are no figures
};

struct RowResult {
    const Row* row = nullptr;
    Spread bare_ns;
    std::vector<Finish> finishes;
};

Result<RowResult> race(const Row& row, Contender& bare, const RaceOptions& options);

}  // namespace sluice::bench
