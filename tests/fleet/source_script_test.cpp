// sources.lua one call at a time: what it adds up, for how long, and what it refuses.
#include "fleet/source_message.h"
#include "redis_test.h"

namespace sluice {
namespace {

using lab::number;
using lab::RedisServer;
using redis::Command;
using testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr milliseconds kWindow = 1500ms;

class SourceScript : public lab::RedisTest {
  protected:
    void SetUp() override {
        RedisTest::SetUp();
        if (IsSkipped())
            return;
        server_ = std::make_unique<RedisServer>();
        redis_.emplace(Redis::open(patient(server_->url())).value());
        pass(0ms);
    }
    redis::Reply run(const Command& command) { return redis_->run(command).value(); }

    // Redis's clock, as the script is told it here.
    void pass(milliseconds time) {
        time_ += time;
        (void)run({"HSET", keys_.windows[0] + ":clock", "s", std::to_string(time_ / 1s), "us",
                   std::to_string(time_ % 1s / 1ms * 1000)});
    }
    void next_window() { pass(kWindow - time_ % kWindow); }
    // The same call by that clock.
    redis::Reply clocked(const Command& call) {
        constexpr std::string_view kReal = "redis.call('TIME')";
        std::string text = call.with_text().words()[1];
        text.replace(text.find(kReal), kReal.size(),
                     "redis.call('HMGET', KEYS[1] .. ':clock', 's', 'us')");
        Command command{"EVAL", text};
        for (const std::string& word : call.words().subspan(2))
            command.add(word);
        return run(command);
    }

    struct Host {
        uint64_t window = 0;
        std::map<std::string, uint32_t> said, said_before;
    };
    static std::vector<ToldUse> uses(const Host& host,
                                     const std::map<std::string, uint32_t>& seen) {
        std::vector<ToldUse> uses;
        const auto of = [](const std::map<std::string, uint32_t>& all, const std::string& name) {
            const auto found = all.find(name);
            return found == all.end() ? 0 : found->second;
        };
        for (const auto& [name, use] : seen)
            uses.push_back({name, use, of(host.said, name), of(host.said_before, name)});
        return uses;
    }
    SourcesReply tell(Host& host, const std::map<std::string, uint32_t>& seen) {
        const auto rows = uses(host, seen);
        const auto reply =
            parse_sources_reply(clocked(sources_command(keys_, host.window, rows)), rows.size());
        EXPECT_TRUE(reply) << reply.error().message;
        if (!reply)
            return {};
        if (reply->window != host.window)
            host.said_before =
                reply->window == host.window + 1 ? host.said : std::map<std::string, uint32_t>();
        host.window = reply->window;
        host.said = seen;
        return *reply;
    }
    // Of one source: in limits; 0: not above.
    double sum(Host& host, uint32_t use, const std::string& name = "enforce/web.data/192.0.2.1") {
        const SourcesReply reply = tell(host, {{name, use}});
        return reply.above.empty() ? 0 : reply.above[0].limits;
    }
    int64_t stored() {
        int64_t keys = 0;
        for (const std::string& key : keys_.windows)
            keys += number(run({"EXISTS", key}));
        return keys;
    }

