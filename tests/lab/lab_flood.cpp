// A bounded flood of packets from many sources, to be run in the sender's network namespace.
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "flood.h"

namespace {

std::atomic<bool> stop_requested{false};

int fail(const sluice::Error& error) {
    std::cerr << "lab_flood: " << error.message << '\n';
    if (!error.hint.empty())
        std::cerr << "hint: " << error.hint << '\n';
    return static_cast<int>(error.code);
}

}  // namespace

int main(int argc, char** argv) {
    using sluice::lab::FloodKind;

    sluice::lab::FloodPlan plan;
    std::string source;
    std::string destination;
    std::string mac = "02:00:00:00:00:01";
    std::string rate = "max";
    double duration = 10;
    int cpu = -1;
    const std::map<std::string, FloodKind> kinds = {
        {"udp", FloodKind::udp}, {"syn", FloodKind::syn}, {"data", FloodKind::data}};

    CLI::App app("Sends a bounded flood out of a veth device and prints what was sent as JSON.");
    app.add_option("--dev", plan.device, "sending device")->required();
    app.add_option("--base-address", source, "first source address, IPv4 or IPv6")->required();
    app.add_option("--destination", destination, "destination address")->required();
    app.add_option("--destination-mac", mac, "MAC address of the receiver")->capture_default_str();
    app.add_option("--dport", plan.destination_port, "destination port")->capture_default_str();
    app.add_option("--proto", plan.kind, "udp, syn (TCP SYN) or data (TCP with payload)")
        ->transform(CLI::CheckedTransformer(kinds));
    app.add_option("--sources", plan.sources, "number of sources")->capture_default_str();
    app.add_option("--source-prefix", plan.source_prefix,
                   "prefix length that differs between sources (32, IPv6 64)");
    app.add_option("--flows", plan.flows, "number of source ports")->capture_default_str();
    app.add_option("--first-flow", plan.first_flow, "first source port")->capture_default_str();
    app.add_option("--payload", plan.payload, "payload bytes");
    app.add_option("--vlan", plan.vlan_tags, "number of VLAN tags")->capture_default_str();
    app.add_option("--rate", rate, "packets per second, or max")->capture_default_str();
    app.add_option("--count", plan.count, "packets (default: until the duration ends)");
    app.add_option("--duration", duration, "seconds, at most 600")->capture_default_str();
    app.add_option("--cpu", cpu, "CPU to run on, which picks the receive queue");
    CLI11_PARSE(app, argc, argv);

    auto first_source = sluice::IpAddress::parse(source);
    if (!first_source)
        return fail(first_source.error());
    auto target = sluice::IpAddress::parse(destination);
    if (!target)
        return fail(target.error());
    auto target_mac = sluice::lab::parse_mac(mac);
    if (!target_mac)
        return fail(target_mac.error());
    if (rate != "max" && !CLI::detail::lexical_cast(rate, plan.rate))
        return fail(sluice::make_error(sluice::ErrorCode::usage, "--rate takes a number or max"));

    plan.first_source = *first_source;
    plan.destination = *target;
    plan.destination_mac = *target_mac;
    plan.duration = std::chrono::milliseconds(static_cast<int64_t>(duration * 1000));
    if (cpu >= 0)
        plan.cpu = static_cast<unsigned>(cpu);

    auto flood = sluice::lab::Flood::make(plan);
    if (!flood)
        return fail(flood.error());

    struct sigaction on_signal {};
    on_signal.sa_handler = [](int) { stop_requested = true; };
    ::sigaction(SIGINT, &on_signal, nullptr);
    ::sigaction(SIGTERM, &on_signal, nullptr);

    auto report = flood->run(stop_requested);
    if (!report)
        return fail(report.error());
    const double elapsed = report->elapsed.count();
    const nlohmann::json output = {
        {"sent", report->sent},
        {"seconds", elapsed},
        {"packets_per_second", static_cast<double>(report->sent) / elapsed},
        {"frame_bytes", report->frame_bytes},
    };
    std::cout << output.dump() << std::endl;
    return 0;
}
