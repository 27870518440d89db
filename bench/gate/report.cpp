#include "report.h"

#include <iomanip>
#include <ostream>
#include <utility>
#include <vector>

#include "gate/counters.h"

namespace sluice::bench {

namespace {

constexpr int kNameWidth = 40, kColumn = 9;
// Fewer packets with the verdict of the case: the row measures something else.
constexpr double kFew = 0.95;

template <class Value>
Spread spread(const Measurement& measurement, Value value) {
    std::vector<double> values;
    for (const Round& round : measurement.rounds)
        values.push_back(value(round));
    return spread_of(std::move(values));
}

}  // namespace

Summary summarize(const Measurement& measurement) {
    return {.bare_ns = spread(measurement, [](const Round& r) { return r.bare_ns; }).median,
            .gate_ns = spread(measurement, [](const Round& r) { return r.gate_ns; }).median,
            .ratio = spread(measurement, [](const Round& r) { return r.gate_ns / r.bare_ns; }),
            .as_meant =
                static_cast<double>(measurement.as_meant) / static_cast<double>(measurement.sent)};
}

void print_heading(std::ostream& out) {
    out << std::left << std::setw(kNameWidth) << "packets" << std::right << std::setw(kColumn)
        << "sources" << std::setw(kColumn) << "bare ns" << std::setw(kColumn) << "gate ns"
        << std::setw(kColumn) << "ratio"
        << "   middle half\n";
}

void print_row(std::ostream& out, const Case& which, const Summary& summary) {
    out << std::left << std::setw(kNameWidth) << which.name << std::right << std::setw(kColumn)
        << which.sources() << std::fixed << std::setprecision(0) << std::setw(kColumn)
        << summary.bare_ns << std::setw(kColumn) << summary.gate_ns << std::setprecision(2)
        << std::setw(kColumn) << summary.ratio.median << "   " << summary.ratio.low << " to "
        << summary.ratio.high;
    if (summary.as_meant < kFew)
        out << "   (only " << std::setprecision(0) << summary.as_meant * 100 << " % are "
            << counter_name(sluice_counter_index(which.verdict, 0)) << ")";
    out << std::endl;
}

nlohmann::json to_json(const Case& which, const Summary& summary) {
    return {{"packets", which.name},
            {"sources", which.sources()},
            {"verdict", counter_name(sluice_counter_index(which.verdict, 0))},
            {"verdict_share", summary.as_meant},
            {"bare_ns", summary.bare_ns},
            {"gate_ns", summary.gate_ns},
            {"ratio", summary.ratio.median},
            {"ratio_middle_half", {summary.ratio.low, summary.ratio.high}}};
}

}  // namespace sluice::bench