    SourceKeys keys_{"test", 3};
    milliseconds time_{1'800'000'000'000};
    std::unique_ptr<RedisServer> server_;
    std::optional<Redis> redis_;
};

TEST_F(SourceScript, TheRealOneTakesTheServersTime) {
    const ToldUse use{"enforce/web.data/192.0.2.1", 1500, 0, 0};
    const auto reply = parse_sources_reply(run(sources_command(keys_, 0, std::span(&use, 1))), 1);
    ASSERT_TRUE(reply) << reply.error().message;
    const auto now = std::chrono::duration_cast<milliseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    EXPECT_NEAR(static_cast<double>(reply->window), static_cast<double>(now / kWindow), 2);
    ASSERT_EQ(reply->above.size(), 1U);
    EXPECT_EQ(reply->above[0].limits, 1.5);
    EXPECT_EQ(reply->above[0].hosts, 1U);
}

TEST_F(SourceScript, AddsUpWhatHostsSee) {
    Host a, b, c;
    EXPECT_EQ(sum(a, 600), 0);
    EXPECT_EQ(sum(b, 300), 0);
    const SourcesReply reply =
        tell(c, {{"enforce/web.data/192.0.2.1", 500}, {"enforce/web.data/192.0.2.2", 900}});
    ASSERT_EQ(reply.above.size(), 1U);
    EXPECT_EQ(reply.above[0].row, 0U);
    EXPECT_EQ(reply.above[0].limits, 1.4);
    EXPECT_EQ(reply.above[0].hosts, 3U);
}

TEST_F(SourceScript, AHostThatTellsAgainCountsOnce) {
    Host a, b;
    next_window();
    (void)sum(a, 600);
    (void)sum(b, 700);
    for (const uint32_t use : {600U, 800U, 500U})
        EXPECT_EQ(sum(a, use), (700 + use) / 1000.0);
    EXPECT_EQ(tell(a, {{"enforce/web.data/192.0.2.1", 500}}).above[0].hosts, 2U);
}

TEST_F(SourceScript, AWholeWindowHoldsForTheNextOne) {
    Host a, b;
    next_window();
    (void)sum(a, 900);
    (void)sum(b, 900);
    next_window();
    EXPECT_EQ(sum(a, 900), 1.8) << "b has not told yet, but did a moment ago";
    next_window();
    EXPECT_EQ(sum(a, 900), 0) << "b told nothing for a window";
    EXPECT_EQ(sum(b, 950), 1.85) << "what comes in counts at once";
}

TEST_F(SourceScript, WhatAHostSeesNowTakesThePlaceOfWhatItSawBefore) {
    Host a, b;
    next_window();
    (void)sum(b, 600);
    (void)sum(a, 9000);
    next_window();
    EXPECT_EQ(sum(a, 5000), 5.6);
    EXPECT_EQ(sum(a, 4000), 4.6);
    EXPECT_EQ(sum(b, 300), 9.3) << "the others by the whole window, or by what has come in";
}

TEST_F(SourceScript, ALostAnswerErrsOnTheStrictSideForTwoWindows) {
    Host a, b;
    next_window();
    (void)sum(b, 600);
    Host lost = a;
    (void)sum(lost, 500);
    EXPECT_EQ(sum(a, 500), 1.6) << "counted twice";
    next_window();
    (void)sum(b, 600);
    EXPECT_EQ(sum(a, 500), 1.6);
    next_window();
    (void)sum(b, 600);
    EXPECT_EQ(sum(a, 500), 1.1);
}

TEST_F(SourceScript, NothingIsLeftOnceNobodyTells) {
    Host a;
    for (int i = 0; i < 4; ++i) {
        (void)sum(a, 900);
        next_window();
    }
    EXPECT_GE(stored(), 1);
    EXPECT_LE(stored(), 3);
    pass(5s);
    (void)tell(a, {});
    EXPECT_EQ(stored(), 0);
}

TEST_F(SourceScript, AClockThatGoesBackBeginsAnew) {
    Host a, b;
    (void)sum(a, 900);
    (void)sum(b, 900);
    pass(-1h);
    EXPECT_EQ(sum(a, 900), 0);
    EXPECT_EQ(sum(b, 900), 1.8);
}

TEST_F(SourceScript, HoldsSoManySourcesAndNoMore) {
    Host host;
    SourcesReply reply;
    for (int call = 0; call < 5; ++call) {
        std::map<std::string, uint32_t> seen;
        for (int i = 0; i < 1000; ++i)
            seen["enforce/web.data/10.0." + std::to_string(call) + '.' + std::to_string(i)] = 700;
        reply = tell(host, seen);
        if (call < 4) {
            EXPECT_EQ(reply.outcome, SourcesOutcome::taken);
        }
    }
    EXPECT_EQ(reply.outcome, SourcesOutcome::full);
    int64_t fields = 0;
    for (const std::string& key : keys_.windows)
        fields = std::max(fields, number(run({"HLEN", key})));
    EXPECT_LE(fields, 4096 + 2);
    EXPECT_GE(fields, 4096);
    Host other;
    const SourcesReply known = tell(other, {{"enforce/web.data/10.0.0.5", 700}});
    EXPECT_EQ(known.outcome, SourcesOutcome::taken) << "who is in still counts";
    ASSERT_EQ(known.above.size(), 1U);
}

TEST_F(SourceScript, TakesSoMuchTimeAndNoMore) {
    Host told;
    next_window();
    (void)sum(told, 900);
    for (int i = 0; i < 1999; ++i) {
        Host host;
        (void)sum(host, 1);
    }
    Host late;
    EXPECT_EQ(tell(late, {{"enforce/web.data/192.0.2.1", 900}}).outcome, SourcesOutcome::busy);
    EXPECT_EQ(tell(told, {{"enforce/web.data/192.0.2.1", 900}}).outcome, SourcesOutcome::taken)
        << "who was in time stays in";
    next_window();
    EXPECT_EQ(tell(late, {{"enforce/web.data/192.0.2.1", 900}}).outcome, SourcesOutcome::taken);
}

TEST_F(SourceScript, RefusesNonsense) {
    const auto call = [&](std::initializer_list<std::string> words) {
        Command command = sources_command(keys_, 0, {});
        for (const std::string& word : words)
            command.add(word);
        return std::string(run(command).error_text());
    };
    EXPECT_THAT(call({"name", "5", "0"}), HasSubstr("rows of four"));
    EXPECT_THAT(call({"name", "-5", "0", "0"}), HasSubstr("row 1"));
    EXPECT_THAT(call({"name", "nan", "0", "0"}), HasSubstr("row 1"));
    EXPECT_THAT(call({"name", "inf", "0", "0"}), HasSubstr("row 1"));
    EXPECT_THAT(call({"name", "5", "x", "0"}), HasSubstr("row 1"));
    EXPECT_THAT(call({"name", "5", "0", "x"}), HasSubstr("row 1"));
    EXPECT_THAT(call({"+", "5", "0", "0"}), HasSubstr("row 1"));
    EXPECT_THAT(call({std::string(161, 'x'), "5", "0", "0"}), HasSubstr("row 1"));
    EXPECT_EQ(stored(), 0);
}

TEST_F(SourceScript, WhatIsStoredAndMakesNoSenseCountsAsNothing) {
    Host a;
    next_window();
    const uint64_t window = tell(a, {{"enforce/web.data/192.0.2.1", 100}}).window;
    for (const char* junk : {"", "7", "x y", "-3 1", "1e300 1", "9 9 9"}) {
        (void)run({"HSET", keys_.windows[window % 3], "enforce/web.data/192.0.2.1", junk});
        Host b;
        EXPECT_EQ(sum(b, 1200), 1.2) << junk;
    }
    (void)run({"SET", keys_.windows[window % 3], "a string"});
    Host b;
    const ToldUse use{"enforce/web.data/192.0.2.1", 1200, 0, 0};
    EXPECT_TRUE(clocked(sources_command(keys_, 0, std::span(&use, 1))).is_error());
    next_window();
    next_window();
    EXPECT_EQ(sum(b, 1200), 1.2) << "what has gone by is cleared unseen";
}

TEST(SourceAnswers, ThatAreNoneAreSeen) {
    using redis::Reply;
    const auto numbers = [](std::initializer_list<int64_t> all) {
        std::vector<Reply> elements;
        for (const int64_t one : all)
            elements.push_back(Reply::integer(one));
        return Reply::array(elements);
    };
    EXPECT_TRUE(parse_sources_reply(numbers({7, 0}), 0));
    EXPECT_TRUE(parse_sources_reply(numbers({7, 2, 0, 1500, 2}), 1));
    EXPECT_FALSE(parse_sources_reply(numbers({7}), 1));
    EXPECT_FALSE(parse_sources_reply(numbers({7, 3}), 1));
    EXPECT_FALSE(parse_sources_reply(numbers({7, 0, 0, 1500}), 1));
    EXPECT_FALSE(parse_sources_reply(numbers({7, 0, 1, 1500, 2}), 1)) << "there is no such row";
    EXPECT_FALSE(parse_sources_reply(numbers({7, 0, 0, 0, 2}), 1));
    EXPECT_FALSE(parse_sources_reply(numbers({7, 0, 0, -5, 2}), 1));
    EXPECT_FALSE(parse_sources_reply(Reply::text("OK"), 1));
    EXPECT_FALSE(parse_sources_reply(Reply::error("NOPERM no"), 1));
}

}  // namespace
}  // namespace sluice
