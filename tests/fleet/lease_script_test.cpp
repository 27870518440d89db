// lease.lua and budget.lua one call at a time: what is granted, what is refused, and what becomes
// of state that is lost or makes no sense.
#include <cmath>
#include <limits>

#include "redis_test.h"
#include "simulated_fleet.h"

namespace sluice {
namespace {

using lab::RedisServer;
using redis::Command;
using testing::DoubleNear;
using testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr const char* kWeb = "web.data";

class LeaseScript : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        // Saved when it is stopped in order.
        server_ = std::make_unique<RedisServer>(std::vector<std::string>{"save 3600 1"});
        connect();
        set_clock();
    }
    void connect() {
        redis_.emplace(Redis::open(patient(server_->url())).value());
        lease_.emplace(sim::ClockedScript::load(*redis_, lease_script()).value());
        budget_.emplace(sim::ClockedScript::load(*redis_, budget_script()).value());
    }
    void set_clock() {
        (void)run({"HSET", keys_.state + ":clock", "s", std::to_string(time_ / 1s), "us",
                   std::to_string(time_ % 1s / 1ms * 1000)});
    }
    void pass(milliseconds time) {
        time_ += time;
        set_clock();
    }
    redis::Reply run(const Command& command) { return redis_->run(command).value(); }

    redis::Reply budget(double per_second, uint64_t version = 1, milliseconds at = 0ms,
                        const std::string& name = kWeb) {
        const FleetBudget wanted{name, per_second, per_second / 20, 1};
        return run(budget_command(budget_->script(), keys_, version, at, std::span(&wanted, 1)));
    }
    redis::Reply send(const LeaseRequest& request) {
        return run(lease_command(lease_->script(), keys_, request));
    }
    // The next call of a host that has got all answers so far.
    LeaseRequest next(const std::string& host, double demand, double claim = 0) {
        LeaseRequest request{.host = host,
                             .seq = ++seq_[host],
                             .acked_seq = acked_[host],
                             .demands = {{kWeb, demand, claim}}};
        if (const auto sent = sent_.find(host); sent != sent_.end())
            request.since_acked_ms = static_cast<uint64_t>((time_ - sent->second).count());
        return request;
    }
    LeaseReply answer(const LeaseRequest& request) {
        const redis::Reply reply = send(request);
        EXPECT_TRUE(reply.as_text()) << reply.error_text();
        const auto parsed = parse_lease_reply(*reply.as_text(), request);
        EXPECT_TRUE(parsed);
        acked_[request.host] = request.seq;
        sent_[request.host] = time_;
        return *parsed;
    }
    LeaseGrant lease(const std::string& host, double demand, double claim = 0) {
        const LeaseReply reply = answer(next(host, demand, claim));
        return reply.grants.empty() ? LeaseGrant() : reply.grants[0];
    }
    // A grant whose answer the host never sees.
    double lose(const std::string& host, double demand) {
        const LeaseRequest request = next(host, demand);
        return parse_lease_reply(*send(request).as_text(), request)->grants[0].grant;
    }
    // Past the time in which a new state only confirms. Nobody else may be silent for longer than
    // the longest lease, or it begins again.
    void learn() {
        (void)lease("learner", 0);
        for (int i = 0; i < 3; i++) {
            pass(5s);
            (void)lease("learner", 0);
        }
        pass(1s);  // the learner's own lease ends, and whoever comes next takes it away
        seq_.erase("learner");
        acked_.erase("learner");
        sent_.erase("learner");
        (void)run({"HDEL", keys_.state, "enforce", "enforce:learner"});
        (void)run({"DEL", keys_.expiries});
    }

    LeaseKeys keys_{"test", 3};
    milliseconds time_{1'800'000'000'000};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
    std::optional<sim::ClockedScript> lease_, budget_;
    std::map<std::string, uint64_t> seq_, acked_;
    std::map<std::string, milliseconds> sent_;
};

