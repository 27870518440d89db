// Medians of a measurement, for people and for programs.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "cases.h"
#include "contest.h"

namespace sluice::bench {

struct Summary {
    double bare_ns = 0;  // medians
    double gate_ns = 0;
    double ratio = 0;  // median of the rounds' ratios; then their middle half
    double ratio_low = 0;
    double ratio_high = 0;
    double as_meant = 0;  // share of what was sent
};
Summary summarize(const Measurement& measurement);

void print_heading(std::ostream& out);
void print_row(std::ostream& out, const Case& which, const Summary& summary);
nlohmann::json to_json(const Case& which, const Summary& summary);

}  // namespace sluice::bench
