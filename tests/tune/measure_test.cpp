#include "tune/measure.h"

#include <gtest/gtest.h>

#include "machines.h"
#include "temp_folder.h"

namespace sluice {
namespace {

Reading reading_of(const TempFolder& folder, const char* softnet, const char* times) {
    folder.write("proc/net/softnet_stat", softnet);
    folder.write("proc/stat", times);
    return read_counters(Machine::captured(folder.path()).value(), {"eth0"});
}

TEST(Rates, AreDifferencesPerSecondByTheCpusOwnNumber) {
    const TempFolder folder;
    build_machine("virtio-one-queue", folder.path());
    Reading first =
        reading_of(folder, "00000010 00000001 00000002 0 0 0 0 0 0 00000003 0 0 00000002 0 0\n",
                   "cpu  0 0 0 0 0 0 0 0 0 0\ncpu2 100 0 0 100 0 0 50 0 0 0\nintr 1\n");
    Reading last =
        reading_of(folder, "00000110 00000011 00000012 0 0 0 0 0 0 00000103 0 0 00000002 0 0\n",
                   "cpu  0 0 0 0 0 0 0 0 0 0\ncpu2 150 0 0 100 0 0 100 0 0 0\nintr 1\n");
    last.at = first.at + std::chrono::seconds(2);
    const Rates rates = rates_between(first, last);
    ASSERT_EQ(rates.cpus.size(), 1U);
    EXPECT_EQ(rates.cpus[0].cpu, 2U);
    EXPECT_DOUBLE_EQ(rates.cpus[0].packets, 128);
    EXPECT_DOUBLE_EQ(rates.cpus[0].dropped, 8);
    EXPECT_DOUBLE_EQ(rates.cpus[0].squeezed, 8);
    EXPECT_DOUBLE_EQ(rates.cpus[0].steered, 128);
    EXPECT_DOUBLE_EQ(rates.cpus[0].softirq, 0.5);
}

TEST(Rates, OfOldKernelsCountLines) {
    const TempFolder folder;
    build_machine("virtio-one-queue", folder.path());
    Reading first = reading_of(folder, "1 0 0 0 0 0 0 0 0 0 0\n1 0 0 0 0 0 0 0 0 0 0\n", "");
    Reading last = reading_of(folder, "1 0 0 0 0 0 0 0 0 0 0\nb 0 0 0 0 0 0 0 0 0 0\n", "");
    last.at = first.at + std::chrono::seconds(1);
    const Rates rates = rates_between(first, last);
    ASSERT_EQ(rates.cpus.size(), 2U);
    EXPECT_DOUBLE_EQ(rates.cpus[0].packets, 0);
    EXPECT_DOUBLE_EQ(rates.cpus[1].packets, 10);
}

TEST(Rates, OfThisMachineHaveTimesThatMakeSense) {
    for (const CpuRate& rate :
         measure(Machine::live(), {"lo"}, std::chrono::milliseconds(50)).cpus) {
        EXPECT_GE(rate.softirq, 0);
        EXPECT_LE(rate.softirq, 1);
    }
}

}  // namespace
}  // namespace sluice
