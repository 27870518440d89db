#include "redis/reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RedisReply, IsWhatTheCallerExpectsOrSaysWhatItIs) {
    EXPECT_EQ(Reply::integer(-3).as_integer().value(), -3);
    EXPECT_EQ(Reply::text("a").as_text().value(), "a");
    EXPECT_EQ(Reply::status("OK").as_text().value(), "OK");
    EXPECT_EQ(Reply::array({Reply(), Reply::integer(1)}).as_array().value().size(), 2U);
    EXPECT_TRUE(Reply().check());

    EXPECT_THAT(Reply::text("3").as_integer().error().message, HasSubstr("text where a number"));
    EXPECT_THAT(Reply().as_text().error().message, HasSubstr("nothing where text"));
    EXPECT_THAT(Reply::integer(1).as_array().error().message, HasSubstr("a number where a list"));
}

TEST(RedisReply, AnErrorIsThatErrorWhateverWasExpected) {
    const Reply reply = Reply::error("NOPERM this user has no permissions");
    EXPECT_EQ(reply.error_word(), "NOPERM");
    for (const Error& error : {reply.check().error(), reply.as_integer().error(),
                               reply.as_text().error(), reply.as_array().error()}) {
        EXPECT_EQ(error.message, "NOPERM this user has no permissions");
        EXPECT_EQ(error.code, ErrorCode::not_permitted);
        EXPECT_THAT(error.hint, HasSubstr("ACL SETUSER"));
    }
    EXPECT_EQ(Reply::text("NOPERM").error_word(), "");
}

TEST(RedisReply, WordsOfOthersAreHarmlessAndBounded) {
    EXPECT_EQ(explain("ERR a\x1b[2J").message, "ERR a\\x1b[2J");
    EXPECT_LT(explain(std::string(100'000, 'x')).message.size(), 1'000U);
    EXPECT_EQ(explain("").message, "");
}

TEST(RedisReply, SomeErrorsAreAboutTheServerNotTheCommand) {
    for (const char* word : {"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN"}) {
        EXPECT_TRUE(is_out_of_service(Reply::error(std::string(word) + " …"))) << word;
        EXPECT_EQ(explain(word).code, ErrorCode::unreachable);
    }
    for (const char* word : {"NOPERM", "WRONGTYPE", "OOM", "BUSY", "ERR", "NOSCRIPT"})
        EXPECT_FALSE(is_out_of_service(Reply::error(std::string(word) + " …"))) << word;
    EXPECT_FALSE(is_out_of_service(Reply::text("LOADING")));
    EXPECT_FALSE(is_out_of_service(Reply()));
}

}  // namespace
}  // namespace sluice::redis
