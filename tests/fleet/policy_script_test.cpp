// push.lua, point.lua, owe.lua and written.lua one call at a time on a real server, as the user of
// docs/redis-acl.conf: what is stored, what is refused.
#include <array>
#include <cstdio>
#include <thread>

#include "base/clocks.h"
#include "fleet/lease_message.h"
#include "fleet/policy_budgets.h"
#include "fleet/policy_message.h"
#include "fleet/policy_override.h"
#include "policy/parse.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::RedisServer;
using redis::Command;
using redis::Reply;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;
using Outcome = PolicyPointed::Outcome;

class PolicyScript : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>(
            std::vector<std::string>{"include " SLUICE_SOURCE_DIR "/docs/redis-acl.conf"});
        redis::Options options = patient(server_->url());
        options.username = "sluice";
        options.password_file = server_->folder().write("password", "replace-this");
        redis_.emplace(Redis::open(options).value());
    }
    Reply run(const Command& command) { return redis_->run(command).value(); }
    PolicyPushed push(std::string text, std::optional<uint64_t> base = {},
                      std::string canaries = "", uint64_t above = 0, uint64_t after_ms = 0) {
        const auto pushed =
            parse_policy_pushed(run(policy_push_command(keys_, {.text = std::move(text),
                                                                .base = base,
                                                                .above = above,
                                                                .after_ms = after_ms,
                                                                .canaries = std::move(canaries),
                                                                .actor = "alice",
                                                                .from = "192.0.2.7",
                                                                .note = "a test"})));
        EXPECT_TRUE(pushed) << pushed.error().message;
        return pushed ? *pushed : PolicyPushed{};
    }
    PolicyPointed point(uint64_t version) {
        const auto pointed = parse_policy_pointed(run(policy_point_command(
            keys_, {.version = version, .rev = pointers().rev, .actor = "bob", .from = ""})));
        EXPECT_TRUE(pointed) << pointed.error().message;
        return pointed ? *pointed : PolicyPointed{};
    }
    PolicyPointers pointers() {
        return parse_policy_pointers(run(policy_pointers_command(keys_))).value();
    }
    PolicyVersion about(uint64_t version) {
        return parse_policy_version(version, run(policy_version_command(keys_, version))).value();
    }
    Result<std::string> text(uint64_t version) {
        return parse_policy_text(about(version), run({"GET", keys_.text(version)}));
    }

    PolicyKeys keys_{"test"};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(PolicyScript, APushMakesTheNextVersionCurrent) {
    EXPECT_EQ(pointers().rev, 0U);
    const PolicyPushed first = push("one\n");
    EXPECT_EQ(first.version, 1U);
    EXPECT_EQ(first.before, 0U);
    const PolicyPushed second = push("two\n");
    EXPECT_EQ(second.version, 2U);
    EXPECT_EQ(second.before, 1U);
    EXPECT_GT(second.since_ms, first.since_ms);
    const PolicyPointers now = pointers();
    EXPECT_EQ(now.rev, 2U);
    EXPECT_EQ(now.last, 2U);
    EXPECT_EQ(now.current, 2U);
    EXPECT_EQ(now.since_ms, second.since_ms);
    EXPECT_EQ(now.by, "alice");
    EXPECT_EQ(now.from, "192.0.2.7");
    EXPECT_EQ(now.unwritten_ms, second.since_ms);
    EXPECT_EQ(text(1).value(), "one\n");
    EXPECT_EQ(about(2).before, 1U);
    EXPECT_EQ(about(2).note, "a test");
    EXPECT_EQ(about(2).bytes, 4U);
    const auto history = parse_policy_history(run({"HGETALL", keys_.base})).value();
    ASSERT_EQ(history.size(), 2U);
    EXPECT_EQ(history[0].version, 2U);
}

TEST_F(PolicyScript, APushOnTopOfSomethingElseIsRefusedAndNamesIt) {
    EXPECT_EQ(push("one", 0).version, 1U) << "after nothing";
    EXPECT_EQ(push("two", 1).version, 2U);
    const PolicyPushed late = push("three", 1);
    EXPECT_EQ(late.version, 0U);
    EXPECT_EQ(late.last, 2U);
    ASSERT_TRUE(late.theirs);
    EXPECT_EQ(late.theirs->by, "alice");
    EXPECT_EQ(late.theirs->from, "192.0.2.7");
    EXPECT_GT(late.theirs->pushed_ms, 1'600'000'000'000U);
    EXPECT_EQ(pointers().rev, 2U) << "nothing was changed";
}

