// Writes that count only once replicas have them.
#include <memory>

#include "redis/deadline.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using lab::text;
using redis::Command;
using testing::HasSubstr;
using testing::StartsWith;
using namespace std::chrono_literals;

class Replicas : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        master_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(master_->url())).value());
    }
    void add_replica() {
        replicas_.push_back(std::make_unique<RedisServer>(
            std::vector<std::string>{"replicaof 127.0.0.1 " + std::to_string(master_->port())}));
        ASSERT_TRUE(followed_by(replicas_.size())) << replicas_.back()->log();
    }
    // By so many that acknowledge what they have.
    [[nodiscard]] bool followed_by(size_t replicas) const {
        return lab::eventually([&] {
            const auto role = master_->ask({"ROLE"});
            const auto parts = role.as_array();
            if (!parts || parts->size() != 3)
                return false;
            const auto following = *(*parts)[2].as_array();
            return following.size() == replicas &&
                   std::ranges::all_of(following, [](const redis::Reply& one) {
                       return (*one.as_array())[2] != redis::Reply::text("0");
                   });
        });
    }
    // One that gives up on a replica soon.
    void be_short() {
        redis::Options options = patient(master_->url());
        options.command_timeout = 1s;
        redis_.emplace(Redis::open(options).value());
    }
    std::string write(const std::string& value) {
        const std::vector<Command> commands = {{"SET", "k", value}, {"INCR", "n"}};
        const auto replies = redis_->run_replicated(commands);
        if (!replies)
            return "error: " + replies.error().message;
        EXPECT_EQ(replies->size(), commands.size());
        EXPECT_EQ((*replies)[0].is_error(), (*replies)[1].is_error());
        return (*replies)[0].is_error() ? std::string((*replies)[0].error_text()) : "OK";
    }

    std::unique_ptr<RedisServer> master_;
    std::vector<std::unique_ptr<RedisServer>> replicas_;
    std::optional<Redis> redis_;
};

TEST_F(Replicas, AServerWithoutAnyIsNotWaitedFor) {
    const auto begun = redis::Clock::now();
    EXPECT_EQ(write("a"), "OK");
    EXPECT_LT(redis::Clock::now() - begun, lab::kPatience / 2);
    EXPECT_THAT(text(master_->ask({"INFO", "commandstats"})), Not(HasSubstr("cmdstat_wait")));
}

TEST_F(Replicas, HaveWhatCounts) {
    add_replica();
    EXPECT_EQ(write("a"), "OK");
    EXPECT_EQ(text(replicas_[0]->ask({"GET", "k"})), "a") << "at once";
}

TEST_F(Replicas, OneThatStandsStillMakesAWriteNotCount) {
    add_replica();
    be_short();
    ASSERT_EQ(write("a"), "OK");
    replicas_[0]->pause();
    EXPECT_EQ(write("b"), "NOREPLICAS 0 replicas have the write, 1 should");
    EXPECT_EQ(text(master_->ask({"GET", "k"})), "b") << "what it did stays done";
    EXPECT_EQ(redis_->health().state, redis::BreakerState::closed) << "the server itself is well";
    replicas_[0]->resume();
    EXPECT_TRUE(lab::eventually([&] { return write("c") == "OK"; }));
}

TEST_F(Replicas, HalfOfThemAreEnough) {
    add_replica();
    add_replica();
    be_short();
    replicas_[1]->pause();
    EXPECT_EQ(write("a"), "OK");
    replicas_[0]->pause();
    EXPECT_THAT(write("b"), StartsWith("NOREPLICAS"));
    replicas_[0]->resume();
    replicas_[1]->resume();
}

TEST_F(Replicas, OneThatLeftIsNotWaitedForTwice) {
    add_replica();
    be_short();
    ASSERT_EQ(write("a"), "OK");
    replicas_[0]->kill();
    ASSERT_TRUE(followed_by(0));
    EXPECT_THAT(write("b"), StartsWith("NOREPLICAS")) << "it was there when the server was asked";
    EXPECT_EQ(write("c"), "OK");
}

TEST_F(Replicas, OneThatComesIsNoticed) {
    be_short();
    ASSERT_EQ(write("a"), "OK");
    add_replica();
    replicas_[0]->pause();
    EXPECT_TRUE(lab::eventually([&] { return write("b").starts_with("NOREPLICAS"); }, 5s));
    replicas_[0]->resume();
}

TEST_F(Replicas, WaitHasToBePermitted) {
    add_replica();
    ASSERT_EQ(text(master_->ask({"ACL", "SETUSER", "default", "-wait"})), "OK");
    EXPECT_THAT(write("a"), StartsWith("NOPERM"));
}

}  // namespace
}  // namespace sluice
