// Policies in the gate's tables: halves, ids, switches, and what comes back without confirmation.
#include "gate/policy_store.h"

#include <bpf/bpf.h>
#include <gtest/gtest.h>

#include <string>

#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/switches.h"
#include "policy/parse.h"
#include "test_gate.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::string_view kLogin = R"(
[[service]]
name = "login"
match = ["tcp/443", "203.0.113.10:tcp/8443"]
[service.per_source]
data = { rate = "60/s", burst = 120 }
)";
constexpr std::string_view kDns = R"(
[[service]]
name = "dns"
match = ["udp/53"]
[service.budget]
data = "20000/s"
)";

class PolicyStoreTest : public GateTest {
  protected:
    void SetUp() override {
        GateTest::SetUp();
        if (IsSkipped())
            return;
        make_tables(small_sizes());
        tables_->settings().test_now_ns = 1'000'000'000'000;
    }

    Result<uint64_t> install(const std::string& text,
                             std::optional<nanoseconds> confirm = std::nullopt) {
        const auto policy = parse_policy(text, "test.toml");
        if (!policy)
            return policy.error();
        return install_policy(*tables_, *policy, text, "test.toml", {confirm});
    }
    uint64_t installed(const std::string& text, std::optional<nanoseconds> confirm = std::nullopt) {
        const auto version = install(text, confirm);
        EXPECT_TRUE(version) << (version ? "" : version.error().message);
        return version ? *version : 0;
    }

    void advance(nanoseconds span) {
        tables_->settings().test_now_ns += static_cast<uint64_t>(span.count());
    }
    [[nodiscard]] uint32_t id(std::string_view name) const {
        return find_service_id(*tables_, name).value_or(~0U);
    }
    [[nodiscard]] uint32_t value(const __u64& word) const {
        return sluice_switch_value(word, gate_now_ns(*tables_));
    }
    [[nodiscard]] size_t destinations_of(uint32_t half) const {
        size_t count = 0;
        sluice_destination_key key{};
        const void* previous = nullptr;
        while (bpf_map_get_next_key(tables_->destinations.get(), previous, &key) == 0) {
            count += key.half == half ? 1 : 0;
            previous = &key;
        }
        return count;
    }
    // As the packet path finds the service of a port of TCP, for any destination.
    [[nodiscard]] uint32_t service_of_port(uint16_t port) const {
        const uint32_t half = half_in_force(*tables_);
        const sluice_port_line& ports =
            tables_->ports[size_t{half} * SLUICE_HALF_PORT_LINES + port / 32];
        const uint32_t cell = ports.port_class[port % 32];
        return tables_->cells[size_t{half} * SLUICE_HALF_CELL_LINES + cell / 32].service[cell % 32];
    }
};

TEST_F(PolicyStoreTest, NothingIsInstalledAtFirst) {
    EXPECT_EQ(current_policy_version(*tables_), 0U);
    const auto policy = current_policy(*tables_);
    ASSERT_FALSE(policy);
    EXPECT_EQ(policy.error().code, ErrorCode::not_found);
}

TEST_F(PolicyStoreTest, InstallsIntoTheIdleHalf) {
    EXPECT_EQ(installed(std::string(kLogin)), 1U);
    EXPECT_EQ(half_in_force(*tables_), 1U);
    EXPECT_EQ(installed(std::string(kLogin) + std::string(kDns)), 2U);
    EXPECT_EQ(half_in_force(*tables_), 0U);

    const auto policy = current_policy(*tables_);
    ASSERT_TRUE(policy) << policy.error().message;
    EXPECT_EQ(policy->version, 2U);
    EXPECT_EQ(policy->source, "test.toml");
    EXPECT_EQ(policy->policy.services.size(), 2U);
    EXPECT_NE(policy->applied_s, 0U);

    EXPECT_EQ(service_of_port(443), id("login"));
    EXPECT_EQ(service_of_port(80), 0U);
    EXPECT_EQ(policy_in_force(*tables_).version, 2U);
    EXPECT_EQ(policy_in_force(*tables_).destination_lengths, 1U);
    EXPECT_EQ(policy_in_force(*tables_).destination_length[0], 128U);
    EXPECT_EQ(service_in_force(*tables_, id("dns")).budget_limits, 1 << SLUICE_DATA);
    EXPECT_EQ(service_in_force(*tables_, id("dns")).id, id("dns"));
    EXPECT_EQ(destinations_of(0), 1U);
    EXPECT_EQ(destinations_of(1), 1U);
}