TEST_F(LeaseScript, TheRealOneTakesTheServersTime) {
    const LeaseRequest request = next("a", 100, 10);
    const auto reply = redis_->run(lease_command(lease_script(), keys_, request));
    ASSERT_TRUE(reply && reply->as_text());
    EXPECT_EQ(parse_lease_reply(*reply->as_text(), request)->status, LeaseStatus::learning);
    const int64_t now = std::chrono::duration_cast<milliseconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
    EXPECT_TRUE(run({"ZSCORE", keys_.expiries, "enforce:a"}).is_nil()) << "no budget, no lease";
    const FleetBudget budget{kWeb, 1000, 50, 1};
    (void)run(budget_command(budget_script(), keys_, 1, 0ms, std::span(&budget, 1)));
    (void)redis_->run(lease_command(lease_script(), keys_, next("a", 100, 10)));
    EXPECT_NEAR(std::stod(lab::text(run({"ZSCORE", keys_.expiries, "enforce:a"}))),
                static_cast<double>(now) + 600, 30'000);
}

TEST_F(LeaseScript, ABudgetThatNobodySetIsUnknown) {
    EXPECT_TRUE(lease("a", 100).unknown);
    ASSERT_TRUE(budget(1000).check());
    EXPECT_FALSE(lease("a", 100).unknown);
    ASSERT_TRUE(budget(0, 2).check());
    EXPECT_TRUE(lease("a", 100).unknown);
}

TEST_F(LeaseScript, ANewStateOnlyConfirmsWhatIsClaimed) {
    ASSERT_TRUE(budget(1000).check());
    LeaseReply reply = answer(next("a", 5000, 300));
    EXPECT_EQ(reply.status, LeaseStatus::learning);
    EXPECT_EQ(reply.longest_lease, 12'500ms);
    EXPECT_EQ(reply.grants[0].grant, 300);
    EXPECT_EQ(lease("b", 5000, 600).grant, 600);
    EXPECT_EQ(lease("c", 5000, 600).grant, 100) << "the rest of the budget";
    EXPECT_EQ(lease("d", 5000, 600).grant, 0);
    pass(200ms);
    EXPECT_EQ(lease("a", 5000, 300).grant, 300) << "and goes on to";
    for (int i = 0; i < 5; i++) {
        pass(2400ms);
        reply = answer(next("a", 5000, 300));
    }
    EXPECT_EQ(reply.status, LeaseStatus::learning);
    pass(400ms);
    EXPECT_EQ(answer(next("a", 5000, 300)).status, LeaseStatus::ok);
}

TEST_F(LeaseScript, LearningLastsAsLongAsTheLongestLeaseThatAnybodyHeardOf) {
    ASSERT_TRUE(budget(1000).check());
    LeaseRequest request = next("a", 10, 300);
    request.longest_lease = 150s;
    EXPECT_EQ(answer(request).longest_lease, 150s);
    for (int i = 0; i < 10; i++) {
        pass(14'900ms);
        EXPECT_EQ(answer(next("a", 10, 300)).status, LeaseStatus::learning);
    }
    pass(1200ms);
    EXPECT_EQ(answer(next("a", 10, 300)).status, LeaseStatus::ok);
}

TEST_F(LeaseScript, GivesWhatIsAskedForAndHalfOfTheSpare) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    // 5 stay free for whoever joins.
    EXPECT_THAT(lease("a", 100).grant, DoubleNear(100 + 895 / 2.0, 0.1));
    pass(10ms);
    const double second = lease("b", 100).grant;
    EXPECT_GT(second, 200);
    EXPECT_LE(second, 1000 - 547);
}

TEST_F(LeaseScript, NeverMoreThanTheBudgetEvenBeforeOthersAreLowered) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double first = lease("a", 5000).grant;
    EXPECT_THAT(first, DoubleNear(995, 0.1));
    const double joined = lease("b", 5000).grant;
    EXPECT_THAT(joined, DoubleNear(5, 0.1)) << "one floor is free for whoever joins";
    pass(20ms);
    // The first is lowered, but may use the old share until it says that it has the new one.
    const LeaseGrant lowered = lease("a", 5000, first);
    EXPECT_TRUE(lowered.awaited);
    EXPECT_THAT(lowered.grant, DoubleNear(498.3, 0.1));
    EXPECT_THAT(lease("b", 5000, joined).grant, DoubleNear(5, 0.1));
    EXPECT_FALSE(lease("a", 5000, lowered.grant).awaited);
    EXPECT_THAT(lease("b", 5000, joined).grant, DoubleNear(498.3, 0.1));
}

TEST_F(LeaseScript, AnUnansweredGrantCountsBesideTheOldOne) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double first = lease("a", 900).grant;
    EXPECT_GT(first, 900);
    EXPECT_LT(lose("a", 100), 550);
    const double other = lease("b", 5000).grant;
    EXPECT_LE(first + other, 1000) << "a may not know that it was lowered";
}

