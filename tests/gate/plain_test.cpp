// The plain way and the general way are two roads to one decision: whatever the packet and whatever
// the state, both name the same verdict and leave the same words behind.
#include <sluice/gate.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "gate/source_parts.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

constexpr auto kPolicy = R"(
[[service]]
name = "web"
match = ["tcp/443", "udp/443"]
[service.per_source]
data = { rate = "3/s", burst = 6 }
packets = { rate = "3/s", burst = 9 }
bytes = "100kB/s"
connections = { rate = "1/s", burst = 3 }
[[service]]
name = "bytes"
match = ["tcp/8443", "udp/8443"]
[service.per_source]
bytes = "100B/s"
[[service]]
name = "exact"
match = ["tcp/22"]
[service.per_source]
connections = { rate = "5/m", burst = 1 }
packets = { rate = "20000/s", burst = 20 }
[[service]]
name = "prefix"
match = ["udp/53"]
[service.per_source]
data = "100/s"
[service.per_prefix]
data = "3/s"
[[service]]
name = "budget"
match = ["tcp/80"]
[service.per_source]
data = "10/s"
[service.budget]
data = "100/s"
[[service]]
name = "jail"
match = ["udp/123"]
[service.per_source]
data = { rate = "1/s", burst = 3 }
on_excess = { jail = "1s", spoofable = true }
[[service]]
name = "window"
match = ["tcp/25"]
[service.per_source]
connections = { limit = 3, window = "10s" }
[[service]]
name = "other"
[service.per_source]
packets = "30/s"
[[class]]
name = "friends"
prefixes = ["192.0.2.64/27", "2001:db8:a:3::/64"]
scale = 4
)";

class Plain : public GateUnderTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (IsSkipped())
            return;
        TableSizes sizes = usual_sizes();
        sizes.cpus = 2;
        sizes.source_sets = 16;  // crowded, so that newcomers throw others out
        sizes.window_sets = 4;
        start(sizes);
        install(kPolicy);
        ban("192.0.2.3");
        ban("192.0.2.4", 2s);
        ban("198.51.100.0/24");
        ban("198.51.102.0/25", 3s);
        ban("2001:db8:b:1::/64");
        ban("2001:db8:b:2::/64", 2s);
        ban("2001:db8:a:1::7/128");
        allow("192.0.2.5");
        allow("192.0.2.6", true);
        protect("192.0.2.7");
        allow("2001:db8:a:4::/64");
    }

    unsigned any(unsigned below) { return static_cast<unsigned>(random_() % below); }
    template <class T, size_t N>
    T one_of(const std::array<T, N>& choices) {
        return choices[any(N)];
    }

    std::string any_source(bool ipv6) {
        if (ipv6)
            return one_of<const char*, 3>({"2001:db8:a:", "2001:db8:a:", "2001:db8:b:"}) +
                   std::to_string(any(5)) + "::" + std::to_string(any(8));
        return one_of<const char*, 4>({"192.0.2.", "192.0.2.", "198.51.100.", "198.51.102."}) +
               std::to_string(any(4) == 0 ? any(96) : any(9));
    }

    Bytes any_frame() {
        const bool ipv6 = any(3) == 0;
        Ip ip = from(any_source(ipv6)).to(ipv6 ? "2001:db8:c::1" : "203.0.113.1");
        if (any(20) == 0)
            ip.fragment(any(3), any(2) == 0);
        if (!ipv6 && any(30) == 0)
            ip.options(1 + any(3));
        Ethernet link;
        if (any(8) == 0)
            link.vlans(1 + any(2));
        const auto port = one_of<uint16_t, 9>({443, 443, 8443, 22, 53, 80, 123, 25, 9999});
        Packet packet = link / ip;
        if (any(2) == 0) {
            Tcp segment = tcp(static_cast<uint16_t>(1024 + any(100)), port);
            if (any(3) == 0)
                segment.syn();
            if (any(2) == 0)
                segment.ack();
            packet.add(segment.options(any(3)).payload(any(2) * any(1200)));
        } else if (any(20) == 0) {
            packet.add(ipv6 ? icmp6(128) : icmp(8));
        } else {
            packet.add(udp(67, any(40) == 0 ? 68 : port).payload(any(1450)));
        }
        Bytes bytes = packet.bytes();
        if (any(10) == 0)  // whatever a header can say
            bytes[any(static_cast<unsigned>(std::min<size_t>(bytes.size(), 80)))] =
                static_cast<uint8_t>(any(256));
        if (any(40) == 0)
            bytes.resize(std::max<size_t>(14, any(static_cast<unsigned>(bytes.size()))));
        return bytes;
    }

    void change_something() {
        switch (any(8)) {
            case 0:
                return set_mode("gate", any(2) ? Mode::enforce : Mode::observe);
            case 1:
                return set_mode("web", any(3) ? Mode::enforce : Mode::observe);
            case 2:
                return set_mode("web.per_source.data", any(3) ? Mode::enforce : Mode::off);
            case 3:
                return set_mode("gate", Mode::enforce, 50ms);
            case 4:
                return on_cpu(any(2));
            case 5:
                return heed_parts(*tables_, any(4) != 0);
            case 6:
                return share_something();
            default:
                return lag(std::chrono::milliseconds(any(5)));
        }
    }

    // Some source has a part of some limit for a while.
    void share_something() {
        const auto source = IpAddress::parse(any_source(any(3) == 0)).value();
        const auto service = one_of<const char*, 5>({"web", "bytes", "prefix", "budget", "jail"});
        const SourceParts parts(*tables_, source, service_id(service));
        const Dimension dimension = kDimensions.at(any(4));
        if (any(4) == 0)
            return parts.drop(dimension);
        (void)parts.put(dimension, 1.0 / (1 + any(70)), now() + 1'000'000 * any(2000));
    }

    // What a packet may change, but for what only the way there needs.
    struct Snapshot {
        std::vector<sluice_source_set> sources;
        std::vector<sluice_budget> budgets;
        std::vector<sluice_lease> leases;
        std::vector<sluice_cpu> cpus;
        std::vector<sluice_recent> recent;
    };
    template <class T>
    static std::vector<T> copy_of(const FlatTable<T>& table) {
        return {table.span().begin(), table.span().end()};
    }
    template <class T>
    static void put_back(const std::vector<T>& copy, FlatTable<T>& table) {
        std::copy(copy.begin(), copy.end(), table.span().begin());
    }
    Snapshot snapshot() const {
        return {copy_of(tables_->sources), copy_of(tables_->budgets), copy_of(tables_->leases),
                copy_of(tables_->cpus), copy_of(tables_->recent)};
    }
    void restore(const Snapshot& before) {
        put_back(before.sources, tables_->sources);
        put_back(before.budgets, tables_->budgets);
        put_back(before.leases, tables_->leases);
        put_back(before.cpus, tables_->cpus);
        put_back(before.recent, tables_->recent);
    }
    template <class T>
    static void expect_same(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
        const auto bytes = [](const std::vector<T>& table) {
            const auto* first = reinterpret_cast<const uint8_t*>(table.data());
            return Bytes(first, first + table.size() * sizeof(T));
        };
        EXPECT_EQ(bytes(a), bytes(b)) << what;
    }
    static void expect_same(const Snapshot& a, const Snapshot& b) {
        expect_same(a.sources, b.sources, "sources");
        expect_same(a.budgets, b.budgets, "budgets");
        expect_same(a.leases, b.leases, "leases");
        for (size_t cpu = 0; cpu < a.cpus.size(); ++cpu) {
            EXPECT_EQ(a.cpus[cpu].evicted_live, b.cpus[cpu].evicted_live);
            EXPECT_EQ(a.cpus[cpu].shared_live, b.cpus[cpu].shared_live);
            EXPECT_EQ(a.cpus[cpu].taken_back, b.cpus[cpu].taken_back);
            EXPECT_EQ(a.cpus[cpu].essential_ns, b.cpus[cpu].essential_ns);
            EXPECT_EQ(a.cpus[cpu].lookups_refused, b.cpus[cpu].lookups_refused);
        }
    }

    std::mt19937 random_{20'261'129};
};