TEST_F(PolicyStoreTest, OldDestinationsAndServicesLeaveTheHalf) {
    installed(std::string(kLogin));
    const uint32_t login = id("login");
    installed(std::string(kDns));
    installed(std::string(kDns));
    EXPECT_EQ(destinations_of(0) + destinations_of(1), 0U);
    EXPECT_EQ(service_in_force(*tables_, login).id, 0U);
    EXPECT_EQ(service_of_port(443), 0U);
}

TEST_F(PolicyStoreTest, IdsStayWithNamesWhateverTheOrder) {
    installed(std::string(kLogin) + std::string(kDns));
    const uint32_t login = id("login"), dns = id("dns");
    EXPECT_NE(login, dns);
    installed(std::string(kDns) + std::string(kLogin));
    EXPECT_EQ(id("login"), login);
    EXPECT_EQ(id("dns"), dns);
    EXPECT_EQ(id("other"), 0U);
}

TEST_F(PolicyStoreTest, IdsOfRemovedServicesAreReusedOnlyAfterFourDays) {
    const auto named = [](const std::string& name, int port) {
        return "[[service]]\nname = \"" + name + "\"\nmatch = [\"tcp/" + std::to_string(port) +
               "\"]\n";
    };
    installed(named("a", 1) + named("b", 2) + named("c", 3));  // all that there is room for
    const uint32_t b = id("b");
    tables_->budgets[b].tat_ns[0] = 77;
    installed(named("a", 1) + named("c", 3));
    EXPECT_FALSE(find_service_id(*tables_, "b"));
    EXPECT_EQ(service_name(*tables_, b), "b");

    const auto refused = install(named("a", 1) + named("c", 3) + named("d", 4));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().hint.find("bans import"), std::string::npos);
    EXPECT_EQ(current_policy_version(*tables_), 2U) << "refused whole";

    installed(named("a", 1) + named("b", 2) + named("c", 3));
    EXPECT_EQ(id("b"), b) << "the same name has its id again";
    EXPECT_EQ(tables_->budgets[b].tat_ns[0], 77U) << "and its state";

    installed(named("a", 1) + named("c", 3));
    advance(97h);
    installed(named("a", 1) + named("c", 3) + named("d", 4));
    EXPECT_EQ(id("d"), b);
    EXPECT_EQ(tables_->budgets[b].tat_ns[0], 0U) << "nothing of the service before is left";
}

TEST_F(PolicyStoreTest, RefusedPoliciesChangeNothing) {
    installed(std::string(kLogin));
    const auto word = published(tables_->settings().policy);
    EXPECT_FALSE(install(std::string(kLogin) + "bytes = { rate = \"2MB/s\", burst = \"1kB\" }\n"));
    EXPECT_EQ(published(tables_->settings().policy), word);
    EXPECT_EQ(current_policy_version(*tables_), 1U);
    EXPECT_FALSE(install(std::string(kLogin), 0s));
}

// --- modes -------------------------------------------------------------------------------------

TEST_F(PolicyStoreTest, ModesComeFromThePolicyUnlessAnOperatorSaysOtherwise) {
    installed("mode = \"enforce\"\n" + std::string(kLogin));
    auto& switches = tables_->switches[id("login")];
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_ENFORCE);
    EXPECT_EQ(value(switches.service.word), SLUICE_MODE_ENFORCE);
    EXPECT_EQ(value(tables_->switches[0].service.word), SLUICE_MODE_ENFORCE);

    ASSERT_TRUE(set_mode(*tables_, WholeGate{}, Mode::off));
    ASSERT_TRUE(
        set_mode(*tables_, OneService{"login"}, Mode::observe, {.lasts = 10min, .confirm = {}}));
    std::string strict(kLogin);
    strict.replace(strict.find("[service.per_source]"), 0, "mode = \"off\"\n");
    installed("mode = \"observe\"\n" + strict);
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_OFF) << "the override stays";
    EXPECT_EQ(value(switches.service.word), SLUICE_MODE_OBSERVE);
    advance(11min);
    EXPECT_EQ(value(switches.service.word), SLUICE_MODE_OFF) << "the new policy's value";
    ASSERT_TRUE(clear_mode(*tables_, WholeGate{}));
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_OBSERVE);
}

