// A cluster of three masters and three replicas: commands find their nodes, through moves and loss.
#include <memory>

#include "append_both.lua.h"
#include "redis/slot.h"
#include "redis_test.h"
#include "server_cluster.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using lab::text;
using redis::Command;
using redis::Reply;
using redis::slot_of;
using testing::HasSubstr;
using namespace std::chrono_literals;

class ClusterTest : public lab::RedisTest {
  protected:
    // One for all tests, since making it takes seconds; each leaves it whole.
    static void SetUpTestSuite() {
        if (RedisServer::missing().empty())
            cluster_ = std::make_unique<lab::ServerCluster>();
    }
    static void TearDownTestSuite() { cluster_.reset(); }

    static std::string url() { return cluster_->url(); }
    static Redis open() { return Redis::open(patient(url())).value(); }
    static RedisServer& master_of(const std::string& key) { return cluster_->master_of(key); }

    static inline std::unique_ptr<lab::ServerCluster> cluster_;
};

TEST_F(ClusterTest, EachKeyFindsItsNodeAndRepliesKeepTheirOrder) {
    Redis redis = open();
    std::vector<Command> commands;
    for (int i = 0; i < 100; i++)
        commands.push_back({"SET", "key" + std::to_string(i), std::to_string(i)});
    for (int i = 0; i < 100; i++)
        commands.push_back({"GET", "key" + std::to_string(i)});
    const auto replies = redis.run(commands).value();
    for (size_t i = 0; i < 100; i++) {
        EXPECT_EQ(text(replies[i]), "OK");
        EXPECT_EQ(text(replies[100 + i]), std::to_string(i));
    }
    EXPECT_EQ(redis.health().state, redis::BreakerState::closed);
}

TEST_F(ClusterTest, SlotsAreThoseOfRedis) {
    for (const std::string key :
         {"", "a", "123456789", "sluice:{shop:l7}", "sluice:{shop:l7}:expiry", "{}a", "a{b}{c}",
          "a{{b}}", "{a", "a}b{c}", "\xff\x01 "})
        EXPECT_EQ(number(cluster_->node(0).ask({"CLUSTER", "KEYSLOT", key})), slot_of(key)) << key;
}

TEST_F(ClusterTest, ScriptsGoWhereTheirKeysAre) {
    Redis redis = open();
    for (const char* tag : {"{a}", "{b}", "{c}", "{d}"}) {
        const std::string first = std::string(tag) + "1", second = std::string(tag) + "2";
        EXPECT_EQ(number(redis.run(lua::kAppendBoth.call({first, second}).add("xy"))), 2) << tag;
    }
    const auto across = redis.run(lua::kAppendBoth.call({"a", "b"}).add("x")).value();
    EXPECT_EQ(across.error_word(), "CROSSSLOT");
}

TEST_F(ClusterTest, ACommandWithoutKeyGoesWithTheOneBeforeIt) {
    Redis redis = open();
    std::vector<Command> commands;
    for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
        commands.push_back({"SET", key, "1"});
        commands.push_back(Command{"EVAL", "return ARGV[1]", "0"}.add_run_id());
    }
    const auto replies = redis.run(commands).value();
    for (size_t i = 0; i < commands.size(); i += 2) {
        const std::string key(*commands[i].key());
        EXPECT_THAT(text(master_of(key).ask({"INFO", "server"})),
                    HasSubstr("run_id:" + text(replies[i + 1])))
            << key;
    }
}