TEST_F(LeaseScript, WhoAsksForLittleGetsAllOfIt) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    double calm = 0, flooded = 0;
    for (int i = 0; i < 10; i++) {
        pass(100ms);
        flooded = lease("flooded", 1e6, flooded).grant;
        calm = lease("calm", 200, calm).grant;
    }
    EXPECT_THAT(calm, DoubleNear(200, 0.1));
    EXPECT_THAT(flooded, DoubleNear(1000 - 200 - 10.0 / 3, 0.1));
}

TEST_F(LeaseScript, WhoAsksForNothingHasAFloor) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    double calm = 0, flooded = 0;
    for (int i = 0; i < 10; i++) {
        pass(100ms);
        flooded = lease("flooded", 1e6, flooded).grant;
        calm = lease("calm", 0, calm).grant;
    }
    EXPECT_THAT(calm, DoubleNear(10.0 / 3, 0.1));
    EXPECT_GT(flooded, 960);
}

TEST_F(LeaseScript, SaysWhenThereIsNoMoreToBeHad) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    EXPECT_TRUE(lease("a", 5000).saturated);
    EXPECT_FALSE(lease("b", 5000).saturated) << "more will come once the other is lowered";
}

TEST_F(LeaseScript, ADeadHostsShareComesBackAfterItsLease) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double dead = lease("dead", 5000).grant;
    double other = 0;
    for (int i = 0; i < 5; i++) {
        pass(100ms);
        other = lease("a", 5000, other).grant;
        EXPECT_LE(dead + other, 1000);
    }
    pass(150ms);  // 650 ms: the lease, and the grace for a host that counts slowly
    (void)lease("a", 5000, other);
    EXPECT_THAT(lease("a", 5000, other).grant, DoubleNear(995, 0.1));
}

TEST_F(LeaseScript, ALoweredBudgetShrinksAllAlikeAndNobodyToNothing) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    std::map<std::string, double> shares;
    for (int i = 0; i < 10; i++)
        for (const char* host : {"a", "b", "c", "d"}) {
            pass(20ms);
            shares[host] = lease(host, 5000, shares[host]).grant;
        }
    ASSERT_TRUE(budget(400, 2).check());
    for (const char* host : {"a", "b", "c", "d"}) {
        pass(20ms);
        const LeaseGrant grant = lease(host, 5000, shares[host]);
        EXPECT_GT(grant.grant, 60) << host;
        EXPECT_LE(grant.grant, 200) << host;
        EXPECT_TRUE(grant.awaited);
        EXPECT_EQ(grant.budget, 400);
        shares[host] = lease(host, 5000, grant.grant).grant;
    }
    double sum = 0;
    for (const auto& [host, share] : shares)
        sum += lease(host, 5000, share).grant;
    EXPECT_LE(sum, 400);
}

TEST_F(LeaseScript, ABudgetComesIntoForceAtItsTime) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    ASSERT_TRUE(budget(3000, 1, time_ + 1s).check());
    ASSERT_TRUE(budget(500, 1, time_ + 2s).check());
    pass(990ms);
    EXPECT_EQ(lease("a", 10).budget, 1000);
    pass(10ms);
    EXPECT_EQ(lease("a", 10).budget, 3000);
    pass(1s);
    EXPECT_EQ(lease("a", 10).budget, 500);
}

TEST_F(LeaseScript, AnOlderPolicyChangesNoBudget) {
    ASSERT_TRUE(budget(1000, 7).check());
    const redis::Reply older = budget(5, 6);
    EXPECT_EQ(*(*older.as_array())[0].as_text(), "older");
    EXPECT_EQ(*(*older.as_array())[1].as_integer(), 7);
    EXPECT_EQ(lease("a", 10, 10).budget, 1000);
}

