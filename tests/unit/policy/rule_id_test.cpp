#include "policy/rule_id.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(Rule, EveryOneHasANameThatReadsBack) {
    std::set<std::string> names;
    for (const Scope scope : {Scope::per_source, Scope::per_prefix, Scope::budget}) {
        for (const Dimension dimension : kDimensions) {
            const Rule rule{scope, dimension};
            const std::string name = format_rule(rule);
            EXPECT_EQ(*parse_rule(name), rule);
            names.insert(name);
        }
    }
    EXPECT_EQ(names.size(), 12U);
    EXPECT_TRUE(names.contains("per_source.connections"));
    EXPECT_TRUE(names.contains("budget.bytes"));
}

TEST(Rule, IsRefusedWithWhatToUse) {
    EXPECT_EQ(parse_rule("per_source").error().message, "\"per_source\" is not a rule");
    EXPECT_EQ(parse_rule("source.data").error().message, "\"source\" is not a scope");
    EXPECT_EQ(parse_rule("source.data").error().hint, "use one of: per_source per_prefix budget");
    EXPECT_EQ(parse_rule("budget.hits").error().message, "\"hits\" is not a dimension");
    EXPECT_FALSE(parse_rule("budget.data.x"));
    EXPECT_FALSE(parse_rule(""));
}

TEST(RuleId, NamesServiceAndRule) {
    const RuleId id{"login", {Scope::per_source, Dimension::data}};
    EXPECT_EQ(format_rule_id(id), "login.per_source.data");
    EXPECT_EQ(*parse_rule_id("login.per_source.data"), id);
    for (const char* text : {"", "login", "login.data", "Login.per_source.data", ".per_source.data",
                             "bans.operator", "login.per_source.data.x"})
        EXPECT_FALSE(parse_rule_id(text)) << text;
}

TEST(Modes, ReadBack) {
    for (const Mode mode : {Mode::off, Mode::observe, Mode::enforce})
        EXPECT_EQ(*parse_mode(mode_name(mode)), mode);
    EXPECT_FALSE(parse_mode("Enforce"));
    for (const XdpMode mode : {XdpMode::automatic, XdpMode::native, XdpMode::generic})
        EXPECT_EQ(*parse_xdp_mode(xdp_mode_name(mode)), mode);
    EXPECT_EQ(xdp_mode_name(XdpMode::automatic), "auto");
}

TEST(Names, AreShortAndPlain) {
    EXPECT_TRUE(is_valid_name("login"));
    EXPECT_TRUE(is_valid_name("api-v2"));
    EXPECT_TRUE(is_valid_name(std::string(32, 'a')));
    EXPECT_FALSE(is_valid_name(std::string(33, 'a')));
    EXPECT_FALSE(is_valid_name(""));
    EXPECT_FALSE(is_valid_name("Login"));
    EXPECT_FALSE(is_valid_name("a.b"));
    EXPECT_FALSE(is_valid_name("a_b"));
}

}  // namespace
}  // namespace sluice
