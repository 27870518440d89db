// What the doctor finds out about a user's rights in a real Redis, and that it changes nothing
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "doctor/doctor.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::RedisServer;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kDocumented = "include " SLUICE_SOURCE_DIR "/docs/redis-acl.conf";
const std::string kPassword = "replace-this";

class RedisRightsTest : public lab::RedisTest {
  protected:
    // The rights of a server with these settings, after `asked` as the default user.
    void examine(std::vector<redis::Command> asked = {}, const std::string& user = "sluice") {
        server_ = std::make_unique<RedisServer>(std::vector<std::string>{kDocumented});
        for (const redis::Command& command : asked)
            ASSERT_FALSE(server_->ask(command).is_error()) << server_->ask(command).error_text();
        RedisSettings settings;
        settings.url = server_->url();
        if (!user.empty()) {
            settings.username = user;
            settings.password_file = server_->folder().write("password", kPassword);
        }
        settings.connect_timeout = settings.command_timeout = lab::kPatience;
        patient_.policy = Policy{};
        patient_.policy->redis = settings;
        patient_.redis = look_at_redis(settings, "shop");
        ASSERT_FALSE(patient_.redis->error) << patient_.redis->error->message;
        ASSERT_TRUE(patient_.redis->rights);
        EXPECT_EQ(server_->ask({"DBSIZE"}), redis::Reply::integer(0));
    }
    [[nodiscard]] Finding finding() const {
        const auto checks = redis_checks();
        return std::ranges::find(checks, "redis-acl", &HostCheck::name)->run(patient_);
    }
    [[nodiscard]] const RedisRights& rights() const { return *patient_.redis->rights; }

    Patient patient_;
    std::unique_ptr<RedisServer> server_;
};

TEST_F(RedisRightsTest, ThatAreDocumentedAreEnoughAndNoMore) {
    examine();
    EXPECT_THAT(rights().missing, IsEmpty());
    EXPECT_THAT(rights().closed, IsEmpty());
    EXPECT_THAT(rights().too_many, IsEmpty());
    EXPECT_EQ(finding().outcome, Outcome::pass) << finding().seen;
    EXPECT_THAT(finding().seen, HasSubstr("as sluice"));
}

// Whatever is taken from the documented user is missed, by its name.
TEST_F(RedisRightsTest, EachCommandThatIsMissingIsNamed) {
    // All but those without which nobody connects.
    for (const char* command : {"eval",    "evalsha", "wait",     "hget",        "hmget",
                                "hset",    "hdel",    "unlink",   "zadd",        "zrem",
                                "zcard",   "zscore",  "zrange",   "zrevrange",   "zrangebyscore",
                                "get",     "set",     "getrange", "setrange",    "strlen",
                                "hgetall", "hincrby", "hlen",     "zrangebylex", "zremrangebyrank",
                                "xadd",    "xread",   "xrevrange"}) {
        examine({{"ACL", "SETUSER", "sluice", std::string("-") + command}});
        EXPECT_THAT(rights().missing, ElementsAre(std::string("+") + command));
        EXPECT_THAT(rights().closed, IsEmpty()) << command;
        EXPECT_EQ(finding().outcome, Outcome::fail) << command;
        EXPECT_EQ(finding().mend, std::string("redis-cli ACL SETUSER sluice +") + command);
        if (HasFailure())
            break;
    }
}

TEST_F(RedisRightsTest, KeysThatAreClosedAreNamed) {
    examine({{"ACL", "SETUSER", "sluice", "resetkeys", "~other:*"}});
    EXPECT_THAT(rights().missing, IsEmpty());
    EXPECT_THAT(rights().closed,
                ElementsAre("sluice:{shop:l0}", HasSubstr("bans}"), "sluice:{shop:audit}",
                            "sluice:{shop:hosts}", "sluice:{shop:policy}"));
    EXPECT_EQ(finding().outcome, Outcome::fail);
    EXPECT_EQ(finding().mend, "redis-cli ACL SETUSER sluice '~sluice:*'");
}

TEST_F(RedisRightsTest, KeysThatMayOnlyBeReadAreNamed) {
    examine({{"ACL", "SETUSER", "sluice", "resetkeys", "~sluice:{shop:doctor}", "%R~sluice:*"}});
    EXPECT_THAT(rights().closed, testing::Contains("sluice:{shop:l0}"));
}

TEST_F(RedisRightsTest, TooManyAreTold) {
    examine({{"ACL", "SETUSER", "sluice", "+config", "+acl|whoami"}});
    EXPECT_EQ(rights().user, "sluice");
    EXPECT_THAT(rights().too_many, ElementsAre("config"));
    EXPECT_EQ(finding().outcome, Outcome::warn);
    examine({{"ACL", "SETUSER", "sluice", "~*"}});
    EXPECT_THAT(rights().too_many, ElementsAre("other keys"));
}

TEST_F(RedisRightsTest, OfNobodyInParticularAreTold) {
    examine({}, "");
    EXPECT_EQ(rights().user, "default");
    EXPECT_EQ(finding().outcome, Outcome::warn);
    EXPECT_THAT(finding().seen, HasSubstr("nobody in particular"));
}

}  // namespace
}  // namespace sluice