TEST_F(LeaseScript, ANewerPolicyTakesThePlaceOfChangesThatWait) {
    ASSERT_TRUE(budget(1000, 1).check());
    ASSERT_TRUE(budget(5, 1, time_ + 1s).check());
    ASSERT_TRUE(budget(2000, 2).check());
    pass(2s);
    EXPECT_EQ(lease("a", 10, 10).budget, 2000);
}

TEST_F(LeaseScript, RefusesBudgetsThatAreNone) {
    for (const char* number : {"nan", "-1", "inf", "1e16", "much", ""}) {
        const redis::Reply reply =
            run(Command(budget_->script().call({keys_.state, keys_.expiries}))
                    .add("1")
                    .add("0")
                    .add(kWeb)
                    .add(number)
                    .add("1")
                    .add("1"));
        EXPECT_TRUE(reply.is_error()) << number;
    }
    EXPECT_TRUE(lease("a", 10).unknown);
}

TEST_F(LeaseScript, ASlotIsNeverAnotherBudgets) {
    ASSERT_TRUE(budget(1000, 1).check());
    ASSERT_TRUE(budget(77, 1, 0ms, "api.data").check());
    ASSERT_TRUE(budget(0, 2, 0ms, kWeb).check());
    ASSERT_TRUE(budget(88, 2, 0ms, "dns.data").check());
    LeaseRequest request = next("a", 1, 1);
    request.demands = {{"dns.data", 1, 1}, {kWeb, 1, 1}, {"api.data", 1, 1}};
    const LeaseReply reply = answer(request);
    EXPECT_EQ(reply.grants[0].budget, 88);
    EXPECT_TRUE(reply.grants[1].unknown);
    EXPECT_EQ(reply.grants[2].budget, 77);
}

TEST_F(LeaseScript, ObserversTakeNothingFromOthers) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    for (int i = 0; i < 5; i++) {
        pass(100ms);
        LeaseRequest watching = next("watching", 5000);
        watching.pool = LeasePool::observe;
        EXPECT_THAT(answer(watching).grants[0].grant, DoubleNear(995, 0.1));
        EXPECT_THAT(lease("a", 5000).grant, DoubleNear(995, 0.1));
    }
}

TEST_F(LeaseScript, ObserversEndToo) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    LeaseRequest watching = next("watching", 5000);
    watching.pool = LeasePool::observe;
    (void)answer(watching);
    (void)lease("a", 10);
    pass(650ms);
    (void)lease("a", 10);
    EXPECT_TRUE(run({"HGET", keys_.state, "observe:watching"}).is_nil());
    EXPECT_TRUE(run({"ZSCORE", keys_.expiries, "observe:watching"}).is_nil());
}

TEST_F(LeaseScript, ANumberThatDoesNotRiseIsADuplicate) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    (void)lease("a", 100);
    LeaseRequest clone = next("a", 100);
    clone.seq = seq_["a"] - 1;
    EXPECT_EQ(answer(clone).status, LeaseStatus::duplicate);
    clone.seq = 0;
    EXPECT_EQ(answer(clone).status, LeaseStatus::duplicate);
}

TEST_F(LeaseScript, LowRatesAreCountedTokens) {
    ASSERT_TRUE(budget(10).check());
    learn();
    LeaseGrant grant = lease("a", 100);
    EXPECT_TRUE(grant.tokens);
    double taken = grant.grant;
    for (int i = 0; i < 50; i++) {
        pass(200ms);
        grant = lease(i % 2 == 0 ? "b" : "a", 100);
        EXPECT_EQ(grant.grant, std::floor(grant.grant));
        taken += grant.grant;
    }
    // 10 s at 10/s, and what may be out in leases: half a second of it.
    EXPECT_GE(taken, 95);
    EXPECT_LE(taken, 105);
}

TEST_F(LeaseScript, UnspentTokensAreKeptAndNotGivenAgain) {
    ASSERT_TRUE(budget(10).check());
    learn();
    pass(5s);
    double held = 0, taken = 0;
    for (int i = 0; i < 20; i++) {
        pass(200ms);
        const LeaseGrant grant = lease("a", 100, held);
        held += grant.grant;
        EXPECT_EQ(grant.burst, held);
        taken += grant.grant;
    }
    EXPECT_LE(taken, 5) << "no more than a lease's time of the budget is ever out";
}

