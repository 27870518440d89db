// Sets of CPUs, in the two forms that the kernel writes: lists ("0-3,8") and masks ("f0,0000000f").
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

using CpuSet = std::set<unsigned>;

// More than any kernel is built for (NR_CPUS is 8,192 at most): a larger number is no CPU.
inline constexpr unsigned kMostCpus = 8192;

// An empty text is the empty set.
Result<CpuSet> parse_cpu_list(std::string_view text);
// Groups of 32 bits with commas between, the highest first, as in rps_cpus.
Result<CpuSet> parse_cpu_mask(std::string_view text);

// Both as the kernel takes them: the empty set is "" in one, "0" in the other.
std::string cpu_list_text(const CpuSet& cpus);
std::string cpu_mask_text(const CpuSet& cpus);

}  // namespace sluice
