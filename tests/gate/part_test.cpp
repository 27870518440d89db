// Parts of a limit that hosts share: each lets through its part, until the kernel's clock says that
// it is over; and how much of a limit is in use can be seen from its words.
#include <cmath>
#include <random>

#include "gate/source_parts.h"
#include "gate_under_test.h"

namespace sluice {

namespace {

// The end of a part is as exact as this.
constexpr nanoseconds kEndError = 68ms;

class Parts : public GateOfBothFamilies {
  protected:
    static Packet data(std::string_view source = of().client) {
        return Ethernet() / from(source).to(of().server) / tcp(40000, 443).ack().payload(100);
    }
    static IpAddress address(std::string_view text) { return IpAddress::parse(text).value(); }

    // Slow enough for the exact clock, so that every packet counts.
    void install_limited(std::string_view more = "") {
        install_web("per_source = { data = { rate = \"100/s\", burst = 40 } }\n" +
                    std::string(more));
        heed_parts(*tables_, true);
    }
    SourceParts parts(std::string_view source = of().client, std::string_view service = "web") {
        return {*tables_, address(source), service_id(service)};
    }
    bool put(double part, nanoseconds length = 2s, std::string_view source = of().client) {
        return parts(source).put(Dimension::data, part, now() + count(length));
    }
};
FOR_BOTH_FAMILIES(Parts);

TEST_P(Parts, HalfOfALimitIsHalfOfItsBurstAndOfItsRate) {
    for (const bool general : {false, true}) {
        SCOPED_TRACE(general);
        go_general_way(general);
        install_limited();
        ASSERT_TRUE(put(0.5));
        EXPECT_EQ(send_many(data(), 99), 20U);
        advance(100ms);
        EXPECT_EQ(send_many(data(), 99), 5U);
        EXPECT_EQ(send(data()), "drop_source_data");
        EXPECT_EQ(send_many(data(of().other_network), 99), 40U) << "nobody else";
        advance(10s);
    }
}

TEST_P(Parts, TheRateIsExact) {
    for (const double part : {1.0 / 2, 1.0 / 3, 0.9, 1.0 / 50}) {
        SCOPED_TRACE(part);
        install_limited();
        advance(10s);
        (void)send_many(data(), 99);
        uint64_t passed = 0;
        constexpr int kSeconds = 40;
        for (int i = 0; i < kSeconds * 100; ++i) {
            if (i % 100 == 0) {
                ASSERT_TRUE(put(part));
            }
            advance(10ms);
            passed += send_many(data(), 1);
        }
        EXPECT_NEAR(static_cast<double>(passed), 100 * kSeconds * part, 1 + 100 * part);
    }
}

TEST_P(Parts, IsOverWithoutAnybodysHelp) {
    install_limited();
    ASSERT_TRUE(put(0.25, 1s));
    EXPECT_EQ(send_many(data(), 99), 10U);
    advance(1s - kEndError);
    EXPECT_TRUE(parts().find(Dimension::data));
    EXPECT_EQ(send_many(data(), 99), 10U);
    advance(2 * kEndError);
    EXPECT_FALSE(parts().find(Dimension::data));
    advance(10s);
    EXPECT_EQ(send_many(data(), 99), 40U);
}

TEST_P(Parts, NoWordHoldsLongerThanItMay) {
    install_limited();
    ASSERT_TRUE(put(0.25, 1h)) << "a writer that is wrong";
    EXPECT_FALSE(parts().find(Dimension::data));
    EXPECT_EQ(send_many(data(), 99), 40U);
}

TEST_P(Parts, NoneIsEverMoreThanTheLimitOrTooSmallToTell) {
    install_limited();
    ASSERT_TRUE(put(7));
    EXPECT_FALSE(parts().find(Dimension::data));
    EXPECT_EQ(send_many(data(), 99), 40U);
    advance(10s);
    ASSERT_TRUE(put(0));
    ASSERT_TRUE(parts().find(Dimension::data));
    EXPECT_NEAR(parts().find(Dimension::data)->part, kLeastPart, 1e-4);
    EXPECT_EQ(send_many(data(), 99), 1U) << "a packet passes a full bucket";
}

TEST_P(Parts, AreLookedAtWhereTheGateSaysSo) {
    install_limited();
    ASSERT_TRUE(put(0.5));
    heed_parts(*tables_, false);
    EXPECT_EQ(send_many(data(), 99), 40U);
}

TEST_P(Parts, ADroppedOneIsOverAtOnce) {
    install_limited();
    ASSERT_TRUE(put(0.5));
    EXPECT_EQ(send_many(data(), 99), 20U);
    parts().drop(Dimension::data);
    EXPECT_FALSE(parts().find(Dimension::data));
    advance(1s);
    EXPECT_EQ(send_many(data(), 99), 40U);
    parts().drop(Dimension::data);
}

TEST_P(Parts, AreOfOneDimensionAtOneService) {
    install(R"(
[[service]]
name = "web"
match = ["tcp/443"]
per_source = { data = { rate = "10/s", burst = 40 }, packets = { rate = "10/s", burst = 50 } }
[[service]]
name = "mail"
match = ["tcp/25"]
per_source = { data = { rate = "10/s", burst = 40 } }
)");
    heed_parts(*tables_, true);
    ASSERT_TRUE(parts().put(Dimension::packets, 0.5, now() + 1'500'000'000));
    EXPECT_EQ(send_many(Ethernet() / ip() / tcp(40000, 25).ack().payload(1), 99), 40U);
    EXPECT_EQ(send_many(data(), 99), 25U);
    EXPECT_EQ(send(data()), "drop_source_packets");
}

TEST_P(Parts, AreOfTheNetworkThatLimitsCount) {
    install_limited();
    const bool is_ipv6 = GetParam() == Family::ipv6;
    const std::string_view one = is_ipv6 ? "2001:db8:a:7::1" : "192.0.2.9";
    const std::string_view neighbour = is_ipv6 ? "2001:db8:a:7:1234::5" : "192.0.2.10";
    ASSERT_TRUE(put(0.5, 2s, one));
    EXPECT_EQ(send_many(data(neighbour), 99), is_ipv6 ? 20U : 40U) << "a /64 is one source";
    EXPECT_EQ(send_many(data(one), 99), is_ipv6 ? 0U : 20U);
    EXPECT_EQ(counted_source(*tables_, address(neighbour)),
              address(is_ipv6 ? "2001:db8:a:7::" : "192.0.2.10"));
}

TEST_P(Parts, MultiplyWithAClass) {
    install(R"(
[[class]]
name = "partners"
prefixes = ["198.51.100.0/24", "2001:db8:b::/48"]
scale = 2
[[class]]
name = "suspects"
prefixes = ["192.0.2.0/28", "2001:db8:a:1::/64"]
scale = 0.5
[[service]]
name = "web"
match = ["tcp/443"]
per_source = { data = { rate = "100/s", burst = 40 } }
)");
    classify("198.51.100.0/24", 1);
    classify("2001:db8:b::/48", 1);
    classify("192.0.2.0/28", 2);
    classify("2001:db8:a:1::/64", 2);
    heed_parts(*tables_, true);
    ASSERT_TRUE(put(0.5, 2s, of().client));
    ASSERT_TRUE(put(0.5, 2s, of().other_network));
    EXPECT_EQ(send_many(data(of().client), 99), 10U);
    EXPECT_EQ(send_many(data(of().other_network), 99), 40U);
    advance(100ms);
    EXPECT_EQ(send_many(data(of().client), 99), 2U);
    EXPECT_EQ(send_many(data(of().other_network), 99), 10U);
}

TEST_P(Parts, WhatAnotherLimitRefusesCostsNothing) {
    install_limited("per_prefix = { data = { rate = \"1/s\", burst = 3 } }");
    ASSERT_TRUE(put(0.5));
    EXPECT_EQ(send_many(data(), 3), 3U);
    const State before = state();
    EXPECT_EQ(send(data()), "drop_prefix");
    EXPECT_EQ(state(), before);
}

TEST_P(Parts, ADropUnderAPartIsKeptForTheTick) {
    install(
        "[events]\nrate = \"1/h\"\n"
        "[[service]]\nname = \"web\"\nmatch = [\"tcp/443\"]\n"
        "per_source = { data = { rate = \"1/s\", burst = 4 } }");
    heed_parts(*tables_, true);
    ASSERT_TRUE(put(0.5));
    (void)send(data(of().other_network));
    for (sluice_cpu& cpu : tables_->cpus.span()) {
        cpu.event_tokens = cpu.first_tokens = cpu.pass_tokens = 0;
        cpu.cache_credit = SLUICE_CACHE_TRIAL;
    }
    EXPECT_EQ(send_many(data(), 9), 2U);
    for (sluice_source_set& set : tables_->sources.span())
        set = {};
    EXPECT_EQ(send(data()), "drop_source_data");
}

TEST_P(Parts, AFullSetLeavesTheWholeLimit) {
    TableSizes sizes = usual_sizes();
    sizes.source_sets = 1;
    start(sizes);
    install_limited();
    (void)send(data());
    for (__u64& word : tables_->sources[0].word)
        if (word == 0)
            word = sluice_word(12345, sluice_units(now()) + 1000);
    EXPECT_FALSE(put(0.5));
    EXPECT_EQ(send_many(data(), 99), 39U);
    advance(2s);
    EXPECT_TRUE(put(0.5)) << "they are idle now";
}

// --- how much is in use ------------------------------------------------------------------------

// What looks at random times find while a source sends at random times.
struct Load {
    const char* limit;
    double per_second;  // of the limit
    nanoseconds tick;   // of the coarse clock
};

class Use : public Parts {
  protected:
    struct Found {
        double used = 0, refused = 0, passed = 0;
    };
    Found observe(const Load& load, double offered, double part) {
        std::exponential_distribution<double> gap(offered * load.per_second);
        std::uniform_real_distribution<double> pause(0.002, 0.038);
        const Bytes frame = data().bytes();
        double next_packet = 0, next_look = 0;
        const uint64_t start = now();
        UseSample sum;
        double looks = 0, full = 0;
        double passed = 0;
        constexpr double kSeconds = 30;
        double next_put = 0;
        while (next_look < kSeconds) {
            const double at = std::min(next_packet, next_look);
            set_clock(start + static_cast<uint64_t>(at * 1e9));
            lag(nanoseconds(now() % count(load.tick)));
            if (part < 1 && at >= next_put) {
                EXPECT_TRUE(put(part));
                next_put = at + 1;
            }
            if (next_packet <= next_look) {
                passed += passes(frame) ? 1 : 0;
                next_packet += gap(random_);
                continue;
            }
            const UseSample look =
                parts().use(Dimension::data, 0, {now() - now() % count(load.tick), now()});
            sum.looked_ns += look.looked_ns;
            sum.busy_ns += look.busy_ns;
            full += look.is_full ? 1 : 0;
            ++looks;
            next_look += pause(random_);
        }
        lag(0ns);
        return {sum.busy_ns / sum.looked_ns, full / looks, passed / (kSeconds * load.per_second)};
    }

    std::mt19937 random_{20'261'201};
};
INSTANTIATE_TEST_SUITE_P(Both, Use, ::testing::Values(Family::ipv4), family_name);

TEST_P(Use, IsSeenFromTheWordsAlone) {
    for (const Load& load : {Load{R"({ rate = "50/s", burst = 5 })", 50, 4ms},
                             Load{R"({ rate = "50/s", burst = 50 })", 50, 4ms},
                             Load{R"({ rate = "2000/s", burst = 200 })", 2000, 4ms},
                             Load{R"({ rate = "2000/s", burst = 200 })", 2000, 1ms}}) {
        for (const double offered : {0.2, 0.6, 0.9, 1.5, 4.0})
            for (const double part : {1.0, 0.4}) {
                SCOPED_TRACE(std::string(load.limit) + " offered " + std::to_string(offered) +
                             " part " + std::to_string(part));
                install_web("per_source = { data = " + std::string(load.limit) + " }");
                heed_parts(*tables_, true);
                advance(10s);
                const Found found = observe(load, offered, part);
                EXPECT_NEAR(found.used * part, found.passed, 0.07);
                EXPECT_NEAR(found.passed / (1 - found.refused), offered, 0.1 + offered * 0.2);
            }
    }
}

}  // namespace

}  // namespace sluice
