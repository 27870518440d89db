// [feeds.NAME] in a configuration.
#include "policy/ban_feed.h"

#include <gmock/gmock.h>

#include <ostream>

#include "policy/parse.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

BanFeed only_feed(const std::string& text) {
    const auto feeds = feeds_of(text, "sluice.toml");
    if (!feeds || feeds->size() != 1) {
        ADD_FAILURE() << (feeds ? "not one feed" : feeds.error().message);
        return {};
    }
    return feeds->front();
}

TEST(AFeed, FromAFileIsLookedAtEveryTenSeconds) {
    const BanFeed feed = only_feed("[feeds.mine]\nfile = '/etc/sluice/mine.txt'");
    EXPECT_EQ(feed.name, "mine");
    EXPECT_EQ(feed.type, FeedType::automatic);
    EXPECT_EQ(feed.file, "/etc/sluice/mine.txt");
    EXPECT_EQ(feed.interval, 10s);
    EXPECT_EQ(feed.ttl, 24h);
    EXPECT_EQ(feed.max_entries, 1'000'000U);
    EXPECT_EQ(feed.most_growth, 4);
    EXPECT_EQ(feed.most_shrink, 2);
}

TEST(AFeed, FromTheWebEveryHour) {
    const BanFeed feed = only_feed(
        "[feeds.drop]\ntype = 'spamhaus'\nurl = 'https://example.net/drop.json'\nmax_change = 3");
    EXPECT_EQ(feed.type, FeedType::spamhaus);
    EXPECT_EQ(feed.url, "https://example.net/drop.json");
    EXPECT_EQ(feed.interval, 1h);
    EXPECT_EQ(feed.most_growth, 3);
    EXPECT_EQ(feed.most_shrink, 3);
}

TEST(AFeed, OutlivesFourLooks) {
    EXPECT_EQ(only_feed("[feeds.x]\nurl = 'https://x/y'\ninterval = '12h'").ttl, 48h);
}

TEST(AFeed, FromCrowdsecEveryTenSeconds) {
    const BanFeed feed = only_feed(
        "[feeds.crowdsec]\ntype = 'crowdsec'\nurl = 'http://127.0.0.1:8080'\nkey_file = '/k'");
    EXPECT_EQ(feed.type, FeedType::crowdsec);
    EXPECT_EQ(feed.key_file, "/k");
    EXPECT_EQ(feed.interval, 10s);
}

TEST(AFeed, WithoutEncryptionIsWarnedOf) {
    const auto warnings = [](const std::string& url) {
        const auto policy = parse_policy("[feeds.x]\nurl = '" + url + "'", "sluice.toml");
        return policy ? policy->warnings : std::vector<std::string>{policy.error().message};
    };
    EXPECT_THAT(warnings("http://example.net/list"),
                testing::ElementsAre(testing::StartsWith("sluice.toml:2:7: feeds.x.url: is not "
                                                         "encrypted")));
    for (const char* url : {"https://example.net/list", "http://127.0.0.1:80/list",
                            "http://localhost/list", "http://[::1]:8080/list"})
        EXPECT_THAT(warnings(url), testing::IsEmpty()) << url;
}

struct Wrong {
    std::string text;
    std::string error;

    friend std::ostream& operator<<(std::ostream& out, const Wrong& wrong) {
        return out << wrong.text;
    }
};

class WrongFeeds : public testing::TestWithParam<Wrong> {};

TEST_P(WrongFeeds, AreRefusedWithTheirPlaceAndTheMend) {
    const auto policy = parse_policy(GetParam().text, "sluice.toml");
    ASSERT_FALSE(policy);
    EXPECT_EQ(
        policy.error().message + (policy.error().hint.empty() ? "" : "; " + policy.error().hint),
        "sluice.toml:" + GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongFeeds,
    testing::Values(
        Wrong{"[feeds.Drop]\nfile = '/x'",
              "1:1: feeds.Drop: is no valid name; use 1 to 32 of a-z, 0-9 and \"-\", such as "
              "\"spamhaus\""},
        Wrong{"[feeds.x]\ntype = 'drop'\nfile = '/x'",
              "2:8: feeds.x.type: \"drop\" is unknown; use \"auto\", \"plain\", \"spamhaus\", "
              "\"firehol\" or \"crowdsec\""},
        Wrong{"[feeds.x]\ntype = 'plain'",
              "1:1: feeds.x.url: is missing; add url = "
              "\"https://www.spamhaus.org/drop/drop_v4.json\", or file = "
              "\"/var/lib/sluice/drop_v4.json\""},
        Wrong{"[feeds.x]\nfile = '/x'\nurl = 'https://x'",
              "3:7: feeds.x.url: stands beside file; remove one of them"},
        Wrong{"[feeds.x]\nfile = 'x'",
              "2:8: feeds.x.file: is no absolute path; use one such as "
              "\"/var/lib/sluice/drop_v4.json\""},
        Wrong{"[feeds.x]\nurl = 'file:///etc/passwd'",
              "2:7: feeds.x.url: is no URL of the web; use one such as "
              "\"https://www.spamhaus.org/drop/drop_v4.json\""},
        Wrong{"[feeds.x]\nurl = 'https://me:secret@example.net/list'",
              "2:7: feeds.x.url: holds a user or a password; use a URL without them"},
        Wrong{"[feeds.x]\nurl = 'https://x'\ninterval = '1h'\nttl = '90m'",
              "4:7: feeds.x.ttl: is out of range; use a time of \"2h\" to \"90d\""},
        Wrong{"[feeds.x]\nurl = 'https://x'\ninterval = '10ms'",
              "3:12: feeds.x.interval: is out of range; use a time of \"1s\" to \"7d\""},
        Wrong{"[feeds.x]\nfile = '/x'\nkey_file = '/k'",
              "3:12: feeds.x.key_file: is for CrowdSec alone; remove it"},
        Wrong{"[feeds.x]\ntype = 'crowdsec'\nurl = 'http://127.0.0.1:8080'",
              "1:1: feeds.x.key_file: is missing; add key_file = \"/etc/sluice/crowdsec.key\""},
        Wrong{"[feeds.x]\ntype = 'crowdsec'\nurl = 'http://[::1]'\nkey_file = '/k'\nttl = '1d'",
              "5:7: feeds.x.ttl: is not for CrowdSec, whose decisions end by themselves; remove "
              "it"},
        Wrong{"[feeds.x]\nfile = '/x'\nmax_entires = 5",
              "3:1: feeds.x.max_entires: unknown key; did you mean \"max_entries\"?"},
        Wrong{"[[feeds]]\nfile = '/x'", "1:1: feeds: is an array; use [feeds.spamhaus]"}));

}  // namespace
}  // namespace sluice
