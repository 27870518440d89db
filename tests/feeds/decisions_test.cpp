#include "feeds/decisions.h"

#include <gmock/gmock.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using testing::ElementsAre, testing::IsEmpty;

Prefix prefix(const char* text) {
    return Prefix::parse(text).value();
}

nanoseconds duration(std::string_view text) {
    const auto parsed = parse_go_duration(text);
    if (!parsed)
        ADD_FAILURE() << parsed.error().message;
    return parsed ? *parsed : nanoseconds(-1);
}

TEST(AGoDuration, IsReadAsGoWritesIt) {
    EXPECT_EQ(duration("3h59m48.5s"), 3h + 59min + 48'500ms);
    EXPECT_EQ(duration("59m59.169112749s"), 59min + 59'169'112'749ns);
    EXPECT_EQ(duration("20.487361ms"), 20'487'361ns);
    EXPECT_EQ(duration("1.5\u00b5s"), 1500ns);
    EXPECT_EQ(duration("100us"), 100us);
    EXPECT_EQ(duration("8760h0m0s"), 8760h);
    EXPECT_EQ(duration("0s"), 0ns);
    EXPECT_EQ(duration("0"), 0ns);
}

TEST(AGoDuration, ThatIsNegativeIsOver) {
    EXPECT_EQ(duration("-20.487361ms"), -20'487'361ns);
    EXPECT_EQ(duration("-1h2m"), -62min);
}

TEST(AGoDuration, BeyondAllClocksIsAsLongAsThereIs) {
    EXPECT_EQ(duration("99999999999999999999h"), nanoseconds::max());
    EXPECT_EQ(duration("-99999999999999999999h"), -nanoseconds::max());
}

TEST(AGoDuration, ThatIsNoneIsRefused) {
    for (const char* text : {"", "-", "4", "h", "4x", "4h3", "4 h", "inf", "nanh", "1e3h", "--4h",
                             ".", ".h", "4h-3m", "0x4h"})
        EXPECT_FALSE(parse_go_duration(text)) << text;
}

constexpr std::string_view kBoth =
    R"({"deleted":[{"duration":"-20ms","id":1,"origin":"cscli","scenario":"x","scope":"Ip",)"
    R"("type":"ban","value":"198.51.100.7"}],"new":[{"duration":"1h","id":2,"origin":"cscli",)"
    R"("scenario":"x","scope":"Range","type":"ban","value":"203.0.113.0/24"}]})";

TEST(TheStream, IsReadWithBothOfItsLists) {
    const auto stream = parse_decisions(kBoth);
    ASSERT_TRUE(stream);
    ASSERT_EQ(stream->added.size(), 1U);
    EXPECT_EQ(stream->added[0].id, 2U);
    EXPECT_EQ(stream->added[0].prefix, prefix("203.0.113.0/24"));
    EXPECT_EQ(stream->added[0].left, 1h);
    EXPECT_THAT(stream->deleted, ElementsAre(1U));
    EXPECT_EQ(stream->skipped, 0U);
}

TEST(TheStream, MayHaveNothing) {
    for (const char* text :
         {R"({"deleted":null,"new":null})", R"({"new":[],"deleted":[]})", R"({"new":null})"}) {
        const auto stream = parse_decisions(text);
        ASSERT_TRUE(stream) << text;
        EXPECT_THAT(stream->added, IsEmpty());
        EXPECT_THAT(stream->deleted, IsEmpty());
    }
}

TEST(TheStream, IsNothingElse) {
    const std::string deep(100'000, '[');
    for (const std::string_view text :
         {std::string_view(""), std::string_view("null"), std::string_view("[]"),
          std::string_view("7"), std::string_view(R"({"message":"access forbidden"})"),
          std::string_view("<html>"), std::string_view(deep), kBoth.substr(0, kBoth.size() - 1),
          kBoth.substr(0, kBoth.size() / 2)})
        EXPECT_FALSE(parse_decisions(text)) << text.substr(0, 40);
    EXPECT_FALSE(parse_decisions(std::string(kBoth) + "x"));
}

// One decision with these fields in place of the usual ones.
DecisionStream with(std::string_view fields) {
    const auto stream = parse_decisions(R"({"new":[{"id":7,"type":"ban","scope":"Ip",)"
                                        R"("value":"198.51.100.7","duration":"1h",)" +
                                        std::string(fields) + "}]}");
    if (!stream)
        ADD_FAILURE() << stream.error().message;
    return stream ? *stream : DecisionStream{};
}

TEST(ADecision, AboutNoAddressIsSkippedAndCounted) {
    for (const char* fields :
         {R"("scope":"Country","value":"CN")", R"("scope":"AS","value":"64496")",
          R"("type":"captcha")", R"("value":"nonsense")", R"("value":"198.51.100.7/99")",
          R"("duration":"soon")", R"("duration":"")"})
        EXPECT_EQ(with(fields).skipped, 1U) << fields;
    EXPECT_EQ(with(R"("scope":"Country")").skipped_first, "scope \"Country\" is no address");
}

TEST(ADecision, WithoutItsFieldsIsSkipped) {
    for (const char* text :
         {R"({"new":[{}]})", R"({"new":[{"id":1}]})",
          R"({"new":[{"id":1,"type":"ban","scope":"Ip","value":7,"duration":"1h"}]})",
          R"({"new":[{"id":1,"type":"ban","scope":"Ip","value":"192.0.2.1","duration":7}]})",
          R"({"new":[{"id":-1,"type":"ban","scope":"Ip","value":"192.0.2.1","duration":"1h"}]})"}) {
        const auto stream = parse_decisions(text);
        ASSERT_TRUE(stream) << text;
        EXPECT_THAT(stream->added, IsEmpty()) << text;
        EXPECT_EQ(stream->skipped, 1U) << text;
    }
}

TEST(ADecision, WithoutAnIdCannotBeDeletedAndIsSkipped) {
    const auto stream = parse_decisions(
        R"({"new":[{"type":"ban","scope":"Ip","value":"198.51.100.7","duration":"1h"}]})");
    ASSERT_TRUE(stream);
    EXPECT_THAT(stream->added, IsEmpty());
    EXPECT_EQ(stream->skipped, 1U);
}

TEST(ADecision, IsAboutTheCanonicalAddress) {
    EXPECT_EQ(with(R"("value":"::ffff:198.51.100.30")").added[0].prefix, prefix("198.51.100.30"));
    EXPECT_EQ(with(R"("scope":"range","value":"203.0.113.77/24")").added[0].prefix,
              prefix("203.0.113.0/24"));
}

TEST(ADecision, AboutAnIpv6HostIsAboutItsNetwork) {
    EXPECT_EQ(with(R"("value":"2001:db8:c:1::5")").added[0].prefix, prefix("2001:db8:c:1::/64"));
    EXPECT_EQ(with(R"("scope":"Range","value":"2001:db8:c::/48")").added[0].prefix,
              prefix("2001:db8:c::/48"));
    EXPECT_EQ(with(R"("scope":"Range","value":"2001:db8:c:1::5/128")").added[0].prefix,
              prefix("2001:db8:c:1::5"));
}

TEST(ADecision, MayHaveFieldsThatNobodyKnows) {
    const DecisionStream stream =
        with(R"("more":{"id":99,"value":"192.0.2.1"},"list":[{"id":98}],"uuid":null)");
    ASSERT_EQ(stream.added.size(), 1U);
    EXPECT_EQ(stream.added[0].id, 7U);
    EXPECT_EQ(stream.added[0].prefix, prefix("198.51.100.7"));
}

// --- the book
// ---------------------------------------------------------------------------------------

class ABook : public testing::Test {
  protected:
    using Book = DecisionBook;

    Book::Change add(uint64_t id, nanoseconds left, const char* where = "198.51.100.7") {
        return book_.apply({.added = {{id, prefix(where), left}}}, now_);
    }
    Book::Change erase(uint64_t id) { return book_.apply({.deleted = {id}}, now_); }
    nanoseconds left() {
        const auto bans = book_.bans();
        return bans.size() == 1 ? bans[0].until - now_ : nanoseconds(-1);
    }

    Book book_;
    Book::Time now_ = Book::Time(1000h);
};

TEST_F(ABook, HoldsTheLongestOfSeveralInEitherOrder) {
    EXPECT_EQ(add(1, 4h).put.size(), 1U);
    EXPECT_THAT(add(2, 1h).put, IsEmpty());
    EXPECT_FALSE(add(3, 2h).shortens);
    EXPECT_EQ(left(), 4h);
    book_ = {};
    (void)add(2, 1h);
    EXPECT_EQ(add(1, 4h).put.size(), 1U);
    EXPECT_EQ(left(), 4h);
}

TEST_F(ABook, TakesBackOnlyWhatNoOtherDecisionHolds) {
    (void)add(1, 4h);
    (void)add(2, 1h);
    const auto change = erase(1);
    EXPECT_THAT(change.gone, IsEmpty());
    EXPECT_TRUE(change.shortens);
    EXPECT_EQ(left(), 1h);
    EXPECT_THAT(erase(2).gone, ElementsAre(prefix("198.51.100.7")));
    EXPECT_EQ(book_.size(), 0U);
}

TEST_F(ABook, HearsOfTheSameDeletionTwice) {
    (void)add(1, 4h);
    (void)erase(1);
    const auto again = erase(1);
    EXPECT_THAT(again.gone, IsEmpty());
    EXPECT_THAT(again.put, IsEmpty());
}

TEST_F(ABook, NeverHasWhatIsOver) {
    EXPECT_THAT(add(1, -1h).put, IsEmpty());
    EXPECT_THAT(add(2, 0s).put, IsEmpty());
    EXPECT_EQ(book_.size(), 0U);
    // Also where it stood.
    (void)add(3, 1h);
    EXPECT_THAT(add(3, -1s).gone, ElementsAre(prefix("198.51.100.7")));
}

TEST_F(ABook, KnowsADecisionThatMoved) {
    (void)add(1, 1h, "198.51.100.7");
    const auto change = add(1, 1h, "198.51.100.8");
    EXPECT_THAT(change.gone, ElementsAre(prefix("198.51.100.7")));
    EXPECT_EQ(book_.bans().size(), 1U);
}

TEST_F(ABook, WithTheLongestOfAllTimesDoesNotOverflow) {
    (void)add(1, nanoseconds::max());
    EXPECT_EQ(book_.bans()[0].until, Book::Time::max());
}

TEST_F(ABook, ForgetsWhatIsOver) {
    (void)add(1, 1h);
    (void)add(2, 2h, "203.0.113.0/24");
    book_.drop_expired(now_ + 1h);
    EXPECT_EQ(book_.size(), 1U);
    EXPECT_EQ(book_.bans()[0].prefix, prefix("203.0.113.0/24"));
}

}  // namespace
}  // namespace sluice
