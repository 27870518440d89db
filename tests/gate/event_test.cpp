// Sampled events: what they tell, how many there are, and whose come first.
#include <bpf/libbpf.h>
#include <netinet/in.h>
#include <sluice/event.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "gate_under_test.h"
#include "policy/compile.h"

namespace sluice {

namespace {

class Events : public GateOfBothFamilies {
  protected:
    void SetUp() override {
        GateOfBothFamilies::SetUp();
        if (IsSkipped())
            return;
        ring_.reset(ring_buffer__new(
            tables_->events.get(),
            [](void* context, void* data, size_t size) {
                sluice_event event{};
                EXPECT_EQ(size, sizeof(event));
                std::memcpy(&event, data, sizeof(event));
                static_cast<std::vector<sluice_event>*>(context)->push_back(event);
                return 0;
            },
            &read_, nullptr));
        ASSERT_TRUE(ring_);
    }
    // Since the last time.
    std::vector<sluice_event> events() {
        read_.clear();
        ring_buffer__consume(ring_.get());
        return read_;
    }
    void earn() { advance(50ms); }

    static Packet from_client() { return Ethernet() / ip() / udp(40000, 443).payload(10); }
    static Packet from_neighbour(uint16_t port) {
        return Ethernet() / from(of().other_network).to(of().server) / udp(port, 443).payload(10);
    }
    static bool is_from(const sluice_event& event, std::string_view source) {
        const auto bytes = IpAddress::parse(source).value().bytes();
        return std::equal(bytes.begin(), bytes.end(), event.source);
    }

  private:
    struct Free {
        void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
    };
    std::unique_ptr<ring_buffer, Free> ring_;
    std::vector<sluice_event> read_;
};
FOR_BOTH_FAMILIES(Events);

TEST_P(Events, TellWhoWasDroppedByWhichRule) {
    install_web("per_source = { data = { rate = \"1/s\", burst = 3 } }");
    send_many(from_client(), 1);
    earn();
    send_many(from_client(), 2);
    events();
    ASSERT_EQ(send(from_client()), "drop_source_data");

    const auto seen = events();
    ASSERT_EQ(seen.size(), 1U);
    const sluice_event& event = seen.front();
    EXPECT_TRUE(is_from(event, of().client));
    EXPECT_EQ(event.source_port, 40000);
    EXPECT_EQ(event.destination_port, 443);
    EXPECT_EQ(event.protocol, IPPROTO_UDP);
    EXPECT_EQ(event.verdict, SLUICE_drop_source_data);
    EXPECT_EQ(event.rule, rule_index({Scope::per_source, Dimension::data}));
    EXPECT_EQ(event.flags, SLUICE_EVENT_FIRST);
    EXPECT_EQ(event.service, service_id("web"));
    EXPECT_EQ(event.count, 1U);
    EXPECT_EQ(event.policy_version, 1U);
    EXPECT_EQ(event.time_ns, now());
    EXPECT_GT(event.measured, 0U);
}

TEST_P(Events, OfBansAndMalformedPacketsNeedNoPolicyToBePaid) {
    install("");
    ban(of().client);
    send(from_client());
    earn();
    ASSERT_EQ(send(from_client()), "drop_banned");
    const auto of_ban = events();
    ASSERT_FALSE(of_ban.empty());
    EXPECT_EQ(of_ban.back().verdict, SLUICE_drop_banned);
    EXPECT_EQ(of_ban.back().rule, SLUICE_EVENT_NO_RULE);
    EXPECT_EQ(of_ban.back().measured, 0U);
    EXPECT_TRUE(is_from(of_ban.back(), of().client));

    earn();
    ASSERT_EQ(
        send(Ethernet() / from(of().other_network).to(of().server) / raw(IPPROTO_TCP, {1, 2, 3})),
        "drop_malformed");
    const auto of_malformed = events();
    ASSERT_EQ(of_malformed.size(), 1U);
    EXPECT_EQ(of_malformed.front().verdict, SLUICE_drop_malformed);
}

TEST_P(Events, SayWhatWouldHaveBeenDropped) {
    install("");
    ban(of().client);
    set_mode(SLUICE_MODE_OBSERVE);
    send(from_client());
    earn();
    ASSERT_EQ(send(from_client()), "would_drop_banned");
    const auto seen = events();
    ASSERT_FALSE(seen.empty());
    EXPECT_TRUE(seen.back().flags & SLUICE_EVENT_WOULD);
}

TEST_P(Events, SampleWhatPasses) {
    install_web("per_source = { data = \"1000000/s\" }");
    const Packet opening = Ethernet() / ip() / tcp(40000, 443).syn();
    for (unsigned i = 0; i < 20; ++i) {
        earn();
        events();
        send_many(from_client(), 1000);
        send(opening);
        const auto seen = events();
        ASSERT_FALSE(seen.empty());
        ASSERT_LE(seen.size(), 20U) << "one a tick";
        EXPECT_EQ(seen.front().verdict, SLUICE_pass_within);
        EXPECT_EQ(seen.front().flags, 0U);
        EXPECT_EQ(seen.front().count, i * 1001U + 1) << "what it is a sample of";
        EXPECT_TRUE(is_from(seen.front(), of().client));
    }
    earn();
    events();
    send(opening);
    ASSERT_FALSE(events().empty());
    earn();
    send(opening);
    EXPECT_EQ(events().front().flags, SLUICE_EVENT_CONNECTION);
}

TEST_P(Events, KeepToTheirRate) {
    install("[events]\nrate = \"10000/s\"\n");
    ban(of().client);
    send_many(from_client(), 10'000);  // what a quiet time had saved
    EXPECT_LE(events().size(), 1100U);
    const double share = 10'000.0 / tables_->sizes.cpus;
    for (unsigned i = 0; i < 1000; ++i) {
        send_many(from_client(), 1000);
        advance(1ms);
    }
    const auto seen = events();
    // Half of it is kept for whoever is dropped for the first time.
    EXPECT_LE(static_cast<double>(seen.size()), 0.55 * share + 1);
    EXPECT_GE(static_cast<double>(seen.size()), 0.4 * share - 1);
}

TEST_P(Events, OneFloodDoesNotHideWhoIsDroppedForTheFirstTime) {
    install("[events]\nrate = \"100/s\"\n");
    ban(of().client);
    ban(of().other_network);
    send(from_client());
    earn();
    for (unsigned i = 0; i < 200; ++i) {
        send_many(from_client(), 1000);
        advance(1ms);
    }
    events();
    ASSERT_EQ(send(from_neighbour(1)), "drop_banned");
    const auto seen = events();
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_TRUE(is_from(seen.front(), of().other_network));
    EXPECT_TRUE(seen.front().flags & SLUICE_EVENT_FIRST);
    // Their second is one of many.
    EXPECT_EQ(send(from_neighbour(2)), "drop_banned");
    EXPECT_TRUE(events().empty());
}

TEST_P(Events, AFullRingLosesThemAndCountsThem) {
    install("[events]\nrate = \"10000000/s\"\n");
    ban(of().client);
    send(from_client());
    earn();
    for (unsigned i = 0; i < 1000 && housekeeping(&sluice_cpu::events_lost) == 0; ++i) {
        send_many(from_client(), 10'000);
        advance(10ms);
    }
    EXPECT_GT(housekeeping(&sluice_cpu::events_lost), 0U);
    EXPECT_EQ(send(from_client()), "drop_banned");
    events();
    earn();
    send(from_client());
    EXPECT_FALSE(events().empty()) << "once it was read there is room";
}

}  // namespace

}  // namespace sluice
