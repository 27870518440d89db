// Modes set for good, for a time, until confirmed; and what comes back by itself.
#include "gate/switches.h"

#include <gtest/gtest.h>

#include <cstring>

#include "gate/policy_store.h"
#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/switch_word.h"
#include "policy/parse.h"
#include "test_gate.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view kPolicy = R"(
mode = "enforce"
[[service]]
name = "login"
match = ["tcp/443"]
[service.per_source]
connections = { limit = 10, window = "60s" }
data = "60/s"
)";

class SwitchesTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (IsSkipped())
            return;
        make_tables(small_sizes());
        tables_->settings().test_now_ns = 1'000'000'000'000;
        const auto policy = parse_policy(kPolicy, "test.toml");
        ASSERT_TRUE(policy);
        ASSERT_TRUE(install_policy(*tables_, *policy, kPolicy, "test.toml"));
    }

    void advance(nanoseconds span) {
        tables_->settings().test_now_ns += static_cast<uint64_t>(span.count());
    }
    [[nodiscard]] Mode now(const SwitchTarget& target) const {
        const auto mode = mode_of(*tables_, target);
        EXPECT_TRUE(mode);
        return mode ? *mode : Mode::off;
    }
    void set(const SwitchTarget& target, Mode mode, const SwitchTiming& timing = {}) {
        const auto before = set_mode(*tables_, target, mode, timing);
        EXPECT_TRUE(before) << before.error().message;
    }
};

const SwitchTarget kGate = WholeGate{};
const SwitchTarget kService = OneService{"login"};
const SwitchTarget kRule = RuleId{"login", {Scope::per_source, Dimension::data}};

TEST_F(SwitchesTest, SetAndClear) {
    for (const SwitchTarget& target : {kGate, kService, kRule}) {
        const auto before = set_mode(*tables_, target, Mode::off);
        ASSERT_TRUE(before);
        EXPECT_EQ(*before, Mode::enforce);
        EXPECT_EQ(now(target), Mode::off);
        const auto entries = list_switches(*tables_);
        ASSERT_EQ(entries.size(), 1U);
        EXPECT_EQ(entries[0].id, format_switch_target(target));
        EXPECT_EQ(entries[0].now, "off");
        EXPECT_FALSE(entries[0].left);
        EXPECT_EQ(*clear_mode(*tables_, target), Mode::off);
        EXPECT_EQ(now(target), Mode::enforce);
        EXPECT_TRUE(list_switches(*tables_).empty());
    }
}

TEST_F(SwitchesTest, MostLenientWins) {
    set(kService, Mode::observe);
    EXPECT_EQ(*effective_mode(*tables_, kRule), Mode::observe);
    EXPECT_EQ(*effective_mode(*tables_, kGate), Mode::enforce);
    set(kRule, Mode::off);
    EXPECT_EQ(*effective_mode(*tables_, kRule), Mode::off);
    EXPECT_EQ(*effective_mode(*tables_, kService), Mode::observe);
    set(kGate, Mode::off);
    EXPECT_EQ(*effective_mode(*tables_, kService), Mode::off);
}

TEST_F(SwitchesTest, EndsByItself) {
    set(kGate, Mode::off, {.lasts = 10min, .confirm = {}});
    EXPECT_EQ(list_switches(*tables_).at(0).after, "enforce");
    advance(10min - 1s);
    EXPECT_EQ(now(kGate), Mode::off);
    advance(2s);
    EXPECT_EQ(now(kGate), Mode::enforce);
    EXPECT_TRUE(list_switches(*tables_).empty());
}

// What came back at the end would be the policy's word, and may drop what an operator let pass.
TEST_F(SwitchesTest, AnEndIsNotLostToAnother) {
    const auto refused = [&](const SwitchTarget& target, Mode mode, const SwitchTiming& timing) {
        const auto set = set_mode(*tables_, target, mode, timing);
        return set ? std::string() : set.error().message;
    };
    set(kService, Mode::observe, {.lasts = 1h, .confirm = {}});
    EXPECT_NE(refused(kService, Mode::off, {.lasts = {}, .confirm = 2s}).find("for a time"),
              std::string::npos);
    EXPECT_NE(refused(kService, Mode::enforce, {.lasts = 10min, .confirm = {}}), "");
    EXPECT_NE(refused(kService, Mode::observe, {.lasts = {}, .confirm = 10s}), "");
    EXPECT_EQ(now(kService), Mode::observe);
    // The same for another time, or another for good, is what was meant.
    set(kService, Mode::observe, {.lasts = 2h, .confirm = {}});
    advance(90min);
    EXPECT_EQ(now(kService), Mode::observe);
    set(kService, Mode::off);
    set(kService, Mode::observe, {.lasts = 10min, .confirm = {}});
    advance(11min);
    EXPECT_EQ(now(kService), Mode::off) << "still an operator's word";

    set(kRule, Mode::off, {.lasts = {}, .confirm = 60s});
    EXPECT_NE(refused(kRule, Mode::observe, {.lasts = {}, .confirm = 60s}).find("confirmation"),
              std::string::npos);
    set(kRule, Mode::off, {.lasts = {}, .confirm = 30s});
    ASSERT_TRUE(confirm_switches(*tables_, "login.per_source.data"));
}