TEST_F(PolicyScript, ACanaryIsForSomeUntilItIsPromotedOrEnds) {
    push("one");
    const PolicyPushed canary = push("two", {}, "10%");
    EXPECT_EQ(pointers().current, 1U);
    EXPECT_EQ(pointers().canary, 2U);
    EXPECT_EQ(pointers().canary_hosts, "10%");
    EXPECT_EQ(pointers().canary_since_ms, canary.since_ms);
    const uint64_t since = pointers().since_ms;
    EXPECT_EQ(point(0).outcome, Outcome::done);
    EXPECT_EQ(pointers().canary, 0U);
    EXPECT_EQ(pointers().since_ms, since) << "the others go on with what they have";

    push("three", {}, "edge1");
    const PolicyPointed promoted = point(3);
    EXPECT_EQ(promoted.before, 1U);
    EXPECT_EQ(pointers().current, 3U);
    EXPECT_EQ(pointers().canary, 0U);
    EXPECT_EQ(pointers().by, "bob");
    EXPECT_EQ(about(3).before, 1U);
}

TEST_F(PolicyScript, ACanaryNeedsSomethingToBeComparedWith) {
    EXPECT_THAT(
        std::string(
            run(policy_push_command(keys_, {.text = "one", .canaries = "10%"})).error_text()),
        HasSubstr("needs a current version"));
    EXPECT_EQ(pointers().rev, 0U);
}

TEST_F(PolicyScript, OneRollbackAfterTheOtherLeadsBackInTime) {
    for (const char* version : {"one", "two", "three"})
        push(version);
    EXPECT_EQ(about(3).before, 2U);
    EXPECT_EQ(point(2).outcome, Outcome::done);
    EXPECT_EQ(about(2).before, 1U) << "not the version that was just left";
    EXPECT_EQ(point(1).outcome, Outcome::done);
    EXPECT_EQ(pointers().current, 1U);
    EXPECT_EQ(about(1).before, 0U);
    EXPECT_EQ(push("four").version, 4U) << "a number is never given twice";
}

TEST_F(PolicyScript, APointerThatMovedMeanwhileIsNotMovedAgain) {
    push("one");
    push("two");
    const auto late = parse_policy_pointed(
        run(policy_point_command(keys_, {.version = 1, .rev = 1, .actor = "bob", .from = ""})));
    EXPECT_EQ(late.value().outcome, Outcome::moved);
    EXPECT_EQ(point(9).outcome, Outcome::missing);
    EXPECT_EQ(pointers().current, 2U);
}

TEST_F(PolicyScript, OldVersionsGoButNotTheCurrentOne) {
    push("the first");
    push("the second");
    EXPECT_EQ(point(1).outcome, Outcome::done);
    for (int i = 0; i < 70; ++i)
        push("another", {}, "10%");
    EXPECT_EQ(text(1).value(), "the first");
    const auto history = parse_policy_history(run({"HGETALL", keys_.base})).value();
    EXPECT_EQ(history.size(), 65U) << "64, and the current one";
    EXPECT_TRUE(run({"GET", keys_.text(2)}).is_nil());
}