TEST_F(PolicyStoreTest, OverridesGoWithTheirRuleAndService) {
    installed(std::string(kLogin) + std::string(kDns));
    const uint32_t login = id("login"), dns = id("dns");
    const auto rule = parse_switch_target("login.per_source.data");
    ASSERT_TRUE(rule);
    ASSERT_TRUE(set_mode(*tables_, *rule, Mode::off));
    ASSERT_TRUE(set_mode(*tables_, OneService{"dns"}, Mode::off));
    std::string other_rule(kLogin);
    other_rule.replace(other_rule.find("data ="), 6, "packets =");
    installed(other_rule);
    const uint32_t data = sluice_rule(SLUICE_PER_SOURCE, SLUICE_DATA);
    EXPECT_EQ(value(tables_->switches[login].rule[data].word), SLUICE_MODE_ENFORCE);
    EXPECT_EQ(value(tables_->switches[dns].service.word), SLUICE_MODE_ENFORCE);
    EXPECT_TRUE(list_switches(*tables_).empty());
}

// --- confirmation ------------------------------------------------------------------------------

TEST_F(PolicyStoreTest, UnconfirmedPolicyIsTakenBackWithItsModes) {
    installed("mode = \"enforce\"\n" + std::string(kLogin));
    const uint32_t login = id("login");
    std::string second(kLogin);
    second.replace(second.find("[service.per_source]"), 0, "mode = \"off\"\n");
    EXPECT_EQ(installed("mode = \"observe\"\n" + second + std::string(kDns), 60s), 2U);
    EXPECT_EQ(current_policy_version(*tables_), 2U);
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_OBSERVE);
    EXPECT_EQ(value(tables_->switches[login].service.word), SLUICE_MODE_OFF);

    const auto refused = install(std::string(kLogin));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().hint.find("sluicectl confirm"), std::string::npos);

    advance(61s);
    EXPECT_EQ(current_policy_version(*tables_), 1U) << "with nobody there";
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_ENFORCE);
    EXPECT_EQ(value(tables_->switches[login].service.word), SLUICE_MODE_ENFORCE);
    EXPECT_FALSE(find_service_id(*tables_, "dns"));
    EXPECT_FALSE(confirm_switches(*tables_, "all")) << "too late";

    ASSERT_TRUE(settle_policy(*tables_));
    EXPECT_EQ(sluice_switch_deadline(published(tables_->settings().policy)), 0U);
    ASSERT_TRUE(set_mode(*tables_, OneService{"login"}, Mode::observe));
    ASSERT_TRUE(clear_mode(*tables_, OneService{"login"}));
    EXPECT_EQ(value(tables_->switches[login].service.word), SLUICE_MODE_ENFORCE);
    EXPECT_EQ(installed(std::string(kDns)), 3U);
}

TEST_F(PolicyStoreTest, RollBackKeepsOverridesButWithTheOldPolicyBehindThem) {
    installed("mode = \"enforce\"\n" + std::string(kLogin));
    ASSERT_TRUE(set_mode(*tables_, WholeGate{}, Mode::off));
    installed("mode = \"observe\"\n" + std::string(kDns), 60s);
    advance(61s);
    ASSERT_TRUE(settle_policy(*tables_));
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_OFF);
    ASSERT_TRUE(clear_mode(*tables_, WholeGate{}));
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_ENFORCE);
    // A service that came back is in use again, whatever was noted meanwhile.
    EXPECT_EQ(tables_->service_names[id("login")].removed_ns, 0U);
}

TEST_F(PolicyStoreTest, ConfirmedPolicyStays) {
    installed("mode = \"enforce\"\n" + std::string(kLogin));
    installed("mode = \"observe\"\n" + std::string(kDns), 60s);
    const auto entries = list_switches(*tables_);
    ASSERT_EQ(entries.size(), 1U) << "the modes belong to the policy";
    EXPECT_EQ(entries[0].id, "policy");
    EXPECT_EQ(entries[0].now, "version 2");
    EXPECT_EQ(entries[0].after, "version 1");
    EXPECT_LE(*entries[0].left, 61s);

    const auto confirmed = confirm_switches(*tables_, "policy");
    ASSERT_TRUE(confirmed);
    EXPECT_EQ(*confirmed, std::vector<std::string>{"policy"});
    advance(1h);
    EXPECT_EQ(current_policy_version(*tables_), 2U);
    EXPECT_EQ(value(tables_->settings().mode), SLUICE_MODE_OBSERVE);
    EXPECT_TRUE(list_switches(*tables_).empty());
    EXPECT_EQ(installed(std::string(kLogin)), 3U);
}

}  // namespace
}  // namespace sluice
