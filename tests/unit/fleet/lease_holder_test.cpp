#include "fleet/lease_holder.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {

namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr const char* kWeb = "web.data";

SharedBudget shared(const std::string& name, OnRedisLoss on_loss) {
    return {.budget = {.name = name, .per_second = 8000, .burst = 400, .unit = 1},
            .on_loss = on_loss};
}

class LeaseHolderTest : public ::testing::Test {
  protected:
    LeaseHolderTest() { begin(OnRedisLoss::safe); }

    void begin(OnRedisLoss on_loss, const std::map<std::string, Share>& in_force = {}) {
        holder_ = LeaseHolder("a", 1000, {.max_hosts = 4, .hold_for = 30s, .jitter_seed = 1});
        holder_.set_budgets({shared(kWeb, on_loss)}, in_force, now_);
    }
    void pass(nanoseconds time) { now_ += static_cast<uint64_t>(time.count()); }
    // Units arrive evenly, and the holder looks every 10 ms, as its owner would. Ends with the
    // first call.
    std::optional<LeaseRequest> flow(double per_second, nanoseconds time) {
        for (nanoseconds step{0}; step < time; step += 10ms) {
            pass(10ms);
            arrived_ += per_second * 0.01;
            look();
            if (auto request = holder_.next(now_, 0))
                return request;
        }
        return std::nullopt;
    }
    void look(double tokens = 0) {
        holder_.observe(kWeb, {.demand = static_cast<uint64_t>(arrived_), .tokens = tokens}, now_);
    }
    static LeaseReply reply(LeaseGrant grant) {
        grant.budget = 8000;
        return {.renew_in = 200ms,
                .length = 500ms,
                .idle_length = 12'500ms,
                .longest_lease = 12'500ms,
                .hosts = 2,
                .grants = {grant}};
    }
    LeaseOutcome grant(double rate, bool saturated = false, bool awaited = false) {
        return holder_.answered(
            reply({.saturated = saturated, .awaited = awaited, .grant = rate, .burst = rate / 20}));
    }
    const Share& share() const { return holder_.share(kWeb); }
    uint64_t after(nanoseconds time) const { return now_ + static_cast<uint64_t>(time.count()); }

    uint64_t now_ = 3'600'000'000'000;
    double arrived_ = 0;
    LeaseHolder holder_{"a", 0, {}};
};

TEST_F(LeaseHolderTest, ANewServiceHasItsSafeShareUntilRedisAnswers) {
    EXPECT_EQ(share().at(now_), (Allowance{.per_second = 2000, .burst = 100}));
    begin(OnRedisLoss::open);
    EXPECT_TRUE(share().at(now_).unlimited);
}

TEST_F(LeaseHolderTest, TheFirstCallClaimsWhatIsInUse) {
    look();
    const auto request = holder_.next(now_, 7);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->seq, 1001U);
    EXPECT_EQ(request->acked_seq, 0U);
    EXPECT_EQ(request->round_cost_us, 7U);
    ASSERT_EQ(request->demands.size(), 1U);
    EXPECT_EQ(request->demands[0].claim, 2000);
    EXPECT_FALSE(holder_.next(now_, 0)) << "one call at a time";
}

TEST_F(LeaseHolderTest, ALeaseCountsFromTheSendingOfItsCall) {
    ASSERT_TRUE(holder_.next(now_, 0));
    const uint64_t sent = now_;
    pass(80ms);
    grant(3000);
    EXPECT_EQ(share().valid_until_ns, sent + 500'000'000);
    EXPECT_EQ(share().at(sent + 499'999'999).per_second, 3000);
    EXPECT_EQ(share().at(sent + 500'000'000).per_second, 2000) << "safe";
}

