#include "redis/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::redis {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string hosts(const Target& target) {
    std::string text;
    for (const Endpoint& endpoint : target.endpoints)
        text += (text.empty() ? "" : " ") + endpoint.to_string();
    return text;
}

TEST(RedisUrl, NamesOneServer) {
    const Target target = parse_url("redis://192.0.2.1:6380/3").value();
    EXPECT_EQ(target.form, Form::server);
    EXPECT_FALSE(target.tls);
    EXPECT_EQ(hosts(target), "192.0.2.1:6380");
    EXPECT_EQ(target.database, 3U);
    EXPECT_EQ(hosts(parse_url("redis://redis.example").value()), "redis.example:6379");
    EXPECT_EQ(hosts(parse_url("redis://redis.example/").value()), "redis.example:6379");
    EXPECT_EQ(hosts(parse_url("redis://[2001:db8::1]").value()), "[2001:db8::1]:6379");
    EXPECT_EQ(hosts(parse_url("redis://[2001:db8::1]:1").value()), "[2001:db8::1]:1");
    EXPECT_TRUE(parse_url("rediss://redis.example").value().tls);
    EXPECT_EQ(hosts(parse_url("unix:///run/redis/redis.sock").value()), "/run/redis/redis.sock");
}

TEST(RedisUrl, NamesSentinelsAndTheirMaster) {
    const Target target =
        parse_url("rediss+sentinel://a.example,b.example:26380,[2001:db8::1]/shop/2").value();
    EXPECT_EQ(target.form, Form::sentinel);
    EXPECT_TRUE(target.tls);
    EXPECT_EQ(hosts(target), "a.example:26379 b.example:26380 [2001:db8::1]:26379");
    EXPECT_EQ(target.master_name, "shop");
    EXPECT_EQ(target.database, 2U);
    EXPECT_EQ(parse_url("redis+sentinel://a/shop").value().database, 0U);
}

TEST(RedisUrl, NamesNodesOfACluster) {
    const Target target = parse_url("redis+cluster://a.example,b.example:7000").value();
    EXPECT_EQ(target.form, Form::cluster);
    EXPECT_EQ(hosts(target), "a.example:6379 b.example:7000");
    EXPECT_TRUE(parse_url("rediss+cluster://a").value().tls);
}

TEST(RedisUrl, NothingElseIsOne) {
    for (const std::string url : {"",
                                  "redis",
                                  "redis://",
                                  "redis:///0",
                                  "http://a",
                                  "redis://a b",
                                  "redis://a:",
                                  "redis://a:0",
                                  "redis://a:65536",
                                  "redis://a:x",
                                  "redis://a:1:2",
                                  "redis://2001:db8::1",
                                  "redis://[::1",
                                  "redis://[::1]x",
                                  "redis://a,b",
                                  "redis://a/x",
                                  "redis://a/-1",
                                  "redis://a/1/2",
                                  "redis://a/65536",
                                  "unix://",
                                  "unix://a",
                                  "redis+sentinel://a",
                                  "redis+sentinel://a/",
                                  "redis+sentinel:///shop",
                                  "redis+sentinel://a,/shop",
                                  "redis+sentinel://a/shop/x",
                                  "redis+cluster://a/1",
                                  "redis+cluster://,",
                                  "redis://a?db=1"}) {
        const auto target = parse_url(url);
        EXPECT_FALSE(target) << url;
        if (!target) {
            EXPECT_EQ(target.error().code, ErrorCode::usage);
        }
    }
    std::string many = "redis+cluster://a";
    for (int i = 0; i < 64; i++)
        many += ",a";
    EXPECT_FALSE(parse_url(many));
}

TEST(RedisUrl, APasswordInItIsRefusedAndNotShown) {
    for (const std::string url :
         {"redis://:secret@192.0.2.1", "redis://user:secret@192.0.2.1:6379/0", "redis://secret@a",
          "reddis://user:secret@a", "redis+sentinel://a,user:secret@b/shop", "secret"}) {
        const auto target = parse_url(url);
        ASSERT_FALSE(target) << url;
        EXPECT_THAT(target.error().message + target.error().hint, Not(HasSubstr("secret"))) << url;
    }
    EXPECT_THAT(parse_url("redis://u:p@a").error().hint, HasSubstr("password_file"));
}

TEST(RedisRedirect, HasItsPortBehindTheLastColon) {
    EXPECT_EQ(parse_redirect("192.0.2.1:6381").value(), (Endpoint{"192.0.2.1", 6381, {}}));
    EXPECT_EQ(parse_redirect("2001:db8::1:6381").value(), (Endpoint{"2001:db8::1", 6381, {}}));
    EXPECT_EQ(parse_redirect(":6381").value(), (Endpoint{"", 6381, {}}));
    EXPECT_FALSE(parse_redirect("192.0.2.1"));
    EXPECT_FALSE(parse_redirect("192.0.2.1:"));
}

}  // namespace
}  // namespace sluice::redis
