// Off, observe, enforce: of gate, service and rule the most lenient one; and what comes back by
// itself when its time is over.
#include "gate/policy_store.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

class Modes : public GateOfBothFamilies {
  protected:
    static Packet data() { return Ethernet() / ip() / tcp(40000, 443).ack().payload(100); }
    static Packet syn() { return Ethernet() / ip() / tcp(40000, 443).syn(); }
    void spend() {
        install_web(
            "per_source = { data = { rate = \"1/h\", burst = 2 }, connections = { rate = \"1/h\", "
            "burst = 2 } }");
        EXPECT_EQ(send_many(data(), 2), 2U);
        EXPECT_EQ(send_many(syn(), 2), 2U);
        EXPECT_EQ(send(data()), "drop_source_data");
    }
};
FOR_BOTH_FAMILIES(Modes);

TEST_P(Modes, TheMostLenientOfGateServiceAndRule) {
    spend();
    const std::pair<Mode, std::string> modes[] = {{Mode::off, "pass_within"},
                                                  {Mode::observe, "would_drop_source_data"},
                                                  {Mode::enforce, "drop_source_data"}};
    for (const auto& [gate, at_gate] : modes)
        for (const auto& [service, at_service] : modes)
            for (const auto& [rule, at_rule] : modes) {
                set_mode("gate", gate);
                set_mode("web", service);
                set_mode("web.per_source.data", rule);
                const std::string expected =
                    gate == Mode::off
                        ? "pass_mode_off"
                        : modes[static_cast<int>(std::min({gate, service, rule}))].second;
                EXPECT_EQ(send(data()), expected);
                // Rules beside it follow gate and service only.
                const Mode beside = std::min(gate, service);
                EXPECT_EQ(send(syn()).verdict.find("drop_source_connections") != std::string::npos,
                          beside != Mode::off);
            }
}

TEST_P(Modes, ThePolicySetsThem) {
    install(
        "mode = \"enforce\"\n"
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\nmode = \"observe\"\n"
        "per_source = { data = { rate = \"1/h\", burst = 1 } }\n"
        "[[service]]\nname = \"mail\"\nmatch = [\"tcp/25\"]\n"
        "modes = { \"per_source.data\" = \"off\" }\n"
        "per_source = { data = { rate = \"1/h\", burst = 1 }, packets = { rate = \"1/h\", burst = "
        "2 } }\n");
    EXPECT_EQ(send(data()), "pass_within");
    EXPECT_EQ(send(data()), "would_drop_source_data");
    const Packet mail = Ethernet() / ip() / tcp(40000, 25).ack().payload(100);
    EXPECT_EQ(send(mail), "pass_within");
    EXPECT_EQ(send(mail), "pass_within");
    EXPECT_EQ(send(mail), "drop_source_packets");
}

TEST_P(Modes, AnEnforcedRuleHasItsSayBehindAnObservedOne) {
    install_web(
        "modes = { \"per_source.data\" = \"observe\" }\n"
        "per_source = { data = { rate = \"1/h\", burst = 1 }, packets = { rate = \"1/h\", burst = "
        "3 } }");
    EXPECT_EQ(send(data()), "pass_within");
    EXPECT_EQ(send(data()), "would_drop_source_data");
    EXPECT_EQ(send(data()), "would_drop_source_data");
    EXPECT_EQ(send(data()), "drop_source_packets");
}

TEST_P(Modes, BannedAndMalformedFollowTheGate) {
    spend();
    ban(of().other_network);
    const Packet banned = Ethernet() / from(of().other_network).to(of().server) / tcp(1, 443).syn();
    const Packet broken = Ethernet() / ip() / raw(IPPROTO_TCP, {1, 2, 3});
    set_mode("web", Mode::off);
    EXPECT_EQ(send(banned), "drop_banned");
    EXPECT_EQ(send(broken), "drop_malformed");
    set_mode("gate", Mode::observe);
    EXPECT_EQ(send(banned), "would_drop_banned");
    EXPECT_EQ(send(broken), "would_drop_malformed");
}