TEST_F(ClusterTest, ASlotThatMovesIsFollowed) {
    Redis redis = open();
    const std::string there = "{moving}there", gone = "{moving}gone";
    const std::string slot = std::to_string(slot_of(there));
    EXPECT_EQ(text(redis.run({"SET", there, "1"})), "OK");
    EXPECT_EQ(text(redis.run({"SET", gone, "2"})), "OK");
    RedisServer& from = master_of(there);
    RedisServer& to = cluster_->other_master(from);

    cluster_->announce_move(slot, from, to);
    cluster_->move_key(gone, from, to);
    // One node has the one key, the other the other: ASK.
    EXPECT_EQ(from.ask({"GET", gone}).error_word(), "ASK");
    const std::vector<Command> both = {{"GET", there}, {"GET", gone}, {"GET", there}};
    const auto halfway = redis.run(both).value();
    EXPECT_EQ(text(halfway[0]), "1");
    EXPECT_EQ(text(halfway[1]), "2");
    EXPECT_EQ(text(halfway[2]), "1");
    // A script with a key on either side can't run anywhere: it is tried, and then refused.
    const auto torn = redis.run(lua::kAppendBoth.call({there, gone}).add("x")).value();
    EXPECT_EQ(torn.error_word(), "TRYAGAIN");

    cluster_->move_key(there, from, to);
    EXPECT_EQ(number(redis.run(lua::kAppendBoth.call({there, gone}).add("x"))), 2);
    cluster_->finish_move(slot, from, to);
    EXPECT_EQ(from.ask({"GET", gone}).error_word(), "MOVED");
    const auto moved = redis.run(both).value();
    EXPECT_EQ(text(moved[0]), "1x");
    EXPECT_EQ(text(moved[1]), "2x");
    EXPECT_EQ(redis.health().state, redis::BreakerState::closed);
}

TEST_F(ClusterTest, ANodeAloneSaysThatItIsOne) {
    RedisServer& elsewhere = cluster_->other_master(master_of("key"));
    Redis redis = Redis::open(patient(elsewhere.url())).value();
    const Reply reply = redis.run({"GET", "key"}).value();
    EXPECT_EQ(reply.error_word(), "MOVED");
    EXPECT_THAT(reply.check().error().hint, HasSubstr("redis+cluster://"));
}

TEST_F(ClusterTest, OneDeadNodeLeavesTheOthersTheirs) {
    redis::Options options = patient(url());
    options.connect_timeout = 1s;
    Redis redis = Redis::open(options).value();
    const std::string lost_key = "a";
    RedisServer& lost = master_of(lost_key);
    std::string kept_key = "b";
    while (&master_of(kept_key) == &lost)
        kept_key += 'b';
    const std::vector<Command> both = {{"SET", lost_key, "1"}, {"SET", kept_key, "1"}};
    EXPECT_EQ(text(redis.run(both).value()[0]), "OK");
    EXPECT_EQ(number(lost.ask({"WAIT", "1", "5000"})), 1);

    lost.kill();
    const auto replies = redis.run(both).value();
    EXPECT_EQ(replies[0].error_word(), "UNREACHABLE");
    EXPECT_EQ(replies[0].check().error().code, ErrorCode::unreachable);
    EXPECT_EQ(text(replies[1]), "OK");
    EXPECT_EQ(redis.health().state, redis::BreakerState::open);
    EXPECT_EQ(redis.health().server, lost.address());

    // Its replica takes over; until then the others go on.
    EXPECT_TRUE(lab::eventually(
        [&] {
            const auto now = redis.run(both);
            EXPECT_TRUE(now && text((*now)[1]) == "OK");
            return now && text((*now)[0]) == "OK";
        },
        60s));
    EXPECT_EQ(redis.health().state, redis::BreakerState::closed);
    lost.start();
    EXPECT_TRUE(lab::eventually([&] {
        return text(lost.ask({"INFO", "replication"})).find("master_link_status:up") !=
               std::string::npos;
    }));
}

TEST_F(ClusterTest, ThatIsAwayIsUnreachableAsAWhole) {
    redis::Options options = patient("redis+cluster://127.0.0.1:1,127.0.0.1:2");
    Redis redis = Redis::open(options).value();
    const auto refused = redis.run({"GET", "k"});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unreachable);
    EXPECT_THAT(refused.error().message, HasSubstr("127.0.0.1:2: connect: Connection refused"));
    EXPECT_EQ(redis.health().state, redis::BreakerState::open);
    const RedisServer alone;
    Redis no_cluster = Redis::open(patient("redis+cluster://" + alone.address())).value();
    EXPECT_THAT(text(no_cluster.run({"GET", "k"})), HasSubstr("cluster support disabled"));
}

}  // namespace
}  // namespace sluice
