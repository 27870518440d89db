#include "tune/cpu_set.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(CpuList, ReadsWhatTheKernelWrites) {
    EXPECT_EQ(parse_cpu_list("0-3,8\n").value(), (CpuSet{0, 1, 2, 3, 8}));
    EXPECT_EQ(parse_cpu_list("").value(), CpuSet{});
    EXPECT_EQ(parse_cpu_list("\n").value(), CpuSet{});
}

TEST(CpuList, WritesItsShortestForm) {
    EXPECT_EQ(cpu_list_text({0, 1, 2, 5, 7, 8}), "0-2,5,7-8");
    EXPECT_EQ(cpu_list_text({}), "");
}

TEST(CpuList, RefusesNonsense) {
    for (const char* text : {"a", "3-1", "1-", "-1", "1,,2", "0-8192", "99999999999"})
        EXPECT_FALSE(parse_cpu_list(text)) << text;
}

TEST(CpuMask, ReadsGroupsFromTheHighest) {
    EXPECT_EQ(parse_cpu_mask("f\n").value(), (CpuSet{0, 1, 2, 3}));
    EXPECT_EQ(parse_cpu_mask("00000001,00000000,80000000").value(), (CpuSet{31, 64}));
    EXPECT_EQ(parse_cpu_mask("0").value(), CpuSet{});
}

TEST(CpuMask, WritesWhatItReads) {
    for (const CpuSet& cpus : {CpuSet{}, CpuSet{0}, CpuSet{31}, CpuSet{32}, CpuSet{3, 63, 64, 127}})
        EXPECT_EQ(parse_cpu_mask(cpu_mask_text(cpus)).value(), cpus) << cpu_mask_text(cpus);
    EXPECT_EQ(cpu_mask_text({0, 64}), "1,00000000,00000001");
}

TEST(CpuMask, RefusesNonsense) {
    for (const char* text : {"", "g", "1,", "123456789", "-1"})
        EXPECT_FALSE(parse_cpu_mask(text)) << text;
}

}  // namespace
}  // namespace sluice
