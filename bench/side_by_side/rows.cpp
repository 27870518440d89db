#include "rows.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace sluice::bench {

namespace {

using lab::FloodKind;

constexpr uint32_t kMillion = 1'000'000;
constexpr uint32_t kSpoofed = 0;  // for a number of sources: always new ones

IpAddress address(const char* text) {
    return IpAddress::parse(text).value();
}

std::string number(uint64_t value) {
    std::string text = std::to_string(value);
    for (size_t at = text.size(); at > 3;)
        text.insert(at -= 3, ",");
    return text;
}

class Rows {
  public:
    explicit Rows(const Cast& cast) : cast_(cast) {}

    std::vector<Row> all() {
        over_a_limit();
        within_a_limit();
        saturated_limits();
        bans();
        beside_bans();
        services();
        return std::move(rows_);
    }

  private:
    // Who is measured, by the gate's words for it.
    struct GateEntrant {
        const char* name;
        uint16_t port;
    };

    static Setup limited(uint64_t rate, bool a_minute = false) {
        Setup setup;
        setup.limit = {.rate = rate,
                       .a_minute = a_minute,
                       .burst = rate == kMoreThanSent ? 1'000U
                                : a_minute            ? 1U
                                                      : 10U};
        return setup;
    }
    static Setup banning(uint32_t count, bool networks, bool for_a_time) {
        Setup setup;
        setup.bans = {.count = count, .networks = networks, .for_a_time = for_a_time};
        return setup;
    }

    static lab::FloodPlan packets(const Setup& setup, uint32_t sources) {
        const bool ipv4 = setup.family == Family::ipv4;
        lab::FloodPlan plan;
        plan.first_source = address(ipv4 ? "100.64.0.0" : "2001:db8:1000::1");
        plan.destination = address(ipv4 ? "192.0.2.1" : "2001:db8:0:1::1");
        plan.sources = std::max(sources, 1U);
        plan.scatter = sources == kSpoofed;
        plan.vlan_tags = setup.tagged ? 1 : 0;
        if (setup.tcp)
            plan.kind = FloodKind::syn;
        return plan;
    }

    Row& add(const char* group, std::string name, const Setup& setup, lab::FloodPlan plan,
             std::initializer_list<GateEntrant> gate_names, bool peers = true) {
        Row row;
        row.group = group;
        row.name = std::move(name) + (setup.family == Family::ipv6 ? ", IPv6" : "") +
                   (setup.tcp ? ", SYN" : "") + (setup.tagged ? ", VLAN tag" : "");
        row.setup = setup;
        row.sources = plan.scatter ? "spoofed" : number(plan.sources);
        // So that each has been here twice: the first packet is within any limit.
        row.warm_up = plan.scatter ? 200'000 : std::max(2 * plan.sources, 20'000U);
        const bool many = setup.limit.rate != 0 && plan.sources >= kMillion;
        for (const auto& [gate_name, port] : gate_names)
            row.entrants.push_back({gate_name, gate_for(port, many), port});
        if (peers) {
            const bool limits = setup.limit.rate != 0;
            enter(row, "xdp-filter", cast_.xdp_filter.get());
            enter(row, limits ? "nftables dynamic set" : "nftables set", cast_.nftables.get());
            enter(row, "iptables hashlimit", cast_.hashlimit.get());
            enter(row, "iptables ipset", cast_.ipset.get());
        }
        row.packets = std::move(plan);
        rows_.push_back(std::move(row));
        return rows_.back();
    }
    [[nodiscard]] Contender* gate_for(uint16_t port, bool many) const {
        if (port == kAllLimitsPort)
            return cast_.all_gate.get();
        if (port == kAndBytesPort || port == kBytesPort)
            return (many ? cast_.large_bytes_gate : cast_.bytes_gate).get();
        return (many ? cast_.large_gate : cast_.gate).get();
    }
    static void enter(Row& row, const char* name, Contender* contender) {
        if (contender != nullptr && contender->can(row.setup))
            row.entrants.push_back({name, contender, kLimitedPort});
    }

