// Sluice beside others on the same page: real packets, one run, a table, JSON and plots.
#include <bpf/libbpf.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "http.h"
#include "plots.h"
#include "race.h"
#include "rows.h"
#include "table.h"
#include "upkeep.h"

namespace {

namespace fs = std::filesystem;
using namespace sluice::bench;

struct Options {
    RaceOptions race;
    std::string only;
    std::string folder;
    std::string draw;
    bool quick = false;
};

int fail(const sluice::Error& error) {
    std::cerr << "side_by_side: " << error.message << '\n';
    if (!error.hint.empty())
        std::cerr << "hint: " << error.hint << '\n';
    return static_cast<int>(error.code);
}

nlohmann::json machine() {
    utsname names{};
    ::uname(&names);
    std::string model, line;
    for (std::ifstream file("/proc/cpuinfo"); model.empty() && std::getline(file, line);)
        if (line.starts_with("model name"))
            model = line.substr(line.find(": ") + 2);
    return {{"kernel", names.release},
            {"processor", model},
            {"cores", std::thread::hardware_concurrency()}};
}

// Of a quick run: those that the plots and the front page need.
bool is_quick(const Row& row) {
    return row.packets.sources <= 100'000 && row.setup.bans.count <= 100'000 && row.cores == 1 &&
           (row.group == kOverGroup || row.group == kWithinGroup || row.group == kBannedGroup ||
            row.group == kNetworkGroup) &&
           row.setup.family == sluice::Family::ipv4 && !row.setup.bans.for_a_time;
}

sluice::Status write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (!file.flush())
        return sluice::failed("cannot write " + path);
    return {};
}

sluice::Result<nlohmann::json> measure(const Options& options) {
    auto programs = BareProgram::load();
    if (!programs)
        return programs.error();
    auto cast = Cast::make(*programs);
    if (!cast)
        return cast.error();
    nlohmann::json run = {{"machine", machine()},
                          {"rounds", options.race.rounds},
                          {"missing", cast->missing},
                          {"rows", nlohmann::json::array()},
                          {"http", nlohmann::json::array()}};
    for (const std::string& missing : cast->missing)
        std::cout << "left out, " << missing << '\n';

    const auto wanted = [&](const std::string& name) {
        return name.find(options.only) != std::string::npos;
    };
    print_heading(std::cout);
    const auto rows = all_rows(*cast);
    for (const Row& row : rows) {
        if ((options.quick && !is_quick(row)) || !(wanted(row.name) || wanted(row.group)))
            continue;
        const auto result = race(row, *cast->bare, options.race);
        if (!result && result.error().code == sluice::ErrorCode::not_found) {
            std::cout << row.name << ": left out: " << result.error().message << '\n';
            continue;
        }
        if (!result)
            return result.error().with_context(row.name);
        print(std::cout, *result);
        run["rows"].push_back(to_json(*result));
    }

    HttpOptions http;
    UpkeepOptions upkeep{.rounds = options.race.rounds};
    if (options.quick) {
        http = {.rounds = 1, .seconds = 1};
        upkeep.bans = upkeep.sources = 100'000;
    }
    const auto add = [&](const char* name, auto&& measurement) -> sluice::Status {
        if (!wanted(name))
            return {};
        std::cout << '\n';
        auto measured = measurement();
        if (!measured)
            return measured.error().with_context(name);
        run[name] = std::move(*measured);
        return {};
    };
    for (const auto& added :
         {add("http", [&] { return measure_rejections(http, std::cout); }),
          add("visitors", [&] { return measure_visitors(*cast, *programs, http, std::cout); }),
          add("policy switch", [&] { return measure_policy_switch(upkeep, std::cout); }),
          add("source memory", [&] { return measure_source_memory(*cast, upkeep, std::cout); }),
          add("ban lists", [&] { return measure_lists(*cast, upkeep, std::cout); })})
        if (!added)
            return added.error();
    return run;
}

sluice::Status work(const Options& options) {
    std::error_code ignored;
    fs::create_directories(options.folder, ignored);
    if (!options.draw.empty()) {
        std::ifstream file(options.draw);
        const auto run = nlohmann::json::parse(file, nullptr, false);
        if (run.is_discarded())
            return sluice::failed("cannot read " + options.draw);
        return draw_plots(run, options.folder);
    }
    auto run = measure(options);
    if (!run)
        return run.error();
    if (options.folder.empty())
        return {};
    if (const auto written = write(options.folder + "/side_by_side.json", run->dump(1) + "\n");
        !written)
        return written;
    return draw_plots(*run, options.folder);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Sluice beside other limiters: real packets over veth pairs, round by round.");
    app.add_option("--only", options.only, "rows and sections whose name contains this");
    app.add_option("--rounds", options.race.rounds, "turns of each contender")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    app.add_option("--packets", options.race.packets, "packets a turn, at most")
        ->check(CLI::Range(1'000, 100'000'000))
        ->capture_default_str();
    app.add_flag("--quick", options.quick, "fewer and smaller rows, for a first look");
    app.add_option("--output", options.folder, "folder for JSON and plots; none: the table only");
    app.add_option("--draw", options.draw, "only draw the plots of an earlier run's JSON");
    CLI11_PARSE(app, argc, argv);
    if (!options.draw.empty() && options.folder.empty())
        options.folder = ".";

    ::libbpf_set_print(nullptr);  // others' objects have sections that it does not know
    // Others must not hold up a flood just when it is measured.
    ::setpriority(PRIO_PROCESS, 0, -15);
    if (const auto worked = work(options); !worked)
        return fail(worked.error());
    return 0;
}
