// The fleet's share of a budget: it holds while its lease does, and what comes after it needs
// nobody.
#include "gate/budgets.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

constexpr const char* kRedis = "[redis]\nurl = \"unix:///nowhere\"\n[fleet]\nmax_hosts = 4\n";

class ShareOfBoth : public GateOfBothFamilies {
  protected:
    static Packet data() { return Ethernet() / ip() / tcp(40000, 443).ack().payload(100); }
    // 100/s of the fleet, which is 25/s and a burst of 10 for a host alone: slow enough for the
    // exact clock, so that every packet counts.
    void install_shared(std::string_view more = "") {
        install(std::string(kRedis) +
                "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
                "budget = { data = { rate = \"100/s\", burst = 40 }" +
                std::string(more) + " }");
        id_ = service_id("web");
    }
    void put(const BudgetAllowance& now, nanoseconds length, double added = 0) {
        const uint64_t until = gate_now_ns(*tables_) + static_cast<uint64_t>(length.count());
        const Status done = put_share(*tables_, id_, Dimension::data,
                                      {now, added, until, {.per_second = 25, .burst = 10}});
        EXPECT_TRUE(done) << done.error().message;
    }
    double tokens() { return budget_tokens(*tables_, id_, Dimension::data); }

    uint32_t id_ = 0;
};
FOR_BOTH_FAMILIES(ShareOfBoth);

TEST_P(ShareOfBoth, WithoutALeaseAHostHasItsPartOfTheBudget) {
    install_shared();
    EXPECT_EQ(send_many(data(), 99), 10U);
    advance(400ms);
    EXPECT_EQ(send_many(data(), 99), 10U);
}

TEST_P(ShareOfBoth, OpenMeansNoBudgetWithoutALease) {
    install_shared(", on_redis_loss = \"open\"");
    EXPECT_EQ(send_many(data(), 2000), 2000U);
    EXPECT_GE(budget_demand(*tables_, id_, Dimension::data), 2000U);
    put({.per_second = 100, .burst = 5}, 1s);
    EXPECT_LE(send_many(data(), 99), 5U);
}

TEST_P(ShareOfBoth, HoldsUntilItsEndToTheNanosecondAndThenTheNextTerms) {
    install_shared();
    (void)send_many(data(), 99);
    put({.per_second = 80, .burst = 32}, 4s);
    EXPECT_EQ(send_many(data(), 99), 0U) << "what was spent stays spent";
    advance(250ms);
    EXPECT_EQ(send_many(data(), 99), 20U);
    advance(3750ms - 1ns);
    EXPECT_EQ(send_many(data(), 99), 32U);
    advance(1ns);
    EXPECT_EQ(send_many(data(), 99), 0U);
    advance(200ms);
    EXPECT_EQ(send_many(data(), 99), 5U) << "25/s from here on";
}

TEST_P(ShareOfBoth, AChangeOfRateKeepsTokensAndGiftsNone) {
    install_shared();
    put({.per_second = 10, .burst = 8}, 10s);
    advance(5s);
    EXPECT_NEAR(tokens(), 8, 0.01);
    put({.per_second = 100, .burst = 80}, 10s);
    EXPECT_NEAR(tokens(), 8, 0.01) << "the past is not earned at the new rate";
    EXPECT_EQ(send_many(data(), 99), 8U);
    advance(800ms);
    EXPECT_NEAR(tokens(), 80, 0.01);
    put({.per_second = 1, .burst = 2}, 10s);
    EXPECT_NEAR(tokens(), 2, 0.01) << "no more than the new burst holds";
    EXPECT_EQ(send_many(data(), 99), 2U);
    advance(1s);
    EXPECT_EQ(send_many(data(), 99), 1U);
}

TEST_P(ShareOfBoth, ManyChangesOfRateMintNothing) {
    install_shared();
    put({.per_second = 100, .burst = 50}, 10s);
    advance(1s);
    uint64_t passed = send_many(data(), 99);
    EXPECT_EQ(passed, 50U);
    double earned = 0;
    for (int i = 0; i < 200; ++i) {
        const double rate = i % 2 == 0 ? 20 : 100;
        put({.per_second = rate, .burst = 50}, 10s);
        advance(50ms);
        earned += rate * 0.05;
        passed += send_many(data(), 99);
    }
    EXPECT_NEAR(static_cast<double>(passed) + tokens(), 50 + earned, 1);
}

TEST_P(ShareOfBoth, CountedTokensAreAddedOnceAndEarnNothing) {
    install_shared();
    (void)send_many(data(), 99);
    put({.per_second = 0, .burst = 5}, 2s, 3);
    EXPECT_EQ(send_many(data(), 99), 3U);
    advance(1s);
    EXPECT_EQ(send_many(data(), 99), 0U);
    put({.per_second = 0, .burst = 5}, 2s, 2);
    EXPECT_EQ(send_many(data(), 99), 2U);
    put({.per_second = 0, .burst = 5}, 2s);
    EXPECT_EQ(send_many(data(), 99), 0U) << "a longer lease adds none";
}

TEST_P(ShareOfBoth, UnitsThatACpuHasLeasedGoWithTheTerms) {
    install_shared();
    put({.per_second = 1e6, .burst = 50'000}, 10s);
    advance(1s);
    EXPECT_EQ(send_many(data(), 1), 1U);  // the rest of its 50 µs stays with this CPU
    put({.per_second = 10, .burst = 1}, 10s);
    EXPECT_LE(send_many(data(), 99), 1U);
}

TEST_P(ShareOfBoth, IsReadBackAsItWasPut) {
    install_shared();
    EXPECT_FALSE(read_share(*tables_, id_, Dimension::data));
    put({.per_second = 123, .burst = 617}, 10s);
    const auto share = read_share(*tables_, id_, Dimension::data);
    ASSERT_TRUE(share);
    EXPECT_NEAR(share->now.per_second, 123, 0.1);
    EXPECT_NEAR(share->now.burst, 617, 1);
    EXPECT_NEAR(share->after.per_second, 25, 0.1);
    // On the coarse clock a burst is kept shorter by what that clock may lag.
    put({.per_second = 12'345, .burst = 617}, 10s);
    EXPECT_NEAR(read_share(*tables_, id_, Dimension::data)->now.burst, 617, 1);
    put({.unlimited = true}, 10s);
    EXPECT_TRUE(read_share(*tables_, id_, Dimension::data)->now.unlimited);
    EXPECT_EQ(send_many(data(), 5000), 5000U);
    drop_share(*tables_, id_, Dimension::data);
    EXPECT_FALSE(read_share(*tables_, id_, Dimension::data));
    EXPECT_LE(send_many(data(), 99), 10U) << "the policy's own again";
}

}  // namespace

}  // namespace sluice
