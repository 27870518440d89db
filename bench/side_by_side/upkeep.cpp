#include "upkeep.h"

#include <atomic>
#include <chrono>
#include <fstream>
#include <iomanip>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "spread.h"

namespace sluice::bench {

namespace {

using Clock = std::chrono::steady_clock;

// Until the kernel has freed what is no longer in use.
constexpr auto kFreeing = std::chrono::seconds(2);

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// What the kernel holds for tables, in bytes: slabs, large allocations, per-CPU values.
double kernel_memory() {
    std::ifstream file("/proc/meminfo");
    std::string name, unit;
    double value = 0, sum = 0;
    while (file >> name >> value && std::getline(file, unit))
        if (name == "SUnreclaim:" || name == "VmallocUsed:" || name == "Percpu:")
            sum += value * 1024;
    return sum;
}

lab::FloodPlan flood_from_thousand() {
    lab::FloodPlan plan;
    plan.first_source = IpAddress::parse("100.64.0.0").value();
    plan.destination = IpAddress::parse("192.0.2.1").value();
    plan.destination_port = kLimitedPort;
    plan.sources = 1'000;
    return plan;
}

std::string policy_with_rate(unsigned rate) {
    return "mode = \"enforce\"\n[[service]]\nname = \"web\"\nmatch = [\"udp/1000\"]\n"
           "[service.per_source]\npackets = { rate = \"" +
           std::to_string(rate) + "/m\", burst = 1 }\n";
}

struct Named {
    const char* name;
    Contender* contender;
};

}  // namespace

Result<nlohmann::json> measure_policy_switch(const UpkeepOptions& options, std::ostream& out) {
    auto lane = Lane::make();
    if (!lane)
        return lane.error();
    auto gate = MeasuredGate::make();
    if (!gate)
        return gate.error();
    if (const auto installed = gate->install(policy_with_rate(1)); !installed)
        return installed.error();
    if (const auto attached = lane->attach(gate->fd()); !attached)
        return attached.error();
    auto traffic = lane->traffic(flood_from_thousand(), {0});
    if (!traffic)
        return traffic.error();
    if (const auto pinned = pin_to(0); !pinned)
        return pinned.error();

    constexpr uint64_t kPackets = 1'000'000;
    std::vector<double> calm, flipping, ratios, install_ms;
    for (unsigned round = 0; round < options.rounds; round++) {
        const auto before = traffic->time(kPackets);
        std::atomic<bool> stop = false;
        std::thread flipper([&] {
            (void)pin_to(std::thread::hardware_concurrency() - 1);
            for (unsigned i = 0; !stop; i++) {
                const auto start = Clock::now();
                (void)gate->install(policy_with_rate(1 + i % 2));
                install_ms.push_back(seconds_since(start) * 1e3);
            }
        });
        const auto during = traffic->time(kPackets);
        stop = true;
        flipper.join();
        if (!before || !during)
            return (!before ? before : during).error();
        calm.push_back(*before);
        flipping.push_back(*during);
        ratios.push_back(*during / *before);
    }
    const Spread ratio = spread_of(ratios), install = spread_of(install_ms);
    out << std::fixed << std::setprecision(2)
        << "policy switched all the time: " << spread_of(flipping).median << " ns a packet, else "
        << spread_of(calm).median << " ns: ratio " << ratio.median << " (" << ratio.low << " to "
        << ratio.high << "); one switch takes " << install.median << " ms" << std::endl;
    return nlohmann::json{{"calm_ns", spread_of(calm).median},
                          {"flipping_ns", spread_of(flipping).median},
                          {"ratio", ratio.median},
                          {"ratio_middle_half", {ratio.low, ratio.high}},
                          {"switches", install_ms.size()},
                          {"switch_ms", install.median}};
}

Result<nlohmann::json> measure_lists(const Cast& cast, const UpkeepOptions& options,
                                     std::ostream& out) {
    nlohmann::json rows = nlohmann::json::array();
    out << std::left << std::setw(28) << "a list of bans" << std::right << std::setw(12) << "bans"
        << std::setw(12) << "load s" << std::setw(12) << "dump s" << std::setw(16)
        << "kernel B a ban\n";
    for (const auto& [name, contender] :
         {Named{"Sluice", cast.gate.get()}, Named{"xdp-filter (batches)", cast.xdp_filter.get()},
          Named{"nftables set", cast.nftables.get()}, Named{"ipset", cast.ipset.get()}}) {
        if (contender == nullptr)
            continue;
        Setup setup;
        setup.bans.count = 1;
        if (const auto emptied = contender->apply(setup); !emptied)
            return emptied.error();
        setup.bans.count = options.bans;
        std::this_thread::sleep_for(kFreeing);
        const double memory = kernel_memory();
        auto start = Clock::now();
        if (const auto loaded = contender->apply(setup); !loaded)
            return loaded.error().with_context(name);
        const double load = seconds_since(start);
        const double each = (kernel_memory() - memory) / options.bans;
        start = Clock::now();
        if (const auto dumped = contender->dump(); !dumped)
            return dumped.error().with_context(name);
        const double dump = seconds_since(start);
        out << std::left << std::setw(28) << name << std::right << std::setw(12) << options.bans
            << std::fixed << std::setprecision(2) << std::setw(12) << load << std::setw(12) << dump
            << std::setprecision(0) << std::setw(15) << each << std::endl;
        rows.push_back({{"name", name},
                        {"bans", options.bans},
                        {"load_s", load},
                        {"dump_s", dump},
                        {"kernel_bytes_a_ban", each}});
    }
    // The gate's tables are there before the first ban.
    TableSizes with, without;
    without.ban4_lines = without.listing = 1;
    const double each = static_cast<double>(with.memory() - without.memory()) / 1'000'000;
    out << "Sluice's tables are made beforehand: " << std::setprecision(0) << each
        << " B a ban of 1,000,000, of which the default has room for more." << std::endl;
    return nlohmann::json{{"rows", rows}, {"sluice_reserved_bytes_a_ban", each}};
}

Result<nlohmann::json> measure_source_memory(const Cast& cast, const UpkeepOptions& options,
                                             std::ostream& out) {
    nlohmann::json rows = nlohmann::json::array();
    const auto print = [&](const char* name, double each) {
        out << "memory of a limited source: " << std::left << std::setw(24) << name << std::right
            << std::fixed << std::setprecision(0) << std::setw(6) << each << " B" << std::endl;
        rows.push_back({{"name", name}, {"kernel_bytes_a_source", each}});
    };
    TableSizes with, without;
    with.source_sets = 1U << 18;
    without.source_sets = 1;
    print("Sluice", static_cast<double>(with.memory() - without.memory()) / 1'000'000);
    for (const auto& [name, contender] : {Named{"nftables dynamic set", cast.nftables.get()},
                                          Named{"iptables hashlimit", cast.hashlimit.get()}}) {
        if (contender == nullptr)
            continue;
        Setup setup;
        setup.limit = {.rate = 1, .a_minute = true, .burst = 2};  // in force nowhere else: empty
        if (const auto applied = contender->apply(setup); !applied)
            return applied.error().with_context(name);
        std::this_thread::sleep_for(kFreeing);
        const double memory = kernel_memory();
        lab::FloodPlan plan = flood_from_thousand();
        plan.sources = options.sources;
        auto traffic = contender->lane().traffic(plan, {0});
        if (!traffic)
            return traffic.error();
        if (const auto sent = traffic->time(options.sources); !sent)
            return sent.error();
        print(name, (kernel_memory() - memory) / options.sources);
    }
    return rows;
}

}  // namespace sluice::bench