TEST_F(PolicyScript, AVersionThatStayedBecauseItWasCurrentGoesOnceItIsNot) {
    push("the first");
    for (int i = 0; i < 70; ++i)
        push("another", {}, "10%");
    EXPECT_TRUE(text(1));
    EXPECT_EQ(point(71).outcome, Outcome::done);
    push("the next");
    EXPECT_TRUE(run({"GET", keys_.text(1)}).is_nil());
    EXPECT_EQ(parse_policy_history(run({"HGETALL", keys_.base})).value().size(), 64U);
    push("with a number far above", {}, "", 1'000);
    EXPECT_EQ(parse_policy_history(run({"HGETALL", keys_.base})).value().size(), 1U)
        << "and those that were passed over";
    EXPECT_TRUE(run({"GET", keys_.text(71)}).is_nil());
}

TEST_F(PolicyScript, AfterAWipeNumbersAndStampsGoOnAboveWhatHostsKnow) {
    constexpr uint64_t kFuture = 4'000'000'000'000;
    ASSERT_EQ(push("one", {}, "", 41, kFuture).version, 42U);
    EXPECT_EQ(pointers().since_ms, kFuture + 1);
    EXPECT_EQ(push("two", {}, "", 7, 7).version, 43U);
    EXPECT_EQ(pointers().since_ms, kFuture + 2) << "each later than the one before";
    EXPECT_EQ(pointers().stamp_ms, kFuture + 2);
}

TEST_F(PolicyScript, ATextThatIsNotTheOneThatWasPushedIsRefused) {
    push("one");
    EXPECT_TRUE(text(1));
    ASSERT_TRUE(server_->ask({"SET", keys_.text(1), "two"}).check());
    EXPECT_THAT(text(1).error().message, HasSubstr("not the one that was pushed"));
    ASSERT_TRUE(server_->ask({"DEL", keys_.text(1)}).check());
    EXPECT_THAT(text(1).error().message, HasSubstr("lost its text"));
    EXPECT_EQ(point(1).outcome, Outcome::missing);
}

TEST_F(PolicyScript, WhatMakesNoSenseIsRefused) {
    EXPECT_THAT(
        std::string(
            run(policy_push_command(keys_, {.text = std::string(1'100'000, 'x')})).error_text()),
        HasSubstr("ERR push"));
    EXPECT_THAT(
        std::string(run(policy_push_command(keys_, {.text = "x", .note = "a\tb"})).error_text()),
        HasSubstr("ERR push"));
    EXPECT_EQ(pointers().rev, 0U);
    ASSERT_TRUE(server_->ask({"SET", keys_.base, "mine"}).check());
    EXPECT_FALSE(parse_policy_pointers(run(policy_pointers_command(keys_))));
    EXPECT_THAT(std::string(run(policy_push_command(keys_, {.text = "x"})).error_text()),
                HasSubstr("WRONGTYPE"));
}

// --- other numbers for a time --------------------------------------------------------------------

class Overrides : public PolicyScript {
  protected:
    static PolicyOverride of(const std::string& service, const std::string& value) {
        return {.change = {service, {parse_change_value(value).value()}},
                .until_ms = 0,
                .actor = "alice",
                .reason = "the sale",
                .by_fleet = true};
    }
    Result<PolicyOverridden> say(const PolicyOverride& entry, std::chrono::milliseconds lasts) {
        return parse_policy_overridden(run(policy_override_command(keys_, entry, lasts)));
    }
    std::vector<PolicyOverride> all() {
        return parse_policy_overrides(run({"HGETALL", keys_.base})).value();
    }
};

TEST_F(Overrides, AreThereUntilTheirTimeIsOver) {
    EXPECT_EQ(say(of("web", "budget.data=5/s"), 1h).error().code, ErrorCode::not_found)
        << "there is no policy to be overridden";
    push("one");
    const uint64_t rev = pointers().rev;
    const auto said = say(of("web", "budget.data=5/s"), 1h);
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_NEAR(static_cast<double>(said->until_ms), static_cast<double>(said->stamp_ms) + 3.6e6, 5)
        << "by one clock";
    EXPECT_EQ(pointers().rev, rev + 1) << "hosts notice";
    PolicyOverride expected = of("web", "budget.data=5/s");
    expected.until_ms = said->until_ms;
    ASSERT_EQ(all().size(), 1U);
    EXPECT_EQ(all()[0], expected);

    ASSERT_TRUE(say(of("web", "budget.data=6/s"), 50ms));
    EXPECT_EQ(all()[0].change.values[0].second, "6/s") << "of one service the last";
    std::this_thread::sleep_for(100ms);
    ASSERT_TRUE(say(of("dns", "per_source.data=1/s"), 1h));
    ASSERT_EQ(all().size(), 1U) << "what is over is cleared away";
    EXPECT_EQ(all()[0].change.service, "dns");
    ASSERT_TRUE(say(of("dns", "per_source.data=1/s"), 0ms));
    EXPECT_TRUE(all().empty());
    EXPECT_EQ(say(of("dns", "per_source.data=1/s"), 0ms).error().code, ErrorCode::not_found);
}

TEST_F(Overrides, HaveABound) {
    push("one");
    for (int i = 0; i < 64; ++i)
        ASSERT_TRUE(say(of("s" + std::to_string(i), "budget.data=5/s"), 1h));
    EXPECT_THAT(say(of("one-more", "budget.data=5/s"), 1h).error().message,
                HasSubstr("as many overrides"));
    EXPECT_TRUE(say(of("s7", "budget.data=6/s"), 1h)) << "those that are there can change";
    EXPECT_FALSE(say(of("s7", "budget.data=6/s"), 24h * 8)) << "for longer it is a policy";
    EXPECT_EQ(all().size(), 64U);
}

// --- shared budgets ------------------------------------------------------------------------------

class SharedBudgets : public PolicyScript {
  protected:
    static Policy of(const std::string& rate) {
        return parse_policy(
                   "[redis]\nurl = 'redis://a'\n[fleet]\nmax_hosts = 2\n[[service]]\n"
                   "name = 'web'\nmatch = ['tcp/443']\n[service.budget]\ndata = '" +
                       rate + "'\n",
                   "x")
            .value();
    }
    // As the script of the leases has it.
    double in_redis() {
        LeaseRequest request{.host = std::string(32, 'a'),
                             .seq = ++seq_,
                             .demands = {{.budget = "web.data", .per_second = 1}}};
        const Reply reply =
            run(lease_command(lease_script(), LeaseKeys("test", lease_shard("web")), request));
        const auto text = reply.as_text();
        EXPECT_TRUE(text) << text.error().message;
        return text ? parse_lease_reply(*text, request).value().grants[0].budget : -1;
    }
    static std::string text_of(const std::string& rate) {
        return "[[service]]\nname = 'web'\nmatch = ['tcp/443']\n[service.budget]\ndata = '" + rate +
               "'\n";
    }
    // The later version that is there already; nothing where it was written.
    std::optional<uint64_t> write(const std::string& rate, uint64_t version) {
        return write_budgets(*redis_, "test", text_of(rate), {}, version, wall_clock_ms())
            .value()
            .later;
    }
    // As a host does whose policy is its own file's.
    Reply write_own(const std::string& rate, uint64_t applied_ms) {
        return run(budget_command(budget_script(), LeaseKeys("test", lease_shard("web")),
                                  applied_ms, 0ms, fleet_budgets(of(rate))));
    }

    uint64_t seq_ = 0;
};

TEST_F(SharedBudgets, AreThoseOfTheLastChangeWhateverHostsWrite) {
    constexpr uint64_t kNow = 1'800'000'000'000, kClockAhead = kNow + 3'600'000;
    ASSERT_TRUE(write_own("100/s", kClockAhead).check());
    EXPECT_EQ(in_redis(), 100);
    EXPECT_FALSE(write("200/s", budgets_version(kNow)));
    EXPECT_EQ(in_redis(), 200);
    const Reply older = write_own("300/s", kClockAhead + 1);
    EXPECT_TRUE(later_version(older).value()) << "a host's own file, applied later";
    EXPECT_EQ(in_redis(), 200);
    EXPECT_EQ(write("50/s", budgets_version(kNow - 1000)), budgets_version(kNow));
    EXPECT_EQ(in_redis(), 200) << "an older change takes nothing from a later one";
}

// Of two operators the slower one writes what he has read before the other one pushed.
TEST_F(SharedBudgets, AreNotTakenBackByWhoIsSlower) {
    push(text_of("100/s"));
    const uint64_t slow = pointers().unwritten_ms;
    push(text_of("200/s"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 200);
    EXPECT_TRUE(write("100/s", budgets_version(slow)));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 200);
}

TEST_F(SharedBudgets, AreThoseOfTheLastChangeHoweverManyAreMadeAtOnce) {
    constexpr int kEach = 30;
    push(text_of("1/s"));
    const auto operate = [&](int first) {
        Redis redis = Redis::open(patient("unix://" + server_->socket())).value();
        for (int i = first; i < first + kEach; ++i) {
            const auto done = redis.run(policy_push_command(
                keys_, {.text = text_of(std::to_string(i) + "/s"), .actor = "alice"}));
            ASSERT_TRUE(done && done->check());
            // Who is overtaken each time leaves it to the others.
            (void)write_owed_budgets(redis, "test");
        }
    };
    std::thread other([&] { operate(2'000); });
    operate(1'000);
    other.join();
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    const std::string current = text(pointers().current).value();
    EXPECT_EQ(text_of(std::to_string(static_cast<int>(in_redis())) + "/s"), current);
    EXPECT_EQ(pointers().unwritten_ms, 0U);
}

TEST_F(SharedBudgets, AreWrittenOverThoseOfAPolicyThatRedisHasLost) {
    push(text_of("100/s"), {}, "", 0, 4'000'000'000'000);
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    ASSERT_TRUE(server_->ask({"DEL", keys_.base}).check());
    push(text_of("200/s"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 200);
    EXPECT_EQ(pointers().unwritten_ms, 0U);
    push(text_of("300/s"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 300);
}

TEST_F(SharedBudgets, OfAnOverrideThatDoesNotFitAreThePolicys) {
    push(text_of("100/s"));
    const PolicyOverride entry{.change = {"web", {{"budget.data", "lots"}}},
                               .until_ms = 0,
                               .actor = "alice",
                               .reason = "",
                               .by_fleet = true};
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 1h))));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 100);
}

TEST_F(SharedBudgets, ThatALaterVersionWritesFindRoomWhereThoseOfTheLastOneWaited) {
    constexpr auto kSoon = std::chrono::milliseconds(4'000'000'000'000);
    const LeaseKeys shard("test", lease_shard("web"));
    const auto wait = [&](uint64_t version, int number) {
        return run(budget_command(budget_script(), shard, version, kSoon + number * 1ms,
                                  fleet_budgets(of("1/s"))));
    };
    for (int i = 0; i < 64; ++i)
        ASSERT_TRUE(later_version(wait(5, i)));
    EXPECT_THAT(later_version(wait(5, 64)).error().message, HasSubstr("no room"));
    EXPECT_TRUE(later_version(wait(6, 0))) << "the schedule of the version before has gone";
}

TEST_F(SharedBudgets, OfAnOverrideEndByRedissClock) {
    const std::string text = text_of("100/s");
    const auto pushed = push(text);
    const PolicyOverride entry{.change = {"web", {{"budget.data", "40/s"}}},
                               .until_ms = pushed.since_ms + 1500,
                               .actor = "alice",
                               .reason = "",
                               .by_fleet = true};
    ASSERT_TRUE(write_budgets(*redis_, "test", text, {entry}, budgets_version(pushed.since_ms),
                              pushed.since_ms));
    EXPECT_EQ(in_redis(), 40);
    EXPECT_TRUE(lab::eventually([&] { return in_redis() == 100; }, 10s)) << "nobody else ends it";
    ASSERT_TRUE(write_budgets(*redis_, "test", text, {entry}, budgets_version(pushed.since_ms),
                              pushed.since_ms));
    EXPECT_EQ(in_redis(), 100) << "one that is over already";
}

// In UTC, so many seconds from now.
std::string time_of_day(int after_s) {
    const auto now = std::chrono::system_clock::now() + std::chrono::seconds(after_s);
    const auto since_midnight = now - std::chrono::floor<std::chrono::days>(now);
    const std::chrono::hh_mm_ss parts(std::chrono::floor<std::chrono::seconds>(since_midnight));
    std::array<char, 16> text{};
    (void)std::snprintf(
        text.data(), text.size(), "%02d:%02d:%02d", static_cast<int>(parts.hours().count()),
        static_cast<int>(parts.minutes().count()), static_cast<int>(parts.seconds().count()));
    return text.data();
}

std::string with_schedule(const std::string& text, int from_s, int to_s, const std::string& days) {
    return text + "[[service.schedule]]\nname = 'sale'\ndays = [" + days + "]\nfrom = '" +
           time_of_day(from_s) + "'\nto = '" + time_of_day(to_s) +
           "'\nbudget = { data = '500/s' }\n";
}

constexpr const char* kEveryDay = "'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'";

TEST_F(SharedBudgets, FollowSchedulesByRedissClock) {
    push(with_schedule(text_of("100/s"), 3, 6, kEveryDay));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 100);
    EXPECT_TRUE(lab::eventually([&] { return in_redis() == 500; }, 10s)) << "nobody else does it";
    EXPECT_TRUE(lab::eventually([&] { return in_redis() == 100; }, 10s));
}

TEST_F(SharedBudgets, AreThoseOfAScheduleThatIsDueAlreadyAndOfAnOverrideOverIt) {
    push(with_schedule(text_of("100/s"), -60, 60, kEveryDay));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 500);
    const PolicyOverride entry{.change = {"web", {{"budget.data", "40/s"}}},
                               .until_ms = 0,
                               .actor = "alice",
                               .reason = "",
                               .by_fleet = true};
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 3s))));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 40);
    EXPECT_TRUE(lab::eventually([&] { return in_redis() == 500; }, 10s)) << "which is not over yet";
}

