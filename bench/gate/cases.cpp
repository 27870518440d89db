#include "cases.h"

#include <linux/if_ether.h>

#include "gate/source_rules.h"

namespace sluice::bench {

namespace {

using lab::FloodKind;
using lab::FloodPlan;

// Ports of the services below.
constexpr uint16_t kUnlimited = 1000, kOverData = 1001, kOverPackets = 1002, kWithin = 1003,
                   kWithinAll = 1004, kLogin = 1005;

// "Over" lets one packet a minute of each source through, so that nearly all are over the limit;
// "within" is more than this machine can send.
constexpr std::string_view kPolicy = R"(
mode = "enforce"

[[service]]
name = "over-data"
match = ["udp/1001"]
[service.per_source]
data = "1/m"

[[service]]
name = "over-packets"
match = ["udp/1002"]
[service.per_source]
packets = "1/m"

[[service]]
name = "within"
match = ["udp/1003"]
[service.per_source]
packets = "200000000/s"

[[service]]
name = "within-all"
match = ["udp/1004"]
[service.per_source]
data = "200000000/s"
packets = "200000000/s"
[service.per_prefix]
packets = "200000000/s"
[service.budget]
packets = "200000000/s"

[[service]]
name = "login"
match = ["tcp/1005"]
[service.per_source]
connections = "1/m"
packets = "200000000/s"
)";

constexpr uint32_t kListed = 100'000;
constexpr std::string_view kBannedNetwork = "10.64.0.0/10", kBannedSources = "10.64.0.0",
                           kListedSources = "198.18.0.0", kSources = "100.64.0.0",
                           kBannedNetwork6 = "2001:db8:b000::/36",
                           kBannedSources6 = "2001:db8:b000::1", kSources6 = "2001:db8:1000::1",
                           kEdge = "192.0.2.1", kEdge6 = "2001:db8:0:1::1";

IpAddress address(std::string_view text) {
    return IpAddress::parse(text).value();
}

Status ban_listed(SourceRules& rules) {
    const uint32_t first = address(kListedSources).ipv4_host_order();
    std::vector<RuleEntry> entries;
    entries.reserve(kListed);
    for (uint32_t i = 0; i < kListed; i++)
        entries.push_back({.prefix = Prefix::make(IpAddress::from_ipv4(first + i), 32).value()});
    const auto imported = rules.import(kOperatorList, entries, {.reason = "bench"});
    if (!imported)
        return imported.error();
    if (imported->added != kListed)
        return failed("only " + std::to_string(imported->added) + " bans were taken");
    return {};
}

}  // namespace

std::string Case::sources() const {
    return packets.scatter ? "spoofed" : std::to_string(packets.sources);
}

std::vector<Case> all_cases() {
    std::vector<Case> cases;
    const auto ipv4 = [](std::string_view first, uint16_t port) {
        FloodPlan plan;
        plan.first_source = address(first);
        plan.destination = address(kEdge);
        plan.destination_port = port;
        return plan;
    };
    const auto ipv6 = [&](std::string_view first, uint16_t port) {
        FloodPlan plan = ipv4(kSources, port);
        plan.first_source = address(first);
        plan.destination = address(kEdge6);
        return plan;
    };
    const auto add = [&](std::string name, sluice_verdict verdict, FloodPlan plan,
                         uint32_t sources) {
        plan.sources = sources;
        cases.push_back({std::move(name), verdict, std::move(plan)});
    };
    const auto add_all = [&](const std::string& name, sluice_verdict verdict,
                             const FloodPlan& plan) {
        for (const uint32_t sources : {1U, 1'000U, kListed})
            add(name, verdict, plan, sources);
    };
    const auto add_spoofed = [&](const std::string& name, sluice_verdict verdict, FloodPlan plan) {
        plan.scatter = true;
        add(name, verdict, std::move(plan), 1);
    };

    add_all("unlimited", SLUICE_pass_unlimited, ipv4(kSources, kUnlimited));
    add_all("banned network", SLUICE_drop_banned, ipv4(kBannedSources, kUnlimited));
    add_all("banned address", SLUICE_drop_banned, ipv4(kListedSources, kUnlimited));
    add_all("over data", SLUICE_drop_source_data, ipv4(kSources, kOverData));
    add_all("over packets", SLUICE_drop_source_packets, ipv4(kSources, kOverPackets));
    add_all("within", SLUICE_pass_within, ipv4(kSources, kWithin));
    add_all("within data, packets, prefix, budget", SLUICE_pass_within, ipv4(kSources, kWithinAll));
    add_spoofed("unlimited", SLUICE_pass_unlimited, ipv4(kSources, kUnlimited));
    add_spoofed("within", SLUICE_pass_within, ipv4(kSources, kWithin));
    add_spoofed("first packets", SLUICE_pass_within, ipv4(kSources, kOverData));

    FloodPlan syn = ipv4(kSources, kLogin);
    syn.kind = FloodKind::syn;
    add_all("SYN over connections", SLUICE_drop_source_connections, syn);

    add_all("IPv6 banned network", SLUICE_drop_banned, ipv6(kBannedSources6, kUnlimited));
    add_all("IPv6 over data", SLUICE_drop_source_data, ipv6(kSources6, kOverData));
    add_all("IPv6 within", SLUICE_pass_within, ipv6(kSources6, kWithin));

    FloodPlan tagged = ipv4(kSources, kOverData);
    tagged.vlan_tags = 1;
    add("VLAN tag, over data", SLUICE_drop_source_data, tagged, 1'000);
    FloodPlan short_of = ipv4(kSources, kUnlimited);
    short_of.missing = 100;
    add("malformed", SLUICE_drop_malformed, short_of, 1'000);
    FloodPlan other = ipv4(kSources, kUnlimited);
    other.ether_type = ETH_P_LLDP;
    add("not IP", SLUICE_pass_not_ip, other, 1);
    return cases;
}

Status prepare(MeasuredGate& gate) {
    if (const auto installed = gate.install(std::string(kPolicy)); !installed)
        return installed.error();

    SourceRules rules(gate.tables());
    for (const auto network : {kBannedNetwork, kBannedNetwork6})
        if (const auto banned = rules.ban(Prefix::parse(network).value(), {.reason = "bench"});
            !banned)
            return banned.error();
    return ban_listed(rules);
}

}  // namespace sluice::bench
