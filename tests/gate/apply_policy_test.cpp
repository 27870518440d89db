// A policy is put in force as a whole, also where its writer is killed.
#include "operate/apply_policy.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "gate/policy_store.h"
#include "gate/source_rules.h"
#include "gate/switches.h"
#include "operate/gate_access.h"
#include "policy/parse.h"
#include "test_gate.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// With so many allows it takes its time to put them in force.
constexpr int kAllows = 16'000;

ConfigFile allowing(const std::string& network, int allows) {
    std::string prefixes;
    for (int i = 0; i < allows; ++i)
        prefixes +=
            '"' + network + '.' + std::to_string(i / 256) + '.' + std::to_string(i % 256) + "\", ";
    std::string text = "[sources]\nallow = [" + prefixes + "]\n";
    auto policy = parse_policy(text, network);
    return {policy.value(), std::move(text), network};
}

class ApplyPolicyTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (!IsSkipped())
            make_tables(small_sizes());
    }

    void apply(const ConfigFile& config, std::optional<std::chrono::nanoseconds> confirm = {}) {
        const auto version = apply_policy(*tables_, config, confirm, who_);
        ASSERT_TRUE(version) << version.error().message;
    }
    // Killed `delay` after its allows began to change.
    void apply_and_die(const ConfigFile& config, std::optional<std::chrono::nanoseconds> confirm,
                       std::chrono::microseconds delay) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            (void)apply_policy(*tables_, config, confirm, who_);
            ::_exit(0);
        }
        int status = 0;
        while (__atomic_load_n(&tables_->settings().lists_ahead, __ATOMIC_RELAXED) == 0)
            if (::waitpid(child, &status, WNOHANG) == child)
                return;
        std::this_thread::sleep_for(delay);
        ::kill(child, SIGKILL);
        ASSERT_EQ(::waitpid(child, &status, 0), child);
    }
    void expect_whole() {
        const auto policy = current_policy(*tables_).value();
        const auto listed = SourceRules(*tables_).list(RuleKind::allow).value();
        ASSERT_EQ(listed.total, policy.policy.sources.allow.size());
        EXPECT_EQ(listed.rules.front().prefix, policy.policy.sources.allow.front().prefix);
    }

    const Operator who_{"tester", {}};
};

TEST_F(ApplyPolicyTest, TheNextChangeMendsWhatAKilledWriterLeft) {
    const ConfigFile one = allowing("10.1", kAllows), two = allowing("10.2", kAllows / 2);
    apply(one);
    expect_whole();
    int cut_off = 0;
    for (int kill = 0; kill < 24; ++kill) {
        const bool is_one = current_policy(*tables_).value().source == one.source;
        apply_and_die(is_one ? two : one, {}, kill * 2ms);
        cut_off += tables_->settings().lists_ahead != 0 ? 1 : 0;
        ASSERT_TRUE(open_gate_to_write(pin_dir_, 1s));
        EXPECT_EQ(tables_->settings().lists_ahead, 0U);
        expect_whole();
    }
    EXPECT_GT(cut_off, 0);
}

// One that drops nothing because it only observes, and one because its limit is high.
ConfigFile harmless(bool observes) {
    std::string text = observes ? "mode = \"observe\"\n" : "mode = \"enforce\"\n";
    for (int i = 0; i < 3; ++i)
        text += "[[service]]\nname = \"s" + std::to_string(i) + "\"\nmatch = [\"udp/" +
                std::to_string(1000 + i) + "\"]\nmode = \"" + (observes ? "observe" : "enforce") +
                "\"\n[service.per_source]\ndata = \"" + (observes ? "1/s" : "900000/s") + "\"\n";
    const std::string name = observes ? "observes" : "high";
    auto policy = parse_policy(text, name);
    return {policy.value(), std::move(text), name};
}

TEST_F(ApplyPolicyTest, ModesBelongToThePolicyInForceWhereItsWriterWasKilled) {
    const ConfigFile observes = harmless(true), high = harmless(false);
    apply(observes);
    const auto expect_modes = [&](const std::string& source) {
        const Mode mode = source == observes.source ? Mode::observe : Mode::enforce;
        EXPECT_EQ(mode_of(*tables_, WholeGate{}).value(), mode) << source;
        EXPECT_EQ(mode_of(*tables_, OneService{"s1"}).value(), mode) << source;
    };
    for (int kill = 0; kill < 60; ++kill) {
        const bool observing = current_policy(*tables_).value().source == observes.source;
        apply_and_die(observing ? high : observes, {}, std::chrono::microseconds(kill * 100));
        // Meanwhile at the most lenient.
        const bool strict = mode_of(*tables_, WholeGate{}).value() == Mode::enforce ||
                            mode_of(*tables_, OneService{"s1"}).value() == Mode::enforce;
        EXPECT_FALSE(strict && current_policy(*tables_).value().source == observes.source);
        ASSERT_TRUE(open_gate_to_write(pin_dir_, 1s));
        expect_modes(current_policy(*tables_).value().source);
    }
}

// What such a policy allows ends by itself, unless somebody makes it stay in the meantime.
TEST_F(ApplyPolicyTest, AllowsOfAPolicyThatWasToBeConfirmedDoNotStay) {
    const ConfigFile one = allowing("10.1", kAllows / 2), two = allowing("10.2", kAllows / 2);
    apply(one);
    for (int kill = 0; kill < 8; ++kill) {
        apply_and_die(two, 1s, kill * 5ms);
        ASSERT_TRUE(open_gate_to_write(pin_dir_, 1s));
        std::this_thread::sleep_for(1100ms);
        ASSERT_TRUE(settle_policy(*tables_));
        ASSERT_EQ(current_policy(*tables_).value().source, one.source);
        expect_whole();
    }
}

}  // namespace

}  // namespace sluice
