// A service's budget: one for the host however many CPUs and sources there are; when it is short,
// new connections wait first, then whole sources.
#include <cmath>

#include "gate_under_test.h"

namespace sluice {

namespace {

class BudgetOfBoth : public GateOfBothFamilies {
  protected:
    static Packet data(std::string_view source = of().client) {
        return Ethernet() / from(source).to(of().server) / tcp(40000, 443).ack().payload(100);
    }
    static Packet syn() { return Ethernet() / ip() / tcp(40000, 443).syn(); }
    // Of many networks, so that limits and lots tell them apart.
    static Bytes data_of(unsigned source) {
        const auto address =
            IpAddress::parse(GetParam() == Family::ipv4 ? "198.18.0.0" : "2001:db8:1::1");
        auto bytes = address.value().bytes();
        const bool ipv4 = GetParam() == Family::ipv4;
        bytes[ipv4 ? 14 : 6] = static_cast<uint8_t>(source >> 8);
        bytes[ipv4 ? 15 : 7] = static_cast<uint8_t>(source);
        return (Ethernet() / from(IpAddress::from_bytes(bytes)).to(of().server) /
                tcp(40000, 443).ack().payload(100))
            .bytes();
    }
};
FOR_BOTH_FAMILIES(BudgetOfBoth);

TEST_P(BudgetOfBoth, IsSharedByAllSourcesOfAService) {
    install_web("budget = { data = { rate = \"10/s\", burst = 10 } }");
    EXPECT_EQ(send_many(data(of().client), 4), 4U);
    EXPECT_EQ(send_many(data(of().same_network), 4), 4U);
    EXPECT_EQ(send_many(data(of().other_network), 4), 2U);
    EXPECT_EQ(send(data(of().other_network)), "drop_budget");
    EXPECT_EQ(send(Ethernet() / ip() / tcp(1, 80).ack().payload(9)), "pass_unlimited");
    advance(500ms);
    EXPECT_EQ(send_many(data(), 99), 5U);
}

TEST_P(BudgetOfBoth, CountsEachDimension) {
    const size_t size = data().bytes().size();
    for (const auto& [budget, admitted] :
         {std::pair<std::string, uint64_t>{"data = { rate = \"1/s\", burst = 7 }", 7},
          {"packets = { rate = \"1/s\", burst = 9 }", 9},
          {"bytes = { rate = \"1kB/s\", burst = \"70kB\" }", 70000 / size}}) {
        start(usual_sizes());
        install_web("budget = { " + budget + " }");
        const auto passed = static_cast<double>(send_many(data(), 2000));
        EXPECT_NEAR(passed, static_cast<double>(admitted), 0.01 * static_cast<double>(admitted))
            << budget;
        EXPECT_LE(passed, static_cast<double>(admitted)) << budget;
    }
    start(usual_sizes());
    install_web("budget = { connections = { rate = \"1/s\", burst = 5 } }");
    EXPECT_EQ(send_many(syn(), 99), 5U);
    EXPECT_EQ(send_many(data(), 99), 99U);
}

TEST_P(BudgetOfBoth, SixtyFourCpusSpendOneBudget) {
    struct Case {
        const char* budget;
        double rate, burst;
        nanoseconds step;
    };
    for (const Case& c : {Case{R"({ rate = "100/s", burst = 5 })", 100, 5, 1ms},
                          Case{R"({ rate = "1000/s", burst = 50 })", 1000, 50, 200us},
                          Case{R"({ rate = "200000/s", burst = 10000 })", 200000, 10000, 200us}}) {
        start(usual_sizes());
        install_web(std::string("budget = { data = ") + c.budget + " }");
        const double offered = 1.5 * c.rate * static_cast<double>(c.step.count()) / 1e9;
        const nanoseconds time = 500ms;
        uint64_t admitted = 0;
        uint32_t i = 0;
        for (nanoseconds at = 0ns; at < time; at += c.step) {
            on_cpu(i * 29 % 64);
            admitted += send_many(data_of(i++ % 100), static_cast<unsigned>(offered) + 1);
            advance(c.step);
        }
        const double allowed = c.burst + c.rate * 0.5;
        EXPECT_LE(static_cast<double>(admitted), std::floor(allowed)) << c.budget;
        EXPECT_GE(static_cast<double>(admitted), 0.6 * allowed) << c.budget;
    }
}

// Whatever it is that is short: a connection that opens now will soon want of it.
TEST_P(BudgetOfBoth, NewConnectionsWaitFirst) {
    for (const std::string budget : {"packets", "data"}) {
        SCOPED_TRACE(budget);
        start(usual_sizes());
        install_web("budget = { " + budget + " = { rate = \"100/s\", burst = 100 } }");
        EXPECT_EQ(send(syn()), "pass_within");
        EXPECT_EQ(send_many(data(), 80), 80U);
        EXPECT_EQ(send(syn()), "drop_budget");
        EXPECT_EQ(send(data()), "pass_within");
        advance(300ms);
        EXPECT_EQ(send(syn()), "pass_within");
    }
}

TEST_P(BudgetOfBoth, ASourceIsServedOrNotButNotInPart) {
    // 200 sources ask for twice the budget.
    constexpr unsigned kSources = 200;
    install_web("budget = { data = { rate = \"2000/s\", burst = 200 } }");
    std::vector<Bytes> frames;
    for (unsigned source = 0; source < kSources; ++source)
        frames.push_back(data_of(source));
    const auto share_of = [&](unsigned rounds) {
        std::vector<double> share(kSources);
        for (unsigned round = 0; round < rounds; ++round)
            for (unsigned source = 0; source < kSources; ++source) {
                on_cpu((source + round) % 64);
                share[source] += passes(frames[source]) ? 1.0 / rounds : 0;
                advance(250us);  // 20 times a second each
            }
        return share;
    };
    (void)share_of(20);  // until the shares are steered
    std::vector<double> first = share_of(100);
    unsigned served = 0, waiting = 0;
    for (const double share : first) {
        served += share > 0.9 ? 1 : 0;
        waiting += share < 0.1 ? 1 : 0;
    }
    EXPECT_GE(served + waiting, kSources * 9 / 10);
    EXPECT_GE(served, kSources / 3);
    EXPECT_GE(waiting, kSources / 3);
    EXPECT_GT(counted("drop_shed"), counted("drop_budget"));

    advance(10s);
    (void)share_of(40);
    const std::vector<double> second = share_of(60);
    unsigned changed = 0;
    for (unsigned source = 0; source < kSources; ++source)
        changed += (first[source] > 0.5) != (second[source] > 0.5) ? 1 : 0;
    EXPECT_GE(changed, kSources / 5);
}

// Where few ask for much, making all of them wait would leave the budget to nobody.
TEST_P(BudgetOfBoth, WhatNobodyElseAsksForGoesToThoseWhoWait) {
    for (const unsigned sources : {1U, 2U, 5U}) {
        SCOPED_TRACE(sources);
        start(usual_sizes());
        install_web("budget = { data = { rate = \"1000/s\", burst = 100 } }");
        unsigned passed = 0;
        for (unsigned i = 0; i < 20000; ++i) {
            passed += passes(data_of(i % sources)) ? 1 : 0;
            advance(100us);  // ten times the rate, for two seconds
        }
        EXPECT_GE(passed, 2000U);
        EXPECT_LE(passed, 2100U);
    }
}

TEST_P(BudgetOfBoth, AddressesOfOneSourceDrawOneLot) {
    if (GetParam() == Family::ipv4)
        GTEST_SKIP() << "an IPv4 source is one address";
    install_web("budget = { data = { rate = \"1000/s\", burst = 100 } }");
    // 64 networks of eight addresses each; of a network all wait, or none does.
    std::vector<unsigned> served(64);
    for (unsigned round = 0; round < 100; ++round)
        for (unsigned source = 0; source < served.size(); ++source) {
            const auto host =
                "2001:db8:2:" + std::to_string(source) + "::" + std::to_string(1 + round % 8);
            const Packet packet = data(host);
            if (passes(packet.bytes()) && round >= 20)
                ++served[source];
            advance(500us);
        }
    unsigned in_part = 0;
    for (const unsigned packets : served)
        in_part += packets > 8 && packets < 72 ? 1 : 0;
    EXPECT_LE(in_part, served.size() / 8);
}

TEST_P(BudgetOfBoth, WhatIsEnoughIsNotShed) {
    install_web("budget = { data = { rate = \"2000/s\", burst = 200 } }");
    for (unsigned i = 0; i < 4000; ++i) {
        on_cpu(i % 64);
        ASSERT_TRUE(passes(data_of(i % 200))) << i;
        advance(555us);  // 0.9 of the rate
    }
}

TEST_P(BudgetOfBoth, ASuperPacketLargerThanTheBurstLeavesADebt) {
    install_web("budget = { data = { rate = \"10/s\", burst = 1 } }");
    const size_t mss = 1500 - (GetParam() == Family::ipv4 ? 40 : 60);
    const Packet super = Ethernet() / ip() / tcp(40000, 443).ack().payload(20 * mss);
    EXPECT_EQ(send(super), "pass_within");
    EXPECT_EQ(send(super), "drop_budget");
    advance(1s);
    EXPECT_EQ(send(super), "drop_budget");
    EXPECT_EQ(send(data()), "drop_budget");
    advance(1s);
    EXPECT_EQ(send(data()), "pass_within");
}

TEST_P(BudgetOfBoth, ADropSpendsNothing) {
    // The connections' budget refuses; the packets' budget is there for others.
    install_web(
        "budget = { connections = { rate = \"1/h\", burst = 1 }, packets = { rate = \"1/h\", burst "
        "= 40 } }");
    EXPECT_EQ(send_many(syn(), 500), 1U);
    EXPECT_EQ(send_many(data(), 500), 39U);
    // The source's own limit refuses; the budget is there for others.
    start(usual_sizes());
    install_web(
        "per_source = { data = { rate = \"1/h\", burst = 3 } }\nbudget = { data = { rate = "
        "\"1/h\", burst = 9 } }");
    EXPECT_EQ(send_many(data(of().client), 500), 3U);
    EXPECT_EQ(send_many(data(of().same_network), 500), 3U);
    EXPECT_EQ(send_many(data(of().other_network), 500), 3U);
}

TEST_P(BudgetOfBoth, AllowedSourcesSpendItToo) {
    install_web("budget = { data = { rate = \"1/h\", burst = 5 } }");
    allow(of().client);
    EXPECT_EQ(send_many(data(of().client), 99), 5U);
    allow(of().other_network, /*exempt=*/true);
    EXPECT_EQ(send_many(data(of().other_network), 99), 99U);
}

}  // namespace

}  // namespace sluice
