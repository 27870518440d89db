// The flat service tables against a matcher that tries every match of every service.
#include "policy/service_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sluice/hash.h>
#include <sluice/limits.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "policy/match.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Flow {
    IpAddress destination;
    uint8_t protocol = 0;
    uint16_t port = 0;
};

// As the packet path looks it up.
uint32_t look_up(const ServiceTable& table, const Flow& flow) {
    uint32_t selector = kProtocolStart + flow.protocol;
    if (flow.protocol == IPPROTO_TCP || flow.protocol == IPPROTO_UDP)
        selector = (flow.protocol == IPPROTO_UDP ? kUdpStart : 0) + flow.port;
    uint32_t group = 0;
    for (const uint8_t length : table.lengths) {
        const sluice_address network =
            sluice_network({flow.destination.high64(), flow.destination.low64()}, length);
        const auto found = std::find_if(
            table.destinations.begin(), table.destinations.end(), [&](const auto& entry) {
                return entry.high == network.high && entry.low == network.low &&
                       entry.length == length;
            });
        if (found != table.destinations.end()) {
            group = found->group;
            break;
        }
    }
    return table.cells.at(size_t{group} * table.classes + table.selector_class.at(selector));
}

// As GATE's rule says it: longest destination, then narrowest range.
uint32_t match_naively(const std::vector<Service>& services, const ServiceIds& ids,
                       const Flow& flow) {
    std::tuple<unsigned, int> best{0, -65'536};
    uint32_t id = SLUICE_SERVICE_OTHER;
    for (const Service& service : services)
        for (const Match& match : service.matches) {
            if (match.protocol != flow.protocol ||
                (match.ports &&
                 (flow.port < match.ports->first || flow.port > match.ports->second)) ||
                (match.destination && !match.destination->contains(flow.destination)))
                continue;
            const unsigned length = match.destination ? match.destination->length() : 0;
            const int width = match.ports ? match.ports->second - match.ports->first : 0;
            if (std::tuple(length, -width) >= best) {
                best = {length, -width};
                id = ids.at(service.name);
            }
        }
    return id;
}

Service service(const std::string& name, const std::vector<std::string>& matches) {
    Service made;
    made.name = name;
    for (const std::string& text : matches)
        made.matches.push_back(*parse_match(text));
    return made;
}

ServiceIds ids_of(const std::vector<Service>& services) {
    ServiceIds ids{{"other", 0}};
    for (const Service& one : services)
        ids.emplace(one.name, static_cast<uint32_t>(ids.size() * 3));
    return ids;
}

uint32_t service_of(const ServiceTable& table, const char* address, uint8_t protocol,
                    uint16_t port = 0) {
    return look_up(table, {*IpAddress::parse(address), protocol, port});
}

TEST(ServiceTable, NothingConfiguredIsOther) {
    const auto table = compile_services({}, {{"other", 0}});
    ASSERT_TRUE(table);
    EXPECT_EQ(table->classes, 1U);
    EXPECT_EQ(service_of(*table, "203.0.113.1", IPPROTO_TCP, 443), 0U);
    EXPECT_EQ(service_of(*table, "2001:db8::1", 132), 0U);
}

TEST(ServiceTable, OverlappingDestinationsInheritWhatTheyLeaveOpen) {
    const std::vector<Service> services = {
        service("web", {"203.0.113.0/24:tcp/443", "tcp/80"}),
        service("admin", {"203.0.113.10:tcp/8443"}),
        service("dns", {"udp/53", "[2001:db8::/32]:udp/53"}),
        service("high", {"tcp/1024-65535"}),
        service("one", {"tcp/8443"}),
        service("ping", {"icmp", "[2001:db8::1]:icmp6", "proto/132"}),
    };
    const ServiceIds ids = ids_of(services);
    const auto table = compile_services(services, ids);
    ASSERT_TRUE(table);
    EXPECT_EQ(service_of(*table, "203.0.113.10", IPPROTO_TCP, 8443), ids.at("admin"));
    EXPECT_EQ(service_of(*table, "203.0.113.10", IPPROTO_TCP, 443), ids.at("web"));
    EXPECT_EQ(service_of(*table, "203.0.113.10", IPPROTO_TCP, 80), ids.at("web"));
    EXPECT_EQ(service_of(*table, "203.0.113.11", IPPROTO_TCP, 8443), ids.at("one"));
    EXPECT_EQ(service_of(*table, "203.0.113.10", IPPROTO_TCP, 9000), ids.at("high"));
    EXPECT_EQ(service_of(*table, "198.51.100.1", IPPROTO_TCP, 443), 0U);
    EXPECT_EQ(service_of(*table, "198.51.100.1", IPPROTO_UDP, 53), ids.at("dns"));
    EXPECT_EQ(service_of(*table, "2001:db8::53", IPPROTO_UDP, 53), ids.at("dns"));
    EXPECT_EQ(service_of(*table, "198.51.100.1", IPPROTO_UDP, 8443), 0U);
    EXPECT_EQ(service_of(*table, "198.51.100.1", IPPROTO_ICMP), ids.at("ping"));
    EXPECT_EQ(service_of(*table, "2001:db8::1", IPPROTO_ICMPV6), ids.at("ping"));
    EXPECT_EQ(service_of(*table, "2001:db8::2", IPPROTO_ICMPV6), 0U);
    EXPECT_EQ(service_of(*table, "198.51.100.1", 132), ids.at("ping"));
}

TEST(ServiceTable, AllOfIpv6IsNotIpv4) {
    const std::vector<Service> services = {service("six", {"[::/0]:tcp/443", "[::/48]:tcp/22"}),
                                           service("any", {"tcp/80"})};
    const ServiceIds ids = ids_of(services);
    const auto table = compile_services(services, ids);
    ASSERT_TRUE(table);
    EXPECT_EQ(service_of(*table, "2001:db8::1", IPPROTO_TCP, 443), ids.at("six"));
    EXPECT_EQ(service_of(*table, "::1", IPPROTO_TCP, 22), ids.at("six"));
    EXPECT_EQ(service_of(*table, "203.0.113.1", IPPROTO_TCP, 443), 0U);
    EXPECT_EQ(service_of(*table, "203.0.113.1", IPPROTO_TCP, 22), 0U);
    EXPECT_EQ(service_of(*table, "203.0.113.1", IPPROTO_TCP, 80), ids.at("any"));
}

// --- random policies ---------------------------------------------------------------------------

class RandomPolicy {
  public:
    explicit RandomPolicy(uint32_t seed) : random_(seed) {}

    std::vector<Service> services() {
        std::vector<Service> made;
        std::vector<Match> all;
        const unsigned count = below(12) + 1;
        for (unsigned i = 0; i < count; ++i) {
            Service one;
            one.name = "s" + std::to_string(i);
            const unsigned matches = below(6) + 1;
            for (unsigned m = 0; m < matches; ++m) {
                const Match candidate = match();
                if (std::any_of(all.begin(), all.end(),
                                [&](const Match& other) { return is_tie(candidate, other); }))
                    continue;
                all.push_back(candidate);
                one.matches.push_back(candidate);
            }
            made.push_back(std::move(one));
        }
        return made;
    }

    Flow flow() { return {address(), protocol(), port()}; }

  private:
    unsigned below(unsigned end) { return static_cast<unsigned>(random_() % end); }

    // Few distinct values, so that matches and flows meet, at borders above all.
    uint16_t port() {
        constexpr std::array<uint16_t, 9> kPorts = {1, 22, 79, 80, 81, 443, 8000, 8100, 65'535};
        return kPorts.at(below(kPorts.size()));
    }

    uint8_t protocol() {
        constexpr std::array<uint8_t, 5> kProtocols = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP,
                                                       IPPROTO_ICMPV6, 132};
        return kProtocols.at(std::min(below(8), below(5)));
    }

    IpAddress address() {
        if (below(2) == 0)
            return IpAddress::from_ipv4(0xcb007100 + (below(4) << 6) + below(3));
        std::array<uint8_t, 16> bytes{0x20, 0x01, 0x0d, 0xb8};
        if (below(4) == 0)
            bytes[0] = bytes[1] = bytes[2] = bytes[3] = 0;
        bytes[5] = static_cast<uint8_t>(below(2));
        bytes[15] = static_cast<uint8_t>(below(3) + 1);
        return IpAddress::from_bytes(bytes);
    }

    Match match() {
        Match made;
        made.protocol = protocol();
        if (made.protocol == IPPROTO_TCP || made.protocol == IPPROTO_UDP) {
            const uint16_t a = port(), b = below(2) == 0 ? a : port();
            made.ports = {std::min(a, b), std::max(a, b)};
        }
        if (below(3) != 0) {
            constexpr std::array<unsigned, 6> kIpv4Lengths = {0, 8, 24, 26, 31, 32};
            constexpr std::array<unsigned, 6> kIpv6Lengths = {0, 16, 32, 48, 127, 128};
            const IpAddress network = address();
            const bool ipv4 = network.family() == Family::ipv4;
            made.destination =
                *Prefix::make(network, (ipv4 ? kIpv4Lengths : kIpv6Lengths).at(below(6)));
        }
        return made;
    }

    std::mt19937 random_;
};

TEST(ServiceTable, AgreesWithTheNaiveMatcher) {
    for (uint32_t seed = 1; seed <= 400; ++seed) {
        RandomPolicy random(seed);
        const auto services = random.services();
        const ServiceIds ids = ids_of(services);
        const auto table = compile_services(services, ids);
        ASSERT_TRUE(table);
        for (int i = 0; i < 300; ++i) {
            const Flow flow = random.flow();
            ASSERT_EQ(look_up(*table, flow), match_naively(services, ids, flow))
                << "seed " << seed << ", " << flow.destination.to_string() << " protocol "
                << int{flow.protocol} << " port " << flow.port;
        }
    }
}

TEST(ServiceTable, IsDeterministicAndDoesNotDependOnTheOrderOfServices) {
    for (uint32_t seed = 1; seed <= 50; ++seed) {
        auto services = RandomPolicy(seed).services();
        const ServiceIds ids = ids_of(services);
        const auto first = compile_services(services, ids);
        std::reverse(services.begin(), services.end());
        const auto second = compile_services(services, ids);
        ASSERT_TRUE(first && second);
        EXPECT_EQ(first->selector_class, second->selector_class);
        EXPECT_EQ(first->cells, second->cells);
        EXPECT_EQ(first->destinations, second->destinations);
    }
}

// --- sizes -------------------------------------------------------------------------------------

TEST(ServiceTable, SamePortsForManyDestinationsStaySmall) {
    std::vector<Service> services;
    for (uint32_t i = 0; i < 1000; ++i) {
        Service one;
        one.name = "s" + std::to_string(i);
        for (const uint16_t port : {uint16_t{80}, uint16_t{443}})
            one.matches.push_back({Prefix::host(IpAddress::from_ipv4(0xcb007100 + i)), IPPROTO_TCP,
                                   std::pair(port, port)});
        services.push_back(std::move(one));
    }
    const auto table = compile_services(services, ids_of(services));
    ASSERT_TRUE(table);
    EXPECT_EQ(table->groups, 1001U);
    EXPECT_EQ(table->classes, 2U) << "80 and 443 are alike everywhere";
}

TEST(ServiceTable, RefusesWhatIsTooLargeWithTheNumbers) {
    std::vector<Service> services;
    for (uint32_t i = 0; i < 1000; ++i) {
        Service one;
        one.name = "s" + std::to_string(i);
        const auto port = static_cast<uint16_t>(1000 + i);
        one.matches.push_back({Prefix::host(IpAddress::from_ipv4(0xcb007100 + i)), IPPROTO_TCP,
                               std::pair(port, port)});
        services.push_back(std::move(one));
    }
    const auto cells = compile_services(services, ids_of(services));
    ASSERT_FALSE(cells);
    EXPECT_THAT(cells.error().message, HasSubstr("1001 groups of destinations × 1001 classes"));

    Service many;
    many.name = "many";
    for (uint32_t i = 0; i < SLUICE_MAX_DESTINATIONS + 1; ++i)
        many.matches.push_back(
            {Prefix::host(IpAddress::from_ipv4(0xcb000000 + i)), IPPROTO_ICMP, {}});
    const auto destinations = compile_services({many}, ids_of({many}));
    ASSERT_FALSE(destinations);
    EXPECT_THAT(destinations.error().message, HasSubstr("4097 destinations"));

    Service lengths;
    lengths.name = "lengths";
    for (unsigned length = 32; length < 65; ++length)
        lengths.matches.push_back(
            {*Prefix::make(*IpAddress::parse("2001:db8::"), length), IPPROTO_ICMPV6, {}});
    const auto too_many = compile_services({lengths}, ids_of({lengths}));
    ASSERT_FALSE(too_many);
    EXPECT_THAT(too_many.error().message, HasSubstr("33 different prefix lengths"));
}

}  // namespace
}  // namespace sluice