TEST_F(LeaseScript, TokensThatNeverArrivedComeBack) {
    ASSERT_TRUE(budget(10).check());
    learn();
    pass(2s);
    (void)lease("a", 0);
    pass(2s);
    const double lost = lose("a", 100);
    EXPECT_GE(lost, 4);
    const LeaseGrant again = lease("a", 100, 0);
    EXPECT_GE(again.grant, lost);
}

TEST_F(LeaseScript, ALeaseTurnsFromRateToTokensOnlyOnceTheRateIsGone) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double rate = lease("a", 5000).grant;
    ASSERT_TRUE(budget(10, 2).check());
    pass(20ms);
    const LeaseGrant ended = lease("a", 5000, rate);
    EXPECT_FALSE(ended.tokens);
    EXPECT_EQ(ended.grant, 0);
    EXPECT_TRUE(ended.awaited);
    pass(20ms);
    EXPECT_TRUE(lease("a", 5000, 0).tokens);
}

TEST_F(LeaseScript, RenewalsAreSpreadOutWhereRedisWouldBeBusy) {
    ASSERT_TRUE(budget(1e6).check());
    LeaseReply reply;
    for (int i = 0; i < 100; i++) {
        LeaseRequest request = next("host" + std::to_string(i), 100, 100);
        request.round_cost_us = 2000;
        reply = answer(request);
    }
    EXPECT_EQ(reply.hosts, 99U);
    EXPECT_EQ(reply.renew_in, 495ms) << "99 × 2 ms ÷ 0.4";
    EXPECT_NEAR(static_cast<double>(reply.length.count()), 2.5 * 495, 1);
}

TEST_F(LeaseScript, AnotherServerWithTheSameDataLearns) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double share = lease("a", 5000).grant;
    server_->stop();
    server_->start();
    connect();
    pass(100ms);
    const LeaseReply reply = answer(next("a", 5000, share));
    EXPECT_EQ(reply.status, LeaseStatus::learning);
    EXPECT_EQ(reply.grants[0].grant, share);
    EXPECT_EQ(reply.grants[0].budget, 1000) << "budgets are no leases";
    EXPECT_THAT(lease("b", 5000, 995).grant, DoubleNear(5, 0.1));
}

TEST_F(LeaseScript, AWipedServerLearns) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double share = lease("a", 5000).grant;
    (void)run({"FLUSHALL"});
    set_clock();
    EXPECT_TRUE(lease("a", 5000, share).unknown);
    ASSERT_TRUE(budget(1000).check());
    const LeaseReply reply = answer(next("a", 5000, share));
    EXPECT_EQ(reply.status, LeaseStatus::learning);
    EXPECT_EQ(reply.grants[0].grant, share);
}

TEST_F(LeaseScript, ATimeThatGoesBackLearns) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    (void)lease("a", 5000);
    time_ -= 90ms;
    set_clock();
    LeaseRequest request = next("a", 5000);
    request.since_acked_ms = 10;
    EXPECT_EQ(answer(request).status, LeaseStatus::ok) << "that little harms nobody";
    time_ -= 1h;
    set_clock();
    request = next("a", 5000, 995);
    request.since_acked_ms = 200;
    EXPECT_EQ(answer(request).status, LeaseStatus::learning);
}

TEST_F(LeaseScript, ATimeThatJumpsAheadEndsNoLeases) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double share = lease("a", 5000).grant;
    const double other = lease("b", 5000).grant;
    time_ += 3s;
    set_clock();
    LeaseRequest request = next("b", 5000, other);
    request.since_acked_ms = 200;
    const LeaseReply reply = answer(request);
    EXPECT_EQ(reply.status, LeaseStatus::learning);
    EXPECT_LE(reply.grants[0].grant + share, 1000);
}

