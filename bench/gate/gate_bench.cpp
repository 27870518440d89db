// What one packet costs the gate, by verdict, beside a bare XDP drop in the same run.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "contest.h"
#include "report.h"
#include "smoke.h"

namespace {

constexpr int kSkipped = 77;  // to ctest
constexpr unsigned kSmokeRounds = 5;

int fail(const sluice::Error& error) {
    std::cerr << "gate_bench: " << error.message << '\n';
    if (!error.hint.empty())
        std::cerr << "hint: " << error.hint << '\n';
    return static_cast<int>(error.code);
}

}  // namespace

int main(int argc, char** argv) {
    using namespace sluice::bench;

    ContestOptions options;
    std::string only;
    bool json = false, smoke_only = false;

    CLI::App app("Measures ns a packet for each verdict, beside a bare XDP drop in the same run.");
    app.add_option("--only", only, "cases whose name contains this");
    app.add_option("--rounds", options.rounds, "turns of each contestant")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--packets", options.packets, "packets a turn")
        ->check(CLI::Range(1'000, 100'000'000))
        ->capture_default_str();
    app.add_option("--cpu", options.cpu, "CPU to send and to receive on")->capture_default_str();
    app.add_flag("--json", json, "print one JSON object");
    app.add_flag("--smoke", smoke_only,
                 "only compare a few cases with what they are known to cost; asks for "
                 "SLUICE_PERF_SMOKE=1");
    CLI11_PARSE(app, argc, argv);

    if (smoke_only && std::getenv("SLUICE_PERF_SMOKE") == nullptr) {
        std::cout << "SKIP: measures: SLUICE_PERF_SMOKE=1 ctest -L perf-smoke\n";
        return kSkipped;
    }
    if (smoke_only)
        options.rounds = kSmokeRounds;
    auto contest = Contest::make(options);
    if (!contest)
        return fail(contest.error());

    if (smoke_only) {
        const auto well = smoke(*contest, std::cout);
        return !well ? fail(well.error()) : *well ? 0 : 1;
    }

    nlohmann::json rows = nlohmann::json::array();
    if (!json)
        print_heading(std::cout);
    for (const Case& which : all_cases()) {
        if (which.name.find(only) == std::string::npos)
            continue;
        const auto measured = contest->run(which);
        if (!measured)
            return fail(measured.error().with_context(which.name));
        const Summary summary = summarize(*measured);
        if (json)
            rows.push_back(to_json(which, summary));
        else
            print_row(std::cout, which, summary);
    }
    if (json)
        std::cout << nlohmann::json{{"gate_bytes", contest->gate_bytes()}, {"rows", rows}}.dump(2)
                  << '\n';
    else
        std::cout << "The gate's program is " << contest->gate_bytes()
                  << " bytes of machine code.\n";
    return 0;
}
