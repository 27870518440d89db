// What leases of budgets cost Redis, and how well they divide them, with 1 to 5,000 hosts.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "chart.h"
#include "simulated_fleet.h"

namespace sluice::sim {

namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr const char* kBudget = "web.data";
constexpr double kPerHost = 1000;  // units a second
// A new fleet only confirms what is claimed for the longest lease; then it takes a moment.
constexpr milliseconds kSettled = 16s;

struct Settings {
    std::string url;
    std::string output;
    std::vector<unsigned> hosts = {1, 10, 100, 1000, 5000};
    std::vector<unsigned> budgets = {1, 10, 100};
    milliseconds phase = 10s;
    unsigned calls = 20'000;
};

[[noreturn]] void give_up(const Error& error) {
    std::fprintf(stderr, "fleet_sim: %s\n", error.message.c_str());
    std::exit(1);
}

void must(const Status& status) {
    if (!status)
        give_up(status.error());
}

redis::Reply ask(Redis& redis, const redis::Command& command) {
    auto reply = redis.run(command);
    if (!reply)
        give_up(reply.error());
    return *std::move(reply);
}

// The number behind "name=" or "name:" in what INFO says; 0 where there is none.
double number_in(const std::string& text, const std::string& name) {
    const size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + name.size(), nullptr);
}

// Redis's own count of what scripts took it.
struct ScriptTime {
    explicit ScriptTime(Redis& of) : redis(of) {
        must(ask(redis, {"CONFIG", "RESETSTAT"}).check());
    }
    [[nodiscard]] double us_per_call() const {
        const redis::Reply info = ask(redis, {"INFO", "commandstats"});
        const std::string text(info.as_text().has_value() ? *info.as_text() : "");
        const size_t at = text.find("cmdstat_evalsha:");
        return at == std::string::npos ? 0 : number_in(text.substr(at), "usec_per_call=");
    }
    Redis& redis;
};

FleetModel model_of(unsigned hosts) {
    FleetModel model;
    model.hosts = hosts;
    const double budget = kPerHost * hosts;
    model.budgets = {{{kBudget, budget, budget / 20, 1}, OnRedisLoss::safe}};
    model.lease.max_hosts = hosts;
    model.network = {.lost_requests = 0.05, .lost_replies = 0.05, .late_delay = 20ms, .late = 0.2};
    return model;
}

// How long until the host has nearly all that is its own, once it asks for everything.
milliseconds convergence(SimulatedFleet& fleet, unsigned host, double wanted) {
    const milliseconds begin = fleet.now();
    while (fleet.in_force(host, kBudget) < 0.95 * wanted && fleet.now() - begin < 10s)
        must(fleet.run(5ms));
    return fleet.now() - begin;
}

nlohmann::json simulate(Redis& redis, const Settings& settings, unsigned hosts) {
    must(ask(redis, {"FLUSHALL"}).check());
    auto made = SimulatedFleet::make(redis, model_of(hosts));
    if (!made)
        give_up(made.error());
    SimulatedFleet& fleet = *made;
    must(fleet.set_budgets(1));
    for (unsigned host = 0; host < hosts; host++)
        fleet.set_demand(host, kPerHost * (host % 2 == 0 ? 1.5 : 3));
    must(fleet.run(kSettled));
    const double seconds = std::chrono::duration<double>(settings.phase).count();

    // Everybody asks for more than its part.
    fleet.reset_totals();
    uint64_t calls = fleet.calls();
    const ScriptTime time(redis);
    must(fleet.run(settings.phase));
    const BudgetTotals busy = fleet.totals(kBudget);
    const double us = time.us_per_call();
    const double call_rate = static_cast<double>(fleet.calls() - calls) / seconds / hosts;

    // One is flooded, the others are calm, and together they ask for half.
    for (unsigned host = 1; host < hosts; host++)
        fleet.set_demand(host, kPerHost / 2);
    fleet.set_demand(0, hosts == 1 ? kPerHost / 2 : 0);
    must(fleet.run(3s));
    fleet.set_demand(0, 10 * kPerHost * hosts);
    const milliseconds converged =
        convergence(fleet, 0, hosts == 1 ? 0.97 * kPerHost : 0.45 * kPerHost * hosts);
    fleet.reset_totals();
    must(fleet.run(settings.phase));
    double calm = 0;
    for (unsigned host = 1; host < hosts; host++)
        calm += fleet.admitted(host, kBudget);
    const BudgetTotals flooded = fleet.totals(kBudget);

    nlohmann::json row = {
        {"hosts", hosts},
        {"worst_issued", std::max(busy.worst_issued, flooded.worst_issued)},
        {"utilisation", busy.admitted / busy.wanted},
        {"worst_second", busy.worst_second / (kPerHost * hosts)},
        {"convergence_ms", converged.count()},
        {"flooded_utilisation", flooded.admitted / flooded.wanted},
        {"us_per_call", us},
        {"calls_per_host_and_second", call_rate},
        {"redis_core_share", call_rate * hosts * us * 1e-6},
    };
    if (hosts > 1)
        row["calm_kept"] = calm / (kPerHost / 2 * (hosts - 1) * seconds);
    return row;
}