    void over_a_limit() {
        const GateEntrant limit = {"Sluice", kLimitedPort};
        const GateEntrant and_bytes = {"Sluice, packets and bytes", kAndBytesPort};
        Setup setup = limited(1, true);
        for (const uint32_t sources : {1U, 1'000U, 100'000U, kMillion})
            add(kOverGroup, "over 1/minute", setup, packets(setup, sources), {limit, and_bytes});
        add("spoofed", "always new, 1/minute", setup, packets(setup, kSpoofed), {limit, and_bytes});
        for (const uint32_t sources : {1U, 1'000U})
            add("over bytes", "over bytes", setup, packets(setup, sources),
                {{"Sluice, bytes", kBytesPort}}, false)
                .warm_up = 1'200 * sources;
        for (const uint32_t sources : {1'000U, 100'000U})
            add("two cores", "over 1/minute, both cores", setup, packets(setup, sources), {limit})
                .cores = 2;

        setup.tagged = true;
        add("over a limit, VLAN", "over 1/minute", setup, packets(setup, 1'000), {limit});
        setup.tagged = false;
        setup.tcp = true;
        for (const uint32_t sources : {1U, 1'000U, 100'000U, kSpoofed})
            add("SYN", sources == kSpoofed ? "always new, 1/minute" : "over 1/minute", setup,
                packets(setup, sources), {limit});
        setup.tcp = false;
        setup.family = Family::ipv6;
        for (const uint32_t sources : {1'000U, 100'000U, kSpoofed})
            add("IPv6", sources == kSpoofed ? "always new, 1/minute" : "over 1/minute", setup,
                packets(setup, sources), {limit});
        setup.tcp = true;
        add("IPv6", "over 1/minute", setup, packets(setup, 1'000), {limit});
    }

    void within_a_limit() {
        const Setup setup = limited(kMoreThanSent);
        const GateEntrant limit = {"Sluice", kLimitedPort};
        const GateEntrant and_bytes = {"Sluice, packets and bytes", kAndBytesPort};
        for (const uint32_t sources : {1U, 1'000U, 100'000U})
            add(kWithinGroup, "within", setup, packets(setup, sources),
                {limit, and_bytes, {"Sluice, every kind of limit", kAllLimitsPort}});
        add(kWithinGroup, "within", setup, packets(setup, kMillion), {limit, and_bytes});
        add("two cores", "within, both cores", setup, packets(setup, 1'000),
            {{"Sluice", kLimitedPort}})
            .cores = 2;
        add("unlimited", "no limit at all", setup, packets(setup, 1'000),
            {{"Sluice", kUnlimitedPort}}, false);
    }

    void saturated_limits() {
        const auto measure = [&](uint64_t rate, uint32_t sources) {
            const Setup setup = limited(rate);
            add("limits", "limit " + number(rate) + "/s", setup, packets(setup, sources),
                {{"Sluice", kLimitedPort}});
        };
        for (const uint64_t rate : {1U, 300U}) {
            measure(rate, 1);
            measure(rate, 1'000);
        }
        measure(20'000, 1);
        measure(20'000, 100);

        const Setup setup = limited(300);
        lab::FloodPlan mix = packets(setup, 1U << 20);
        mix.zipf = true;
        Row& row = add("Zipf", "limit 300/s, Zipf mix", setup, mix, {{"Sluice", kLimitedPort}});
        row.sources = "Zipf 2^20";
        row.warm_up = 2 * kMillion;
    }

    void bans() {
        const auto measure = [&](Setup setup, uint32_t sources) -> Row& {
            const bool networks = setup.bans.networks, ipv4 = setup.family == Family::ipv4;
            lab::FloodPlan plan = packets(setup, sources);
            plan.first_source = first_banned(setup.family, networks);
            if (networks)
                plan.source_prefix = ipv4 ? kNetworkLength4 : kNetworkLength6;
            const std::string name = "banned, " + number(setup.bans.count) +
                                     (networks ? " networks" : " addresses") +
                                     (setup.bans.for_a_time ? " for a time" : "");
            return add(networks ? kNetworkGroup : kBannedGroup, name, setup, plan,
                       {{networks ? "Sluice, network" : "Sluice, address", kUnlimitedPort}});
        };
        for (const bool networks : {false, true}) {
            measure(banning(1'000, networks, false), 1'000);
            for (const uint32_t sources : {1U, 1'000U, 100'000U})
                measure(banning(100'000, networks, false), sources);
            if (!networks)
                measure(banning(100'000, networks, false), 1'000).cores = 2;
            for (const uint32_t sources : {1'000U, 100'000U})
                measure(banning(100'000, networks, true), sources);
            Setup ipv6 = banning(100'000, networks, false);
            ipv6.family = Family::ipv6;
            for (const uint32_t sources : {1'000U, 100'000U})
                measure(ipv6, sources);
            for (const uint32_t sources : {1'000U, kMillion})
                measure(banning(kMillion, networks, false), sources);
            Setup tcp = banning(kMillion, networks, false);
            tcp.tcp = true;
            measure(tcp, 1'000);
        }
    }

    void beside_bans() {
        for (const bool networks : {true, false})
            for (const uint32_t bans : {0U, 1'000U, 100'000U, kMillion}) {
                if (networks && (bans == 0 || bans == 1'000))
                    continue;
                const Setup setup = banning(bans, networks, false);
                for (const uint32_t sources : {1'000U, 100'000U}) {
                    if (sources == 100'000 && bans < 100'000)
                        continue;
                    Row& row = add("beside bans",
                                   "not banned, beside " + number(bans) +
                                       (networks ? " networks" : " addresses"),
                                   setup, packets(setup, sources), {{"Sluice", kUnlimitedPort}});
                    // What it does not drop goes to the stack.
                    std::erase_if(row.entrants, [](const Entrant& entrant) {
                        return entrant.name == "xdp-filter";
                    });
                }
            }
    }

    void services() {
        for (const unsigned count : {1U, 100U, 1'000U})
            for (const bool over : {true, false}) {
                Setup setup = over ? limited(1, true) : limited(kMoreThanSent);
                setup.services = count;
                add("services",
                    std::string(over ? "over" : "within") + ", " + number(count) +
                        (count == 1 ? " service" : " services"),
                    setup, packets(setup, 1'000), {{"Sluice", kLimitedPort}}, false);
            }
    }

    const Cast& cast_;
    std::vector<Row> rows_;
};

}  // namespace

std::vector<Row> all_rows(const Cast& cast) {
    return Rows(cast).all();
}

}  // namespace sluice::bench