TEST_F(SwitchesTest, UnconfirmedChangeIsTakenBack) {
    set(kRule, Mode::off, {.lasts = {}, .confirm = 60s});
    EXPECT_TRUE(list_switches(*tables_).at(0).waits_for_confirmation);
    advance(61s);
    EXPECT_EQ(now(kRule), Mode::enforce);
    const auto late = confirm_switches(*tables_, "login.per_source.data");
    ASSERT_FALSE(late);
    EXPECT_NE(late.error().message.find("too late"), std::string::npos);
}

TEST_F(SwitchesTest, ConfirmedChangeStaysOrEndsWhenItWasMeantTo) {
    set(kRule, Mode::off, {.lasts = {}, .confirm = 60s});
    set(kGate, Mode::observe, {.lasts = 10min, .confirm = 60s});
    advance(30s);
    const auto confirmed = confirm_switches(*tables_, "all");
    ASSERT_TRUE(confirmed);
    EXPECT_EQ(*confirmed, (std::vector<std::string>{"gate", "login.per_source.data"}));
    advance(9min);
    EXPECT_EQ(now(kRule), Mode::off);
    EXPECT_EQ(now(kGate), Mode::observe);
    advance(1min);
    EXPECT_EQ(now(kGate), Mode::enforce);
    EXPECT_EQ(now(kRule), Mode::off);
    EXPECT_FALSE(confirm_switches(*tables_, "all"));
}

TEST_F(SwitchesTest, AttachmentsAreConfirmedByName) {
    const uint64_t deadline = sluice_deadline_from_ns(gate_now_ns(*tables_) + 60'000'000'000);
    tables_->settings().attached[1] =
        sluice_switch_make(1, 0, 1, SLUICE_ORIGIN_OPERATOR, 1, deadline);
    std::strcpy(tables_->interfaces[1].name, "eth1");
    EXPECT_TRUE(list_switches(*tables_).empty()) << "of a slot that nobody holds";
    tables_->interfaces[1].attachment = SLUICE_ATTACHED_LINK;
    const auto entries = list_switches(*tables_);
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].id, "attach:eth1");
    EXPECT_EQ(entries[0].after, "passes everything");
    ASSERT_TRUE(confirm_switches(*tables_, "attach:eth1"));
    advance(1h);
    EXPECT_EQ(sluice_switch_value(tables_->settings().attached[1], gate_now_ns(*tables_)), 1U);
}

TEST_F(SwitchesTest, UnknownTargetsAndBadTimes) {
    const auto service = set_mode(*tables_, OneService{"logn"}, Mode::off);
    ASSERT_FALSE(service);
    EXPECT_EQ(service.error().code, ErrorCode::not_found);
    EXPECT_NE(service.error().hint.find("login"), std::string::npos);
    const auto rule =
        set_mode(*tables_, RuleId{"login", {Scope::budget, Dimension::data}}, Mode::off);
    ASSERT_FALSE(rule);
    EXPECT_NE(rule.error().hint.find("login.per_source.connections"), std::string::npos);
    EXPECT_FALSE(set_mode(*tables_, kGate, Mode::off, {.lasts = 0s, .confirm = {}}));
    EXPECT_FALSE(set_mode(*tables_, kGate, Mode::off, {.lasts = 30s, .confirm = 60s}));
    EXPECT_TRUE(list_switches(*tables_).empty());
}

TEST(SwitchTarget, Texts) {
    EXPECT_EQ(*parse_switch_target("gate"), kGate);
    EXPECT_EQ(*parse_switch_target("login"), kService);
    EXPECT_EQ(*parse_switch_target("login.per_source.data"), kRule);
    EXPECT_FALSE(parse_switch_target("Login"));
    EXPECT_FALSE(parse_switch_target("login.per_source"));
}

TEST(SwitchWord, SurvivesTheTripThroughOneNumber) {
    SwitchWord s;
    s.now = SLUICE_MODE_OBSERVE;
    s.after = SLUICE_MODE_ENFORCE;
    s.policy = SLUICE_MODE_ENFORCE;
    s.origin = SLUICE_ORIGIN_OPERATOR;
    s.waits = true;
    s.after_is_override = true;
    s.deadline = 0x0abcdef0123;
    EXPECT_EQ(SwitchWord::from(s.word()).word(), s.word());
    EXPECT_EQ(sluice_switch_value(s.word(), 0), SLUICE_MODE_OBSERVE);
    EXPECT_EQ(sluice_switch_value(s.word(), ~0ULL), SLUICE_MODE_ENFORCE);
}

}  // namespace
}  // namespace sluice