TEST_P(Modes, ATimedSwitchGoesBackByItself) {
    spend();
    set_mode("gate", Mode::observe, 10s);
    EXPECT_EQ(send(data()), "would_drop_source_data");
    advance(10s - 2ms);
    EXPECT_EQ(send(data()), "would_drop_source_data");
    advance(4ms);
    EXPECT_EQ(send(data()), "drop_source_data");

    set_mode("web", Mode::off, 1min);
    EXPECT_EQ(send(data()), "pass_within");
    advance(1min + 2ms);
    EXPECT_EQ(send(data()), "drop_source_data");

    set_mode("web.per_source.data", Mode::observe, 1h);
    EXPECT_EQ(send(data()), "would_drop_source_data");
    lag(8ms);
    advance(1h + 2ms);
    EXPECT_EQ(send(data()), "pass_within");  // an hour's worth
    EXPECT_EQ(send(data()), "drop_source_data");
}

TEST_P(Modes, AnAttachmentThatNobodyConfirmedPassesEverything) {
    spend();
    ban(of().other_network);
    tables_->settings().attached[0] = sluice_switch_make(
        1, 0, 1, SLUICE_ORIGIN_OPERATOR, 1, sluice_deadline_from_ns(now() + 60'000'000'000));
    EXPECT_EQ(send(data()), "drop_source_data");
    advance(60s + 2ms);
    const auto before = counts();
    EXPECT_TRUE(passes(data().bytes()));
    EXPECT_TRUE(
        passes((Ethernet() / from(of().other_network).to(of().server) / udp(1, 2)).bytes()));
    EXPECT_EQ(counts(), before);
    tables_->settings().attached[0] = 0;
    EXPECT_TRUE(passes(data().bytes()));
    tables_->settings().attached[0] = 1;
    EXPECT_EQ(send(data()), "drop_source_data");
}

TEST_P(Modes, APolicyThatNobodyConfirmedGoesBack) {
    spend();
    const std::string open =
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/80\"]\n"
        "per_source = { data = { rate = \"1/h\", burst = 1 } }\n";
    install(open, 60s);
    EXPECT_EQ(send(data()), "pass_unlimited");
    EXPECT_EQ(send(Ethernet() / ip() / tcp(1, 80).ack().payload(1)), "drop_source_data");
    advance(60s + 2ms);
    EXPECT_EQ(send(data()), "drop_source_data");
    EXPECT_EQ(send(Ethernet() / ip() / tcp(1, 80).ack().payload(1)), "pass_unlimited");

    ASSERT_TRUE(settle_policy(*tables_));
    install(open, 60s);
    EXPECT_EQ(send(data()), "pass_unlimited");
    confirm_policy(*tables_);
    advance(61s);
    EXPECT_EQ(send(data()), "pass_unlimited");
}

// What a gate learns while it observes is what it would have learned while it enforced.
TEST_P(Modes, ObserveAndEnforceKeepTheSameState) {
    const auto play = [&](Mode mode) {
        install_web(
            "per_source = { data = { rate = \"10/s\", burst = 3 }, connections = { limit = 3, "
            "window = \"10s\" } }\n"
            "per_prefix = { packets = { rate = \"20/s\", burst = 9 } }\n"
            "budget = { packets = { rate = \"30/s\", burst = 12 } }");
        set_mode("gate", mode);
        const Bytes frames[] = {
            data().bytes(), syn().bytes(),
            (Ethernet() / from(of().same_network).to(of().server) / udp(1, 443)).bytes()};
        for (unsigned i = 0; i < 2000; ++i) {
            (void)passes(frames[i * i % 7 % 3]);
            advance(nanoseconds(1'000'000 * (i % 11)));
        }
        return counts();
    };
    // The tables of both have the same secret, or their lines would differ.
    const Counts enforced = play(Mode::enforce);
    start(usual_sizes());
    const Counts observed = play(Mode::observe);
    for (const auto& [verdict, packets] : enforced) {
        const std::string twin = verdict.starts_with("drop_") ? "would_" + verdict : verdict;
        EXPECT_EQ(observed.count(twin) != 0 ? observed.at(twin) : 0, packets) << verdict;
    }
}

}  // namespace

}  // namespace sluice
