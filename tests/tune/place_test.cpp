#include "tune/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::Pair;

// Two nodes of two cores with two threads each: 0,4 and 1,5 on node 0, 2,6 and 3,7 on node 1.
Host two_nodes() {
    Host host;
    host.nodes = {0, 1};
    for (unsigned number = 0; number < 8; ++number) {
        const unsigned core = number % 4, node = core / 2;
        Cpu cpu{.number = number, .node = node, .siblings = {core, core + 4}, .cache = {}};
        for (const unsigned other : {2 * node, 2 * node + 1})
            cpu.cache.insert({other, other + 4});
        host.cpus.push_back(std::move(cpu));
    }
    return host;
}

TEST(Workers, AreNearWithSiblingsLast) {
    const Workers workers = workers_near(two_nodes(), 1, 0);
    EXPECT_THAT(workers.order, ElementsAre(2, 3, 6, 7));
    EXPECT_EQ(workers.cores, 2U);
}

TEST(Workers, AreEverywhereWhereTheCardNamesNoNodeThatIsThere) {
    EXPECT_THAT(workers_near(two_nodes(), std::nullopt, 0).order,
                ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
    EXPECT_THAT(workers_near(two_nodes(), 9, 0).order, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Workers, LeaveReservedCoresWholeAndOneToWork) {
    const Workers one = workers_near(two_nodes(), 1, 1);
    EXPECT_THAT(one.order, ElementsAre(2, 6));
    EXPECT_THAT(one.reserved, ElementsAre(3, 7));
    EXPECT_THAT(workers_near(two_nodes(), 1, 5).order, ElementsAre(2, 6));
}

TEST(Workers, AreIsolatedOnlyWhereThereIsNoOther) {
    Host host = two_nodes();
    for (Cpu& cpu : host.cpus)
        cpu.isolated = cpu.node == 1;
    EXPECT_THAT(workers_near(host, 1, 0).order, ElementsAre(0, 1, 4, 5));
    for (Cpu& cpu : host.cpus)
        cpu.isolated = true;
    const Workers workers = workers_near(host, 1, 0);
    EXPECT_TRUE(workers.all_isolated);
    EXPECT_THAT(workers.order, ElementsAre(2, 3, 6, 7));
}

TEST(Senders, UseTheQueueOfTheirCoreThenOfTheirCache) {
    EXPECT_THAT(senders(two_nodes(), {{0, 0}, {1, 2}}),
                ElementsAre(Pair(0, CpuSet{0, 1, 4, 5}), Pair(1, CpuSet{2, 3, 6, 7})));
}

TEST(Senders, TakeTurnsAmongQueuesThatAreEquallyFar) {
    EXPECT_THAT(senders(two_nodes(), {{0, 0}, {1, 1}}),
                ElementsAre(Pair(0, CpuSet{0, 2, 4, 6}), Pair(1, CpuSet{1, 3, 5, 7})));
}

}  // namespace
}  // namespace sluice