TEST_F(SharedBudgets, AreWrittenAgainBeforeAChangeThatIsTooFarAhead) {
    const auto hours_ahead = [&] {
        return (static_cast<double>(pointers().again_ms) - static_cast<double>(wall_clock_ms())) /
               3'600'000;
    };
    push(with_schedule(text_of("100/s"), 7200, 14400, kEveryDay));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_NEAR(hours_ahead(), 13, 0.1) << "half of the time to the same of tomorrow";
    push(with_schedule(text_of("100/s"), 7200, 14400, "'2099-01-01'"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_GT(hours_ahead(), 24 * 365);
    push(text_of("100/s"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(pointers().again_ms, 0U) << "without schedules nobody need come back";
}

TEST_F(SharedBudgets, AreOwedUntilTheyAreWritten) {
    push("one");
    const uint64_t first = pointers().unwritten_ms;
    push("two");
    EXPECT_EQ(lab::number(run(policy_written_command(keys_, first))), 0)
        << "another change came meanwhile";
    EXPECT_NE(pointers().unwritten_ms, 0U);
    EXPECT_EQ(lab::number(run(policy_written_command(keys_, pointers().unwritten_ms))), 1);
    EXPECT_EQ(pointers().unwritten_ms, 0U);
}

TEST_F(SharedBudgets, OfAnOverrideAreOwedAndThoseOfAnEarlierChangeWithThem) {
    push(text_of("100/s"));
    const uint64_t first = pointers().unwritten_ms;
    const PolicyOverride entry{.change = {"web", {{"budget.data", "40/s"}}},
                               .until_ms = 0,
                               .actor = "alice",
                               .reason = "",
                               .by_fleet = true};
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 1h))));
    EXPECT_GT(pointers().unwritten_ms, first);
    EXPECT_EQ(lab::number(run(policy_written_command(keys_, first))), 0) << "there is more to do";
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 40);
    EXPECT_EQ(pointers().unwritten_ms, 0U);
    ASSERT_TRUE(parse_policy_overridden(run(policy_override_command(keys_, entry, 0ms))));
    EXPECT_NE(pointers().unwritten_ms, 0U) << "its end, too";
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    EXPECT_EQ(in_redis(), 100);
}

TEST_F(SharedBudgets, AreOwedAgainWhereAHostFindsThemMissing) {
    const auto owe = [&](uint64_t found_ms) {
        return parse_policy_owed(run(policy_owe_command(keys_, found_ms))).value();
    };
    EXPECT_EQ(owe(0), PolicyOwed::missing) << "nobody ever pushed anything";
    push(text_of("100/s"));
    ASSERT_TRUE(write_owed_budgets(*redis_, "test"));
    const uint64_t rev = pointers().rev, stamp = pointers().stamp_ms;
    EXPECT_EQ(owe(stamp), PolicyOwed::known) << "of a change that Redis knows";
    EXPECT_EQ(pointers().unwritten_ms, 0U);
    EXPECT_EQ(owe(0), PolicyOwed::owed);
    const uint64_t owed = pointers().unwritten_ms;
    EXPECT_GT(owed, stamp);
    EXPECT_EQ(owe(0), PolicyOwed::owed);
    EXPECT_EQ(pointers().unwritten_ms, owed) << "once is enough";
    EXPECT_EQ(pointers().rev, rev) << "the policy is the same";
}

}  // namespace
}  // namespace sluice
