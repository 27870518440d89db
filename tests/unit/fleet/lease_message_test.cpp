#include "fleet/lease_message.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace sluice {

namespace {

using namespace std::chrono_literals;

template <class T>
void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::string header(uint8_t status) {
    std::string text;
    append(text, status);
    for (const uint32_t value : {200U, 500U, 12'500U, 150'000U, 7U})
        append(text, value);
    return text;
}

std::string grant(uint8_t marks, double rate, double burst, double budget) {
    std::string text;
    append(text, marks);
    for (const double value : {rate, burst, budget})
        append(text, value);
    return text;
}

const LeaseRequest kOneRow{.host = "a", .demands = {{.budget = "web.data"}}};

TEST(LeaseMessageTest, ReadsAnAnswer) {
    const auto reply = parse_lease_reply(header(1) + grant(1 | 8, 12.5, 1, 100), kOneRow);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, LeaseStatus::learning);
    EXPECT_EQ(reply->renew_in, 200ms);
    EXPECT_EQ(reply->length, 500ms);
    EXPECT_EQ(reply->idle_length, 12'500ms);
    EXPECT_EQ(reply->longest_lease, 150s);
    EXPECT_EQ(reply->hosts, 7U);
    ASSERT_EQ(reply->grants.size(), 1U);
    EXPECT_TRUE(reply->grants[0].saturated);
    EXPECT_TRUE(reply->grants[0].awaited);
    EXPECT_FALSE(reply->grants[0].tokens);
    EXPECT_FALSE(reply->grants[0].unknown);
    EXPECT_EQ(reply->grants[0].grant, 12.5);
    EXPECT_EQ(reply->grants[0].budget, 100);
}

TEST(LeaseMessageTest, RefusesWhatIsNoAnswer) {
    const double inf = std::numeric_limits<double>::infinity();
    for (const std::string& text :
         {std::string(), std::string("OK"), header(3) + grant(0, 1, 1, 1), header(0),
          header(0) + grant(0, 1, 1, 1) + grant(0, 1, 1, 1), header(0) + grant(0, -1, 1, 1),
          header(0) + grant(0, inf, 1, 1), header(0) + grant(0, 1, std::nan(""), 1)})
        EXPECT_FALSE(parse_lease_reply(text, kOneRow));
}

TEST(LeaseMessageTest, ADuplicateHasNoRows) {
    const auto reply = parse_lease_reply(header(2), kOneRow);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, LeaseStatus::duplicate);
}

TEST(LeaseMessageTest, TheKeysOfAShardShareAHashTag) {
    const LeaseKeys keys("shop", 11);
    EXPECT_EQ(keys.state, "sluice:{shop:l11}");
    EXPECT_EQ(keys.expiries, "sluice:{shop:l11}:expiry");
}

// Another hash would part a fleet in two while it is upgraded.
TEST(LeaseMessageTest, ShardsStayWhereTheyAre) {
    EXPECT_EQ(lease_shard("login"), 2U);
    EXPECT_EQ(lease_shard("web"), 1U);
    EXPECT_EQ(lease_shard("other"), 5U);
}

TEST(LeaseMessageTest, BudgetsAreWrittenExactly) {
    const std::vector<FleetBudget> budgets = {{"web.data", 1.0 / 3, 1, 1}};
    const auto command = budget_command(budget_script(), LeaseKeys("f", 0), 3, 5s, budgets);
    const auto words = command.words();
    ASSERT_EQ(words.size(), 11U);
    EXPECT_EQ(words[5], "3");
    EXPECT_EQ(words[6], "5000");
    EXPECT_EQ(words[7], "web.data");
    EXPECT_EQ(std::stod(words[8]), 1.0 / 3);
}

}  // namespace

}  // namespace sluice
