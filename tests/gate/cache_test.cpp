// The verdict cache: a drop is kept for as long as it would be decided the same, and no longer.
#include <sluice/gate.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "gate_under_test.h"

namespace sluice {

namespace {

class Cache : public GateOfBothFamilies {
  protected:
    void install_quiet(std::string_view toml) {
        install("[events]\nrate = \"1/h\"\n" + std::string(toml));
    }
    void install_limited(std::string_view lines) {
        install_quiet("[[service]]\nname = \"web\"\nmatch = [\"tcp/443\", \"udp/443\"]\n" +
                      std::string(lines));
    }
    static Packet request(uint16_t port = 443, size_t bytes = 10) {
        return Ethernet() / ip() / udp(40000, port).payload(bytes);
    }

    // Verdicts are kept only where no event is to be sent.
    void spend_events() {
        send(Ethernet() / from(of().other_network).to(of().server) / udp(1, 9));
        for (sluice_cpu& cpu : tables_->cpus.span()) {
            cpu.event_tokens = cpu.first_tokens = cpu.pass_tokens = 0;
            cpu.cache_credit = SLUICE_CACHE_TRIAL;
        }
    }
    const sluice_cpu& cpu() const { return tables_->cpus[tables_->settings().test_cpu]; }
    void forget() {
        for (sluice_cache& cache : tables_->verdict_cache.span())
            cache = {};
    }
    [[nodiscard]] size_t kept() const {
        size_t count = 0;
        for (const sluice_cache& cache : tables_->verdict_cache.span())
            count += static_cast<size_t>(
                std::count_if(std::begin(cache.entry), std::end(cache.entry),
                              [](const sluice_cached& entry) { return entry.key != 0; }));
        return count;
    }
    // Behind the gate's back, so that only what is kept can tell.
    void empty_the_buckets() {
        for (sluice_source_set& set : tables_->sources.span())
            set = {};
    }
    // How often the packet is dropped before and after the buckets are emptied.
    std::string verdict_after_emptying(const Packet& packet) {
        std::string verdict;
        spend_events();
        send_many(packet, 20);
        EXPECT_TRUE(send(packet).dropped);
        empty_the_buckets();
        verdict = send(packet).verdict;
        return verdict;
    }
};
FOR_BOTH_FAMILIES(Cache);

TEST_P(Cache, ADropHoldsUntilTheClockMoves) {
    install_limited("per_source = { data = { rate = \"1/s\", burst = 3 } }");
    spend_events();
    send_many(request(), 3);
    ASSERT_EQ(send(request()), "drop_source_data");
    empty_the_buckets();
    EXPECT_EQ(send(request()), "drop_source_data");
    EXPECT_EQ(send(request()).service, "web");
    advance(1ns);
    EXPECT_EQ(send(request()), "pass_within");
}

TEST_P(Cache, HoldsForNoOtherPacket) {
    install_limited("per_source = { data = { rate = \"1/s\", burst = 3 } }");
    const Packet others[] = {
        request(443, 11), request(444), Ethernet() / ip() / tcp(40000, 443).payload(10),
        Ethernet() / from(of().other_network).to(of().server) / udp(40000, 443).payload(10)};
    spend_events();
    send_many(request(), 4);
    empty_the_buckets();
    for (const Packet& other : others) {
        EXPECT_FALSE(send(other).dropped);
        empty_the_buckets();
    }
    EXPECT_TRUE(send(request()).dropped);
    on_cpu(1);
    spend_events();
    EXPECT_FALSE(send(request()).dropped) << "of another CPU";
    on_cpu(0);
}

TEST_P(Cache, HoldsForNoMoreThanWasDecided) {
    install_limited("per_source = { data = { rate = \"1/s\", burst = 3 } }");
    using Change = std::function<void()>;
    const std::pair<const char*, Change> changes[] = {
        {"pass_allowed", [&] { allow(of().client); }},
        {"would_drop_source_data", [&] { set_mode("web", Mode::observe); }},
        {"pass_within", [&] { set_mode("web.per_source.data", Mode::off); }},
        {"pass_mode_off", [&] { set_mode(SLUICE_MODE_OFF); }},
        {"drop_banned", [&] { ban(of().client); }},
        {"pass_within",
         [&] { install_limited("per_source = { data = { rate = \"1/s\", burst = 300 } }"); }}};
    for (const auto& [verdict, change] : changes) {
        start(usual_sizes());
        install_limited("per_source = { data = { rate = \"1/s\", burst = 3 } }");
        spend_events();
        send_many(request(), 10);
        EXPECT_TRUE(send(request()).dropped);
        ASSERT_GT(kept(), 0U);
        change();
        EXPECT_EQ(send(request()), verdict);
    }
}

TEST_P(Cache, AnUnbanIsObeyedAtOnce) {
    install_quiet("");
    ban(of().client);
    spend_events();
    EXPECT_EQ(send(request()), "drop_banned");
    EXPECT_EQ(kept(), 1U);
    ASSERT_TRUE(rules().unban(*Prefix::parse(of().client)));
    EXPECT_EQ(send(request()), "pass_unlimited");
}

TEST_P(Cache, HoldsWhereverASourceIsRefused) {
    const char* const policies[] = {
        "per_source = { data = { rate = \"1/s\", burst = 3 } }\nbudget = { data = \"1000000/s\" }",
        "per_source = { packets = \"1000000/s\" }\n[service.per_prefix]\n"
        "data = { rate = \"1/s\", burst = 3 }",
        "[service.per_source]\ndata = { rate = \"1/s\", burst = 3 }\n"
        "on_excess = { jail = \"10s\", spoofable = true }"};
    for (const char* policy : policies) {
        install_limited(policy);
        empty_the_buckets();
        EXPECT_TRUE(verdict_after_emptying(request()).starts_with("drop_")) << policy;
        advance(100s);
    }
}

TEST_P(Cache, KeepsNothingThatMayChangeAtOnce) {
    // What others spend, and what the fine clock decides.
    install_limited("budget = { data = { rate = \"20/s\", burst = 2 } }");
    spend_events();
    send_many(request(), 20);
    EXPECT_TRUE(send(request()).dropped);
    EXPECT_EQ(kept(), 0U);
    install_limited(
        "[service.per_source]\ndata = { rate = \"20000/s\", burst = 2 }\n"
        "[service.budget]\ndata = \"1000000/s\"");
    spend_events();
    send_many(request(), 20);
    EXPECT_TRUE(send(request()).dropped);
    EXPECT_EQ(kept(), 0U);
}

TEST_P(Cache, KeepsNoDropThatWasOnlyObserved) {
    install_limited("mode = \"observe\"\nper_source = { data = { rate = \"1/s\", burst = 3 } }");
    spend_events();
    send_many(request(), 20);
    EXPECT_EQ(send(request()), "would_drop_source_data");
    EXPECT_EQ(kept(), 0U);
}

TEST_P(Cache, IsLeftAloneWhereItDoesNotPay) {
    constexpr uint32_t kLeft = 4;
    install_quiet("");
    ban(GetParam() == Family::ipv4 ? "198.18.0.0/15" : "2001:db8:beef::/48");
    auto from_next = [this, next = 0]() mutable {
        const std::string source = (GetParam() == Family::ipv4 ? "198.18.0." : "2001:db8:beef::") +
                                   std::to_string(++next % 250);
        return send(Ethernet() / from(source).to(of().server) / udp(1, 2).payload(10));
    };
    spend_events();
    tables_->cpus[0].cache_credit = kLeft;
    for (unsigned i = 0; i < 2 * kLeft; ++i)
        EXPECT_EQ(from_next(), "drop_banned");
    EXPECT_EQ(cpu().cache_credit, 0U);
    EXPECT_EQ(kept(), kLeft);
}

}  // namespace

}  // namespace sluice
