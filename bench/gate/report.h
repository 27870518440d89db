// Medians of a measurement, for people and for programs.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>

#include "cases.h"
#include "contest.h"
#include "spread.h"

namespace sluice::bench {

struct Summary {
    double bare_ns = 0;  // medians
    double gate_ns = 0;
    Spread ratio;         // of the rounds' ratios
    double as_meant = 0;  // share of what was sent
};
Summary summarize(const Measurement& measurement);

void print_heading(std::ostream& out);
void print_row(std::ostream& out, const Case& which, const Summary& summary);
nlohmann::json to_json(const Case& which, const Summary& summary);

}  // namespace sluice::bench
