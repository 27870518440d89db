#include "table.h"

#include <iomanip>

namespace sluice::bench {

namespace {

constexpr int kName = 40, kColumn = 10;

}  // namespace

void print_heading(std::ostream& out) {
    out << std::left << std::setw(kName) << "" << std::right << std::setw(kColumn) << "sources"
        << std::setw(kColumn) << "ns" << std::setw(kColumn) << "ratio" << std::setw(16)
        << "middle half" << std::setw(kColumn) << "dropped" << std::endl;
}

void print(std::ostream& out, const RowResult& result) {
    const Row& row = *result.row;
    out << std::left << std::setw(kName) << row.name + (row.cores > 1 ? " (2 cores)" : "")
        << std::right << std::setw(kColumn) << row.sources << std::fixed << std::setprecision(0)
        << std::setw(kColumn) << result.bare_ns.median << std::setw(kColumn) << "bare" << std::endl;
    for (const Finish& finish : result.finishes) {
        out << "  " << std::left << std::setw(kName - 2) << finish.name << std::right;
        if (!finish.problem.empty()) {
            out << "  no figures: " << finish.problem << std::endl;
            continue;
        }
        out << std::setw(kColumn) << "" << std::setprecision(0) << std::setw(kColumn) << finish.ns
            << std::setprecision(2) << std::setw(kColumn) << finish.ratio.median << std::setw(7)
            << finish.ratio.low << " to" << std::setw(6) << finish.ratio.high
            << std::setprecision(1) << std::setw(kColumn - 2) << 100 * finish.dropped << " %"
            << std::endl;
    }
}

nlohmann::json to_json(const RowResult& result) {
    const Row& row = *result.row;
    nlohmann::json contenders = nlohmann::json::array();
    for (const Finish& finish : result.finishes)
        if (finish.problem.empty())
            contenders.push_back({{"name", finish.name},
                                  {"ns", finish.ns},
                                  {"ratio", finish.ratio.median},
                                  {"ratio_middle_half", {finish.ratio.low, finish.ratio.high}},
                                  {"dropped", finish.dropped}});
        else
            contenders.push_back({{"name", finish.name}, {"problem", finish.problem}});
    return {{"group", row.group},
            {"name", row.name},
            {"sources", row.sources},
            {"source_count", row.packets.scatter ? 0 : row.packets.sources},
            {"bans", row.setup.bans.count},
            {"cores", row.cores},
            {"bare_ns", result.bare_ns.median},
            {"bare_ns_middle_half", {result.bare_ns.low, result.bare_ns.high}},
            {"contenders", contenders}};
}

}  // namespace sluice::bench
