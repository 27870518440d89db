// What is remembered of a policy key: bases, temporary values, and what comes back.
#include "fleet/rl_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "temp_folder.h"

namespace sluice {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

RlNumbers limit(double requests) {
    return {.window_ms = 60'000, .limit = requests, .bucket_cap = {}, .bucket_rate = {}};
}

class RlMemoryTest : public testing::Test {
  protected:
    // What Redis has, each second for so long.
    void see(double requests, std::chrono::seconds time = 0s) {
        for (auto passed = 0s; passed <= time; passed += 1s) {
            memory_.see(limit(requests), std::nullopt, 10min, now_);
            now_ += 1s;
        }
    }
    void see_temporary(double requests, milliseconds ttl) {
        memory_.see(limit(requests), ttl, 10min, now_);
        now_ += 1s;
    }
    void miss(std::chrono::seconds time = 0s) {
        for (auto passed = 0s; passed <= time; passed += 1s) {
            memory_.see_nothing(now_);
            now_ += 1s;
        }
    }
    // 0: none.
    [[nodiscard]] double holds() const {
        const auto value = memory_.value(now_);
        return value ? *value->limit : 0;
    }

    RlMemory::Clock::time_point now_{1'000'000s};
    RlMemory memory_;
};

TEST_F(RlMemoryTest, AValueHoldsAtOnce) {
    EXPECT_EQ(holds(), 0);
    see(10);
    EXPECT_EQ(holds(), 10);
    see(20);
    EXPECT_EQ(holds(), 20);
}

TEST_F(RlMemoryTest, TheBaseComesBackWhenATemporaryValueEnds) {
    see(10, 601s);
    // As it is typed: HSET, then EXPIRE.
    see(30);
    see_temporary(30, 60s);
    EXPECT_EQ(holds(), 30);
    ASSERT_TRUE(memory_.ends(now_));
    EXPECT_EQ(*memory_.ends(now_) - now_, 59s);
    miss();
    EXPECT_EQ(holds(), 10);
    miss(3600s);
    EXPECT_EQ(holds(), 10) << "though Redis has it no more";
}

TEST_F(RlMemoryTest, ATemporaryValueEndsOnTimeWhereNobodyAnswers) {
    see(10, 601s);
    see_temporary(30, 5s);
    now_ += 3s;
    EXPECT_EQ(holds(), 30);
    now_ += 2s;
    EXPECT_EQ(holds(), 10);
    EXPECT_FALSE(memory_.ends(now_));
}

TEST_F(RlMemoryTest, WhatWasThereForLessThanTenMinutesIsNoBase) {
    see(10, 601s);
    see(20, 590s);
    see_temporary(20, 60s);
    miss();
    EXPECT_EQ(holds(), 10);
    see(20, 601s);
    see_temporary(30, 60s);
    miss();
    EXPECT_EQ(holds(), 20);
}

TEST_F(RlMemoryTest, WithoutABaseNothingComesBack) {
    see(10, 60s);
    see_temporary(10, 5s);
    miss();
    EXPECT_EQ(holds(), 0);
}

TEST_F(RlMemoryTest, PersistMakesATemporaryValueTheBaseInTime) {
    see(10, 601s);
    see_temporary(30, 60s);
    see(30, 590s);
    miss();
    EXPECT_EQ(holds(), 10);
    see_temporary(30, 60s);
    see(30, 601s);
    miss(5s);
    EXPECT_EQ(holds(), 30) << "somebody may be writing it anew";
    miss(10s);
    EXPECT_EQ(holds(), 0) << "a base that is deleted is over";
}

TEST_F(RlMemoryTest, AKeyThatIsDeletedAndWrittenAnewWasNeverGone) {
    see(10, 601s);
    miss(5s);
    EXPECT_EQ(holds(), 10);
    see(10);
    miss(8s);
    EXPECT_EQ(holds(), 10);
}

TEST_F(RlMemoryTest, WhatMakesNoSenseTakesNothingAway) {
    see(10);
    memory_.refuse("limit = \"nan\"");
    EXPECT_EQ(holds(), 10);
    EXPECT_EQ(memory_.error(), "limit = \"nan\"");
    see(20);
    EXPECT_EQ(memory_.error(), "");
}

class RlFileTest : public RlMemoryTest {
  protected:
    TempFolder folder_;
};

TEST_F(RlFileTest, OutlivesARestart) {
    now_ = RlMemory::Clock::now() - 700s;
    see(10, 601s);
    now_ = RlMemory::Clock::now();
    see_temporary(30, 60s);
    RlFile file(folder_.path());
    EXPECT_TRUE(file.load().value().empty());
    ASSERT_TRUE(file.save({{"policy:login", memory_}, {"policy:none", RlMemory()}}));
    const auto book = RlFile(folder_.path()).load();
    ASSERT_TRUE(book) << book.error().message;
    ASSERT_EQ(book->size(), 2U);
    const RlMemory& kept = book->at("policy:login");
    now_ = RlMemory::Clock::now();
    EXPECT_EQ(kept.value(now_), limit(30));
    EXPECT_NEAR(std::chrono::duration<double>(*kept.ends(now_) - now_).count(), 60, 2);
    EXPECT_EQ(kept.value(now_ + 61s), limit(10));
    EXPECT_EQ(book->at("policy:none").value(now_), std::nullopt);
}

TEST_F(RlFileTest, IsWrittenWhereSomethingIsNew) {
    RlFile file(folder_.path());
    const std::string path = folder_.path() + "/rl";
    see_temporary(30, 60s);
    ASSERT_TRUE(file.save({{"policy:login", memory_}}));
    std::filesystem::remove(path);
    see_temporary(30, 59s);
    ASSERT_TRUE(file.save({{"policy:login", memory_}}));
    EXPECT_FALSE(std::filesystem::exists(path)) << "it is the same end";
    see_temporary(30, 90s);
    ASSERT_TRUE(file.save({{"policy:login", memory_}}));
    EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(RlFileTest, OneThatIsTornIsSetAside) {
    for (const char* text : {"", "sluice-rl-1\n", "sluice-rl-1\npolicy:login\tlimit=x\t-\t0\nend\n",
                             "sluice-rl-1\npolicy:login\tlimit=1\nend\n", "sluice-rl-9\nend\n",
                             "sluice-rl-1\npolicy:login\tlimit=10\t-\t0\n"}) {
        folder_.write("rl", text);
        const auto book = RlFile(folder_.path()).load();
        ASSERT_FALSE(book) << text;
        EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/rl"));
    }
}

}  // namespace
}  // namespace sluice