TEST_F(LeaseScript, AHostThatSleptIsNoJumpOfTime) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    (void)lease("a", 100);
    (void)lease("b", 100);
    for (int i = 0; i < 10; i++) {
        pass(100ms);
        (void)lease("b", 100);
    }
    LeaseRequest request = next("a", 100);
    request.since_acked_ms = 10;
    EXPECT_EQ(answer(request).status, LeaseStatus::ok);
}

TEST_F(LeaseScript, AKeyOfAnotherTypeIsAnErrorAndStays) {
    (void)run({"SET", keys_.state, "somebody's"});
    EXPECT_EQ(send(next("a", 100)).error_word(), "WRONGTYPE");
    EXPECT_EQ(lab::text(run({"GET", keys_.state})), "somebody's");
    (void)run({"DEL", keys_.state});
    (void)run({"SET", keys_.expiries, "somebody's"});
    EXPECT_EQ(send(next("a", 100)).error_word(), "WRONGTYPE");
    EXPECT_EQ(lab::number(run({"EXISTS", keys_.state})), 0) << "nothing half written";
}

TEST_F(LeaseScript, StateThatMakesNoSenseIsLostState) {
    const std::string nan(8 * 6, '\xff');
    for (const char* field : {"clock", "names", "budgets", "next", "enforce", "enforce:a"})
        for (const std::string& garbage :
             {std::string("x"), std::string(80, '\0'), std::string("\xc1"), nan,
              std::string(100'000, 'A'), std::string("\x93\x01\x02\x03", 4)}) {
            (void)run({"DEL", keys_.state, keys_.expiries});
            ASSERT_TRUE(budget(1000).check());
            learn();
            (void)lease("a", 100);
            (void)lease("b", 100);
            (void)run({"HSET", keys_.state, field, garbage});
            pass(200ms);
            // Whatever it does, it answers, and never above what is claimed or the budget.
            const LeaseGrant grant = lease("a", 5000, 300);
            EXPECT_LE(grant.grant, 1000) << field;
            if (grant.unknown) {
                ASSERT_TRUE(budget(1000, 2).check());
            }
            for (int i = 0; i < 16; i++) {
                pass(1s);
                (void)lease("a", 5000, 300);
            }
            EXPECT_THAT(lease("a", 5000, 300).grant, DoubleNear(995, 0.1)) << field;
        }
}

TEST_F(LeaseScript, ARecordThatIsGoneIsLostState) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    const double share = lease("a", 5000).grant;
    (void)run({"HDEL", keys_.state, "enforce:a"});
    pass(200ms);
    (void)lease("a", 5000, share);
    pass(20ms);
    EXPECT_EQ(answer(next("a", 5000, share)).status, LeaseStatus::learning);
}

TEST_F(LeaseScript, NumbersThatMakeNoSenseAreNoDemand) {
    ASSERT_TRUE(budget(1000).check());
    learn();
    for (const double demand :
         {std::nan(""), -1.0, std::numeric_limits<double>::infinity(), 1e300, -1e300}) {
        const LeaseGrant grant = lease("a", demand, demand);
        EXPECT_GE(grant.grant, 0);
        EXPECT_LE(grant.grant, 1000);
    }
    pass(20ms);
    EXPECT_GT(lease("b", 100).grant, 100) << "and nothing is broken after them";
}

TEST_F(LeaseScript, RefusesCallsThatAreNone) {
    const auto call = [&](std::vector<std::string> words) {
        Command command = lease_->script().call({keys_.state, keys_.expiries});
        for (const std::string& word : words)
            command.add(word);
        return run(command);
    };
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {},
             {"enforce", "a", "run"},
             {"both", "a", "r", "1", "0", "0", "200", "0", "0", "0", ""},
             {"enforce", "a", "r", "nan", "0", "0", "200", "0", "0", "0", ""},
             {"enforce", "a", "r", "1", "0", "0", "1e99", "0", "0", "0", ""},
             {"enforce", "a", "r", "1", "0", "0", "200", "0", "0", "1e9", ""},
             {"enforce", "a", "r", "1", "0", "0", "200", "0", "0", "3", "abc"}})
        EXPECT_TRUE(call(words).is_error());
    EXPECT_EQ(lab::number(run({"EXISTS", keys_.state})), 0);
}

}  // namespace
}  // namespace sluice
