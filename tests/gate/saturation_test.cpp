// What limits, windows and budgets let through of an endless flood: never more than they say, and
// all that they say.
#include <algorithm>
#include <cmath>
#include <random>

#include "gate_under_test.h"

namespace sluice {

namespace {

constexpr nanoseconds kTick = 4ms;  // of the coarse clock

// How far the coarse clock lies behind.
enum class Lag { none, one_tick, two_ticks };

nanoseconds lag_at(Lag lag, uint64_t now_ns) {
    if (lag == Lag::none)
        return 0ns;
    const nanoseconds since_tick(now_ns % static_cast<uint64_t>(kTick.count()));
    return since_tick + (lag == Lag::two_ticks ? kTick : 0ns);
}

template <class Case>
std::string name_of(const ::testing::TestParamInfo<std::tuple<Case, Lag>>& info) {
    static constexpr const char* kLags[] = {"NoLag", "OneTick", "TwoTicks"};
    return std::get<0>(info.param).name + kLags[static_cast<int>(std::get<1>(info.param))];
}

struct Flood {
    std::string name;
    std::string limit;  // as in the policy
    double rate;        // a second
    double burst;
    nanoseconds step;  // of the clock
    unsigned packets;  // a step, more than the rate
};

class Saturation : public GateUnderTest,
                   public ::testing::WithParamInterface<std::tuple<Flood, Lag>> {
  protected:
    static constexpr nanoseconds kTime = 10100ms;
    static constexpr double kSeconds = 10.1;

    const Flood& flood() const { return std::get<0>(GetParam()); }

    uint64_t admitted_of(const Bytes& frame) {
        const auto [flood, lagging] = GetParam();
        uint64_t admitted = 0;
        uint32_t cpu = 0;
        for (nanoseconds time = 0ns; time <= kTime; time += flood.step) {
            lag(lag_at(lagging, now()));
            on_cpu(cpu++ % 64);
            admitted +=
                send_many(frame, time == 0ns ? static_cast<unsigned>(flood.burst) + flood.packets
                                             : flood.packets);
            advance(flood.step);
        }
        return admitted;
    }
};

TEST_P(Saturation, ASourceGetsItsBurstAndItsRateAndNoMore) {
    install_web("per_source = { packets = " + flood().limit + " }");
    const Packet packet = Ethernet() / from("192.0.2.10").to("203.0.113.1") / tcp(1, 443).ack();
    const double allowed = std::floor(flood().burst + flood().rate * kSeconds);
    const auto admitted = static_cast<double>(admitted_of(packet.bytes()));
    EXPECT_LE(admitted, allowed * 1.001);
    EXPECT_GE(admitted, allowed * 0.98);
}

TEST_P(Saturation, ABudgetYieldsItsBurstAndItsRateAndNoMore) {
    install_web("budget = { packets = " + flood().limit + " }");
    const Packet packet = Ethernet() / from("192.0.2.10").to("203.0.113.1") / tcp(1, 443).ack();
    const double allowed = std::floor(flood().burst + flood().rate * kSeconds);
    const auto admitted = static_cast<double>(admitted_of(packet.bytes()));
    EXPECT_LE(admitted, allowed * 1.001);
}

INSTANTIATE_TEST_SUITE_P(
    All, Saturation,
    ::testing::Combine(
        ::testing::Values(
            Flood{"1", R"({ rate = "1/s", burst = 1 })", 1, 1, 1ms, 2},
            Flood{"300", R"({ rate = "300/s", burst = 300 })", 300, 300, 1ms, 3},
            Flood{"300Burst1", R"({ rate = "300/s", burst = 1 })", 300, 1, 50us, 1},
            Flood{"20000", R"({ rate = "20000/s", burst = 20000 })", 20000, 20000, 1ms, 40},
            Flood{"20000Burst20", R"({ rate = "20000/s", burst = 20 })", 20000, 20, 500us, 20},
            Flood{"1M", R"({ rate = "1M/s", burst = 50000 })", 1e6, 50000, 2ms, 2200}),
        ::testing::Values(Lag::none, Lag::one_tick, Lag::two_ticks)),
    name_of<Flood>);

// --- strict windows ----------------------------------------------------------------------------

struct WindowCase {
    std::string name;
    unsigned limit;
    nanoseconds window;
    double least_served;  // of what the window would allow
};

class Windows : public GateUnderTest,
                public ::testing::WithParamInterface<std::tuple<WindowCase, Lag>> {
  protected:
    void SetUp() override {
        GateUnderTest::SetUp();
        if (IsSkipped())
            return;
        const auto& c = std::get<0>(GetParam());
        install_web("per_source = { connections = { limit = " + std::to_string(c.limit) +
                    ", window = \"" + std::to_string(c.window.count() / 1'000'000) + "ms\" } }");
    }
    void try_now() {
        static const Bytes syn =
            (Ethernet() / from("192.0.2.10").to("203.0.113.1") / tcp(1, 443).syn()).bytes();
        lag(lag_at(std::get<1>(GetParam()), now()));
        on_cpu(cpu_++ % 64);
        if (passes(syn))
            admitted_.push_back(now());
    }
    // Most admissions in any window of the length W.
    [[nodiscard]] unsigned most_in_any() const {
        const uint64_t length = count(std::get<0>(GetParam()).window);
        unsigned most = 0;
        for (auto first = admitted_.begin(), last = first; last != admitted_.end(); ++last) {
            while (*last - *first >= length)
                ++first;
            most = std::max(most, static_cast<unsigned>(last - first) + 1);
        }
        return most;
    }

    std::vector<uint64_t> admitted_;
    uint32_t cpu_ = 0;
};

TEST_P(Windows, NeverMoreThanTheLimitAndNearlyAllOfIt) {
    const auto& c = std::get<0>(GetParam());
    constexpr unsigned kWindows = 30;
    // Small limits are tried more often, or the steps themselves would cost them admissions.
    const unsigned tries = c.limit <= SLUICE_WINDOW_SLOTS ? 128 : 8;
    const nanoseconds step = std::max<nanoseconds>(c.window / (c.limit * tries), 50us);
    const uint64_t end = now() + count(c.window) * kWindows;
    while (now() < end) {
        try_now();
        advance(step);
    }
    EXPECT_EQ(most_in_any(), c.limit);
    EXPECT_GE(static_cast<double>(admitted_.size()), c.least_served * c.limit * kWindows);
}

TEST_P(Windows, NeverMoreThanTheLimitWhateverTheRhythm) {
    const auto& c = std::get<0>(GetParam());
    std::mt19937 random(7);  // NOLINT: the same rhythm each time
    std::exponential_distribution<double> gap(1.0);
    for (int burst = 0; burst < 60; ++burst) {
        for (unsigned i = 0; i < c.limit; ++i) {
            try_now();
            advance(nanoseconds(
                static_cast<int64_t>(gap(random) * static_cast<double>(c.window.count()) /
                                     (c.limit * (burst % 3 == 0 ? 20.0 : 1.5)))));
        }
    }
    EXPECT_LE(most_in_any(), c.limit);
}

INSTANTIATE_TEST_SUITE_P(All, Windows,
                         ::testing::Combine(::testing::Values(WindowCase{"1in10s", 1, 10s, 0.99},
                                                              WindowCase{"3in1s", 3, 1s, 0.97},
                                                              WindowCase{"10in60s", 10, 60s, 0.99},
                                                              WindowCase{"16in10s", 16, 10s, 0.99},
                                                              WindowCase{"17in10s", 17, 10s, 0.93},
                                                              WindowCase{"100in60s", 100, 60s,
                                                                         0.93},
                                                              WindowCase{"500in1h", 500, 1h, 0.93}),
                                            ::testing::Values(Lag::none, Lag::two_ticks)),
                         name_of<WindowCase>);

class WindowRules : public GateOfBothFamilies {
  protected:
    Packet syn(std::string_view source) {
        return Ethernet() / from(source).to(of().server) / tcp(1, 443).syn();
    }
};
FOR_BOTH_FAMILIES(WindowRules);

TEST_P(WindowRules, TheFirstPassesAndTheNextWaitsItsTime) {
    install_web("per_source = { connections = { limit = 1, window = \"10s\" } }");
    EXPECT_EQ(send(syn(of().client)), "pass_within");
    EXPECT_EQ(send(syn(of().client)), "drop_source_window");
    EXPECT_EQ(send(syn(of().other_network)), "pass_within");
    advance(10s - 1ms);
    EXPECT_EQ(send(syn(of().client)), "drop_source_window");
    advance(1ms + 12ms);  // two ticks and a unit of the window
    EXPECT_EQ(send(syn(of().client)), "pass_within");
}

TEST_P(WindowRules, OnlySynsAreCounted) {
    install_web("per_source = { connections = { limit = 1, window = \"10s\" } }");
    EXPECT_EQ(send_many(Ethernet() / ip() / tcp(1, 443).syn().ack(), 9), 9U);
    EXPECT_EQ(send_many(Ethernet() / ip() / udp(1, 443), 9), 9U);
    EXPECT_EQ(send_many(syn(of().client), 9), 1U);
}

// Two CPUs read the clock, the later reading admits first: no gap in the count, no window cleared.
TEST_P(WindowRules, AReadingFromBeforeTheLastAdmissionCountsAllTheSame) {
    for (const unsigned limit : {3U, 40U}) {
        start(usual_sizes());
        install_web("per_source = { connections = { limit = " + std::to_string(limit) +
                    ", window = \"60s\" } }");
        advance(10s);
        EXPECT_EQ(send_many(syn(of().client), 99), limit);
        for (const nanoseconds before : {1ms, 2ms, 8ms, 20ms}) {
            set_clock(now() - count(before));
            EXPECT_EQ(send(syn(of().client)), "drop_source_window") << before.count();
            set_clock(now() + count(before));
            EXPECT_EQ(send(syn(of().client)), "drop_source_window") << before.count();
        }
    }
}

TEST_P(WindowRules, SourcesDoNotShareAWindow) {
    auto sizes = usual_sizes();
    sizes.window_sets = 1U << 12;  // so many that four of them in one set are most unlikely
    start(sizes);
    install_web("per_source = { connections = { limit = 2, window = \"60s\" } }");
    const auto address = IpAddress::parse(of().client).value();
    for (unsigned i = 0; i < 100; ++i) {
        auto bytes = address.bytes();
        bytes[GetParam() == Family::ipv4 ? 15 : 7] = static_cast<uint8_t>(i);
        const auto source = IpAddress::from_bytes(bytes);
        EXPECT_EQ(send_many(Ethernet() / from(source).to(of().server) / tcp(1, 443).syn(), 5), 2U);
    }
    EXPECT_EQ(housekeeping(&sluice_cpu::windows_evicted_live), 0U);
}

}  // namespace

}  // namespace sluice