TEST_F(Plain, BothWaysSayTheSameOfAnyPacket) {
    constexpr unsigned kPackets = 60'000;
    std::map<std::string, unsigned> seen;
    Bytes frame = any_frame();
    go_general_way(true);
    for (unsigned i = 0; i < kPackets && !HasFailure(); ++i) {
        if (any(50) == 0)
            change_something();
        // While the clock stands still, a verdict may come from the cache.
        if (any(2) == 0)
            advance(std::chrono::microseconds(any(4000)));
        if (any(3) != 0)
            frame = any_frame();
        SCOPED_TRACE("packet " + std::to_string(i) + ": " + ::testing::PrintToString(frame));

        const Snapshot before = snapshot();
        go_general_way(false);
        const Outcome plain = send(frame);
        const Snapshot after_plain = snapshot();
        // Strict windows cannot be put back: a packet that they admit is compared by its verdict
        // alone, in the order that the general way sees it.
        const bool opens_window = plain.service == "window";
        if (!opens_window) {
            restore(before);
            go_general_way(true);
            const Outcome general = send(frame);
            EXPECT_EQ(general.verdict, plain.verdict);
            EXPECT_EQ(general.service, plain.service);
            expect_same(after_plain, snapshot());
        }
        seen[plain.verdict]++;
    }
    for (const char* verdict :
         {"pass_within", "pass_allowed", "pass_exempt", "drop_banned", "drop_malformed",
          "drop_jailed", "drop_source_connections", "drop_source_data", "drop_source_packets",
          "drop_source_bytes", "drop_source_window", "drop_prefix", "would_drop_source_data"})
        EXPECT_GT(seen[verdict], 0U) << verdict;
}

}  // namespace

}  // namespace sluice
