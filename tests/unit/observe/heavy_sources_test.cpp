#include "observe/heavy_sources.h"

#include <gtest/gtest.h>

namespace sluice {

namespace {

using namespace std::chrono_literals;

Event event(std::string_view source, uint64_t weight, bool passed = false) {
    Event event;
    event.source = IpAddress::parse(source).value();
    event.service = "web";
    event.weight = weight;
    event.passed = passed;
    event.verdict = passed ? "pass_within" : "drop_source_data";
    event.rule = passed ? "" : "web.per_source.data";
    return event;
}

class HeavySourcesTest : public ::testing::Test {
  protected:
    // `per_second` packets of a source for as long as it takes the rate to settle.
    void flow(std::string_view source, uint64_t per_second, bool passed = false) {
        for (int i = 0; i < 400; ++i)
            heavy_.add(event(source, per_second / 10, passed), start_ + i * 100ms);
        now_ = start_ + 400 * 100ms;
    }
    std::vector<HeavySource> heaviest(HeavyBy by, size_t most = 10,
                                      std::optional<std::string> service = {}) const {
        return heavy_.heaviest(by, service, most, now_);
    }

    HeavySources heavy_;
    HeavySources::Clock::time_point start_ = HeavySources::Clock::now();
    HeavySources::Clock::time_point now_ = start_;
};

TEST_F(HeavySourcesTest, RatesSettleAtWhatIsSent) {
    flow("192.0.2.1", 1000);
    flow("192.0.2.2", 50, true);
    const auto dropped = heaviest(HeavyBy::dropped);
    ASSERT_EQ(dropped.size(), 1U);
    EXPECT_NEAR(dropped[0].dropped, 1000, 30);
    EXPECT_EQ(dropped[0].rule, "web.per_source.data");
    const auto passed = heaviest(HeavyBy::passed);
    ASSERT_EQ(passed.size(), 1U);
    EXPECT_NEAR(passed[0].passed, 50, 2);
    EXPECT_EQ(passed[0].rule, "");
}

TEST_F(HeavySourcesTest, TheHeaviestComesFirstAndNoMoreThanWereAskedFor) {
    flow("192.0.2.1", 10);
    flow("192.0.2.2", 1000);
    flow("192.0.2.3", 100);
    const auto two = heaviest(HeavyBy::dropped, 2);
    ASSERT_EQ(two.size(), 2U);
    EXPECT_EQ(two[0].source.to_string(), "192.0.2.2");
    EXPECT_EQ(two[1].source.to_string(), "192.0.2.3");
    EXPECT_TRUE(heaviest(HeavyBy::connections).empty());
    EXPECT_TRUE(heaviest(HeavyBy::dropped, 10, "other").empty());
}

TEST_F(HeavySourcesTest, WhoStopsIsForgotten) {
    flow("192.0.2.1", 1000);
    now_ += 3 * HeavySources::kMemory;
    EXPECT_LT(heaviest(HeavyBy::dropped)[0].dropped, 60);
    now_ += 10 * HeavySources::kMemory;
    EXPECT_TRUE(heaviest(HeavyBy::dropped).empty());
}

TEST_F(HeavySourcesTest, AFloodOfSpoofedSourcesDoesNotPushOutAHeavyOne) {
    flow("192.0.2.1", 100'000);
    for (uint32_t i = 0; i < 5 * HeavySources::kMost; ++i) {
        Event spoofed = event("192.0.2.1", 1);
        spoofed.source = IpAddress::from_ipv4(0x0a000000 + i);
        heavy_.add(spoofed, now_);
    }
    EXPECT_LE(heavy_.size(), HeavySources::kMost);
    const auto first = heaviest(HeavyBy::dropped, 1);
    ASSERT_EQ(first.size(), 1U);
    EXPECT_EQ(first[0].source.to_string(), "192.0.2.1");
}

}  // namespace

}  // namespace sluice
