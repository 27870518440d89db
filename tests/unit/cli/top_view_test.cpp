// The lines of `top` at any size.
#include "cli/top_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::cli {

namespace {

Json service(const std::string& name, double passed, double dropped) {
    return {{"name", name},
            {"mode", "enforce"},
            {"limits",
             {{{"rule", name + ".budget.data"},
               {"limit", "20k/s, burst 1,000"},
               {"mode", "enforce"},
               {"asked_per_s", passed}}}},
            {"per_s", {{"passed", passed}, {"dropped", dropped}, {"would_drop", 0.0}}}};
}

Json source(const std::string& address, double dropped) {
    return {{"source", address},   {"service", "login"},       {"dropped_per_s", dropped},
            {"passed_per_s", 1.0}, {"connections_per_s", 0.0}, {"rule", "login.per_source.data"}};
}

Json busy(size_t services, size_t sources) {
    Json data = {{"mode", "enforce"}, {"policy_version", 3}, {"by", "dropped"}};
    data["services"] = Json::array();
    data["sources"] = Json::array();
    for (size_t i = 0; i < services; ++i)
        data["services"].push_back(
            service("service-" + std::to_string(i), 10.0, static_cast<double>(i)));
    for (size_t i = 0; i < sources; ++i)
        data["sources"].push_back(source("2001:db8:1234:5678:9abc:def0:1234:" + std::to_string(i),
                                         1e6 - static_cast<double>(i)));
    return data;
}

std::string text_of(const ViewLine& line) {
    std::string text;
    for (const Cell& cell : line.cells)
        text += cell.text;
    return text;
}

bool shows(const std::vector<ViewLine>& lines, std::string_view text) {
    return std::any_of(lines.begin(), lines.end(), [&](const ViewLine& line) {
        return text_of(line).find(text) != std::string::npos;
    });
}

struct Size {
    size_t rows, columns;
};

class TopViewTest : public ::testing::TestWithParam<Size> {};
INSTANTIATE_TEST_SUITE_P(Sizes, TopViewTest,
                         ::testing::Values(Size{24, 80}, Size{50, 200}, Size{12, 40}, Size{1, 1},
                                           Size{3, 10}));

TEST_P(TopViewTest, FitsTheScreen) {
    const auto [rows, columns] = GetParam();
    for (const auto& data : {busy(0, 0), busy(2, 1), busy(40, 100)}) {
        const auto lines = draw_top(data, {}, rows, columns);
        EXPECT_LE(lines.size(), rows);
        for (const ViewLine& line : lines)
            EXPECT_LE(text_of(line).size(), columns);
    }
}

TEST(TopView, ShowsTheWorstWhereRoomIsShort) {
    const auto lines = draw_top(busy(40, 100), {}, 24, 80);
    EXPECT_TRUE(shows(lines, "service-39")) << "the one with the most drops";
    EXPECT_TRUE(shows(lines, "and 35 quieter ones"));
    EXPECT_TRUE(shows(lines, "2001:db8:1234:5678:9abc:def0:1234:0"));
    EXPECT_TRUE(shows(lines, "data 10/s of 20k/s"));
    EXPECT_TRUE(shows(lines, "q quit"));
}

TEST(TopView, MarksWhatIsSelectedAndWhatItIsSortedBy) {
    TopChoice choice;
    choice.selected = "2001:db8:1234:5678:9abc:def0:1234:1";
    choice.by = HeavyBy::passed;
    const auto lines = draw_top(busy(1, 3), choice, 24, 80);
    EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                            [](const ViewLine& line) { return line.selected; }),
              1);
    EXPECT_TRUE(shows(lines, "*PASSED"));
}

TEST(TopView, ATextOrAMessageTakesItsPlace) {
    TopChoice choice;
    choice.text = {"verdict  drop_banned"};
    choice.message = "ban 192.0.2.1 for 1h?";
    const auto lines = draw_top(busy(1, 3), choice, 24, 80);
    EXPECT_TRUE(shows(lines, "drop_banned"));
    EXPECT_TRUE(shows(lines, "ban 192.0.2.1"));
    EXPECT_FALSE(shows(lines, "2001:db8"));
    EXPECT_FALSE(shows(lines, "q quit"));
}

TEST(TopView, SaysWhereNothingIsInForce) {
    Json data = busy(1, 3);
    data["idle"] = Json::array();
    EXPECT_FALSE(shows(draw_top(data, TopChoice{}, 24, 80), "NOT IN FORCE"));
    data["idle"].push_back("eth0: not confirmed in time");
    EXPECT_TRUE(shows(draw_top(data, TopChoice{}, 24, 80), "NOT IN FORCE"));
}

TEST(TopView, HandsTheTerminalNothingToObey) {
    Json data = busy(1, 1);
    data["sources"][0]["rule"] = "\x1b[2Jx";
    for (const ViewLine& line : draw_top(data, {}, 24, 80))
        for (const char c : text_of(line))
            EXPECT_TRUE(c >= ' ' && c <= '~') << static_cast<int>(c);
}

}  // namespace

}  // namespace sluice::cli