// One call a host, with so many budgets in one shard: the script alone, by Redis's own count.
nlohmann::json cost(Redis& redis, const Settings& settings, unsigned budgets, unsigned hosts) {
    must(ask(redis, {"FLUSHALL"}).check());
    const LeaseKeys keys("cost", 0);
    std::vector<FleetBudget> all;
    std::vector<LeaseDemand> demands;
    for (unsigned b = 0; b < budgets; b++) {
        const std::string name = "service-" + std::to_string(b) + ".data";
        all.push_back({name, kPerHost * hosts, kPerHost * hosts / 20, 1});
        demands.push_back({.budget = name, .per_second = kPerHost * 2, .claim = kPerHost});
    }
    must(ask(redis, budget_command(budget_script(), keys, 1, 0ms, all)).check());
    LeaseRequest request;
    request.demands = demands;
    const auto call = [&](unsigned host, uint64_t seq) {
        request.host = std::to_string(host);
        request.seq = seq;
        request.acked_seq = seq - 1;
        must(ask(redis, lease_command(lease_script(), keys, request)).check());
    };
    for (unsigned host = 0; host < hosts; host++)
        call(host, 1);
    const ScriptTime time(redis);
    const unsigned rounds = std::max(1U, settings.calls / (budgets * hosts));
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned host = 0; host < hosts; host++)
            call(host, round + 2);
    return {{"budgets", budgets}, {"hosts", hosts}, {"us_per_call", time.us_per_call()}};
}

void print_cost(const nlohmann::json& row) {
    std::printf("%8u  %8u  %8.1f\n", row["budgets"].get<unsigned>(), row["hosts"].get<unsigned>(),
                row["us_per_call"].get<double>());
}

std::string percent(const nlohmann::json& row, const char* name) {
    if (!row.contains(name))
        return "-";
    std::ostringstream text;
    text.precision(1);
    text << std::fixed << row[name].get<double>() * 100 << " %";
    return text.str();
}

void print_fleet(const nlohmann::json& row) {
    std::printf("%6u  %7.4f  %8s  %8.3f  %8s  %8s  %7lld ms  %8.1f  %7.1f  %8s\n",
                row["hosts"].get<unsigned>(), row["worst_issued"].get<double>(),
                percent(row, "utilisation").c_str(), row["worst_second"].get<double>(),
                percent(row, "calm_kept").c_str(), percent(row, "flooded_utilisation").c_str(),
                row["convergence_ms"].get<long long>(), row["us_per_call"].get<double>(),
                row["calls_per_host_and_second"].get<double>(),
                percent(row, "redis_core_share").c_str());
    std::fflush(stdout);
}

// How it all grows with the fleet.
bench::LineChart chart_of(const nlohmann::json& fleets) {
    struct Quantity {
        const char* name;
        const char* key;
        double factor;
    };
    constexpr std::array kQuantities = {
        Quantity{"until converged, ms", "convergence_ms", 1},
        Quantity{"used of the budget, %", "utilisation", 100},
        Quantity{"most in force at once, %", "worst_issued", 100},
        Quantity{"the script, µs a call", "us_per_call", 1},
        Quantity{"Redis, % of a core", "redis_core_share", 100},
        Quantity{"calls a host and second", "calls_per_host_and_second", 1},
    };
    bench::LineChart chart{.title = "A budget shared by a fleet",
                           .below =
                               "One budget on one Redis; 10 % of the calls are lost, 20 % of "
                               "the answers come 20 ms late",
                           .x_name = "hosts",
                           .lines = {},
                           .one = {}};
    for (const Quantity& quantity : kQuantities) {
        bench::Line line{.name = quantity.name, .points = {}};
        for (const auto& row : fleets)
            if (const double value = row[quantity.key].get<double>() * quantity.factor; value > 0)
                line.points.emplace_back(row["hosts"].get<double>(), value);
        if (!line.points.empty())
            chart.lines.push_back(std::move(line));
    }
    return chart;
}

void write(const nlohmann::json& run, const std::string& output) {
    std::ofstream(output + ".json") << run.dump(2) << '\n';
    must(bench::draw(chart_of(run["fleets"]), output + ".svg"));
}

void measure(Redis& redis, const Settings& settings) {
    nlohmann::json run = {{"cost", nlohmann::json::array()}, {"fleets", nlohmann::json::array()}};
    std::printf("The script alone\n budgets     hosts   us/call\n");
    for (const unsigned budgets : settings.budgets)
        for (const unsigned hosts : {1U, 1000U}) {
            run["cost"].push_back(cost(redis, settings, budgets, hosts));
            print_cost(run["cost"].back());
        }
    std::printf(
        "\nFleets that share one budget; 10 %% of the calls are lost, 20 %% come 20 ms late\n"
        "          most      used      worst      calm     used,       until           "
        " calls/s  Redis\n"
        " hosts  issued   of budget  second      kept    flooded   converged   us/call  "
        "a host    core\n");
    for (const unsigned hosts : settings.hosts) {
        run["fleets"].push_back(simulate(redis, settings, hosts));
        print_fleet(run["fleets"].back());
    }
    if (!settings.output.empty())
        write(run, settings.output);
}

int main_of(int argc, char** argv) {
    Settings settings;
    bool quick = false;
    CLI::App app("Budgets of a simulated fleet on a real Redis, which it empties");
    app.add_option("--url", settings.url, "Redis of its own, such as unix:///tmp/redis.sock")
        ->required();
    app.add_option("--hosts", settings.hosts, "sizes of fleets")->delimiter(',');
    app.add_option("--output", settings.output, "JSON and a plot go to files of this name");
    app.add_flag("--quick", quick, "smaller and shorter");
    CLI11_PARSE(app, argc, argv);
    if (quick) {
        if (app.count("--hosts") == 0)
            settings.hosts = {1, 10, 100};
        settings.phase = 4s;
        settings.calls = 4'000;
    }
    redis::Options options;
    options.url = settings.url;
    options.command_timeout = 30s;
    auto redis = Redis::open(options);
    if (!redis)
        give_up(redis.error());
    measure(*redis, settings);
    return 0;
}

}  // namespace

}  // namespace sluice::sim

int main(int argc, char** argv) {
    return sluice::sim::main_of(argc, argv);
}