TEST_F(LeaseHolderTest, HoldKeepsTheLastShareForItsTime) {
    begin(OnRedisLoss::hold);
    ASSERT_TRUE(holder_.next(now_, 0));
    grant(3000);
    EXPECT_EQ(share().at(after(30'400ms)).per_second, 3000);
    EXPECT_EQ(share().at(after(30'500ms)).per_second, 2000);
}

TEST_F(LeaseHolderTest, OpenHasNoBudgetOnceTheLeaseEnds) {
    begin(OnRedisLoss::open);
    ASSERT_TRUE(holder_.next(now_, 0));
    grant(3000);
    EXPECT_FALSE(share().at(after(499ms)).unlimited);
    EXPECT_TRUE(share().at(after(500ms)).unlimited);
}

TEST_F(LeaseHolderTest, AnAnsweredCallIsAcknowledgedByTheNext) {
    const auto first = holder_.next(now_, 0);
    grant(3000);
    const auto second = flow(100, 300ms);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(second->acked_seq, first->seq);
    EXPECT_NEAR(static_cast<double>(second->since_acked_ms), 200, 25);
    EXPECT_EQ(second->demands[0].claim, 3000);
    holder_.lost(now_);
    const auto third = flow(100, 300ms);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->acked_seq, first->seq) << "the second was not taken";
}

// A standard deviation of what a period of 200 ms counts.
double noise(double per_second) {
    return std::sqrt(per_second / 0.2);
}

TEST_F(LeaseHolderTest, DemandIsWhatArrivedAndMayArriveByChance) {
    ASSERT_TRUE(flow(1500, 100ms));
    grant(3000);
    const auto request = flow(1500, 300ms);
    ASSERT_TRUE(request);
    EXPECT_NEAR(request->demands[0].per_second, 1500 + noise(1500), 20);
}

TEST_F(LeaseHolderTest, CountersThatBeginAnewAreNoDemand) {
    arrived_ = 1e6;
    ASSERT_TRUE(flow(1000, 100ms));
    grant(3000);
    ASSERT_FALSE(flow(1000, 100ms));
    arrived_ = 0;
    const auto request = flow(1000, 300ms);
    ASSERT_TRUE(request);
    EXPECT_NEAR(request->demands[0].per_second, 1000 + noise(1000), 120);
}

TEST_F(LeaseHolderTest, RenewsInTimeAndSpread) {
    std::vector<double> gaps;
    uint64_t before = now_;
    for (int i = 0; i < 40; i++) {
        ASSERT_TRUE(flow(500, 300ms));
        gaps.push_back(static_cast<double>(now_ - before) * 1e-6);
        before = now_;
        grant(3000);
    }
    gaps.erase(gaps.begin());
    EXPECT_GE(*std::ranges::min_element(gaps), 180);
    EXPECT_LE(*std::ranges::max_element(gaps), 230);
    EXPECT_GT(*std::ranges::max_element(gaps) - *std::ranges::min_element(gaps), 10);
}

TEST_F(LeaseHolderTest, AsksAtOnceWhereMostOfTheShareIsSpent) {
    ASSERT_TRUE(flow(500, 100ms));
    grant(1000);
    const uint64_t granted = now_;
    ASSERT_TRUE(flow(20'000, 300ms));
    EXPECT_EQ(now_ - granted, 20'000'000U) << "but 20 ms apart";
    grant(1000, true);
    const uint64_t saturated = now_;
    ASSERT_TRUE(flow(20'000, 300ms));
    EXPECT_GE(now_ - saturated, 180'000'000U) << "there is no more to be had";
}

TEST_F(LeaseHolderTest, AcknowledgesAtOnceWhatOthersWaitFor) {
    ASSERT_TRUE(flow(500, 100ms));
    grant(1000, true, true);
    const auto at_once = holder_.next(now_, 0);
    ASSERT_TRUE(at_once);
    EXPECT_EQ(at_once->demands[0].claim, 1000);
    grant(900, true, true);
    EXPECT_FALSE(holder_.next(now_, 0)) << "not each time without a pause";
    EXPECT_TRUE(flow(500, 30ms));
}

TEST_F(LeaseHolderTest, AnIdleOneThatWasLoweredIsAcknowledgedToo) {
    ASSERT_TRUE(flow(500, 100ms));
    grant(1000);
    std::optional<LeaseRequest> request;
    while (request = flow(0, 6s), request && !request->demands[0].idle)
        grant(1000);
    ASSERT_TRUE(request);
    grant(50, false, true);
    request = holder_.next(now_, 0);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands.size(), 1U);
}

TEST_F(LeaseHolderTest, WhatIsIdleIsRenewedSeldomAndWakesInTime) {
    ASSERT_TRUE(flow(500, 100ms));
    grant(1000);
    std::optional<LeaseRequest> request;
    for (int i = 0; i < 8; i++)
        if ((request = flow(0, 300ms)))
            grant(1000);
    const uint64_t before = now_;
    request = flow(0, 6s);
    ASSERT_TRUE(request);
    EXPECT_TRUE(request->demands[0].idle);
    EXPECT_EQ(request->demands[0].per_second, 0);
    EXPECT_GT(now_ - before, 2'000'000'000U);
    const uint64_t sent = now_;
    grant(100);
    EXPECT_EQ(share().valid_until_ns, sent + 12'500'000'000U);
    request = flow(5000, 300ms);
    ASSERT_TRUE(request);
    EXPECT_FALSE(request->demands[0].idle);
    EXPECT_LE(now_ - sent, 40'000'000U);
}

TEST_F(LeaseHolderTest, WhatALostAnswerWasAboutGoesWithTheNextCall) {
    holder_.set_budgets({shared(kWeb, OnRedisLoss::safe), shared("api.data", OnRedisLoss::safe)},
                        {}, now_);
    auto request = flow(500, 100ms);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands.size(), 2U);
    LeaseReply both = reply({.grant = 100, .burst = 5});
    both.grants.push_back(both.grants[0]);
    holder_.answered(both);
    // api.data becomes idle; the call that says so is lost.
    while (request = flow(500, 300ms), request && !request->demands[0].idle)
        holder_.answered(both);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands.size(), 2U);
    holder_.lost(now_);
    request = flow(500, 300ms);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands.size(), 2U);
    holder_.answered(both);
    request = flow(500, 300ms);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands.size(), 1U);
}

TEST_F(LeaseHolderTest, TriesAgainSoonAfterALossAndMoreSlowlyAfterMany) {
    ASSERT_TRUE(flow(500, 100ms));
    std::vector<uint64_t> pauses;
    for (int i = 0; i < 6; i++) {
        const uint64_t lost = now_;
        holder_.lost(now_);
        ASSERT_TRUE(flow(500, 400ms));
        pauses.push_back((now_ - lost) / 1'000'000);
    }
    EXPECT_LE(pauses.front(), 30U);
    EXPECT_GE(pauses.back(), 180U);
    EXPECT_LE(pauses.back(), 230U);
}

TEST_F(LeaseHolderTest, CountedTokensAreAddedOnce) {
    ASSERT_TRUE(holder_.next(now_, 0));
    holder_.answered(reply({.tokens = true, .grant = 3, .burst = 3}));
    EXPECT_EQ(share().added, 3);
    EXPECT_EQ(share().now, (Allowance{.per_second = 0, .burst = 3}));
    EXPECT_EQ(tokens_kept(0, share()), 3);
    pass(100ms);
    look(2);
    arrived_ = 1;
    pass(100ms);
    look(2);
    pass(30ms);
    const auto request = holder_.next(now_, 0);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands[0].claim, 2);
    holder_.answered(reply({.unknown = true}));
    EXPECT_EQ(share().added, 0);
}

TEST_F(LeaseHolderTest, AChangeOfRateKeepsTokensAndGivesNone) {
    const Share lower{.now = {.per_second = 10, .burst = 5}, .after = {}};
    const Share higher{.now = {.per_second = 1000, .burst = 50}, .after = {}};
    EXPECT_EQ(tokens_kept(20, lower), 5);
    EXPECT_EQ(tokens_kept(3, higher), 3);
}

TEST_F(LeaseHolderTest, ADuplicateGoesOnUnderAnotherName) {
    ASSERT_TRUE(flow(500, 100ms));
    EXPECT_EQ(holder_.answered({.status = LeaseStatus::duplicate, .grants = {}}),
              LeaseOutcome::duplicate);
    holder_.rename("b", 5000);
    const auto request = flow(500, 30ms);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->host, "b");
    EXPECT_EQ(request->seq, 5001U);
    EXPECT_EQ(request->acked_seq, 0U);
}

TEST_F(LeaseHolderTest, SaysWhichBudgetsRedisLacks) {
    ASSERT_TRUE(holder_.next(now_, 0));
    EXPECT_EQ(holder_.answered(reply({.unknown = true})), LeaseOutcome::unknown);
    ASSERT_EQ(holder_.unknown_budgets().size(), 1U);
    EXPECT_EQ(holder_.unknown_budgets()[0].per_second, 8000);
    EXPECT_EQ(share().at(now_).per_second, 2000) << "what holds without Redis goes on";
    ASSERT_TRUE(flow(500, 300ms));
    EXPECT_EQ(grant(1000), LeaseOutcome::taken);
    EXPECT_TRUE(holder_.unknown_budgets().empty());
}

TEST_F(LeaseHolderTest, APredecessorsShareStaysUntilItEnds) {
    const Share left{
        .now = {.per_second = 5000, .burst = 250}, .valid_until_ns = after(300ms), .after = {}};
    begin(OnRedisLoss::safe, {{kWeb, left}});
    EXPECT_EQ(share().at(now_).per_second, 5000);
    EXPECT_EQ(share().at(after(300ms)).per_second, 2000);
    const auto request = holder_.next(now_, 0);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->demands[0].claim, 5000);
}

TEST_F(LeaseHolderTest, AfterASleepNothingIsHeld) {
    ASSERT_TRUE(flow(500, 100ms));
    grant(5000);
    holder_.lapse();
    EXPECT_EQ(share().at(now_).per_second, 2000);
    const auto request = flow(500, 30ms);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->acked_seq, 0U);
    EXPECT_EQ(request->demands[0].claim, 2000);
}

TEST_F(LeaseHolderTest, TheSafeShareFollowsTheBudgetInRedis) {
    ASSERT_TRUE(holder_.next(now_, 0));
    LeaseReply halved = reply({.grant = 100, .burst = 5});
    halved.grants[0].budget = 4000;
    holder_.answered(halved);
    EXPECT_EQ(share().after.per_second, 1000);
}

TEST_F(LeaseHolderTest, ALongPeriodHasNoIdleOnes) {
    holder_ = LeaseHolder("a", 1000, {.period = 60s});
    holder_.set_budgets({shared(kWeb, OnRedisLoss::safe)}, {}, now_);
    pass(120s);
    const auto request = holder_.next(now_, 0);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->period, 60s);
    EXPECT_FALSE(request->demands[0].idle);
}

}  // namespace

}  // namespace sluice
