// How large the tables of a gate must be for a policy on this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/policy.h"

namespace sluice {

// A source at a service takes a word per limit, and one for a jail. Tables are made for the most
// that any service asks, at 70 % fill, and rounded up to the next power of two.
TableSizes needed_sizes(const Policy& policy, uint32_t cpus);

// One more than the highest CPU number that this machine has.
Result<uint32_t> cpu_count();

// Bytes that new tables can take before the machine starts to swap or kill.
Result<uint64_t> available_memory();

// What the policy needs here; an error where there is not so much memory. `told` hears both numbers
// first, in bytes.
Result<TableSizes> affordable_sizes(
    const Policy& policy,
    const std::function<void(uint64_t needed, uint64_t available)>& told = {});

// What is smaller than it should be, for people; empty where everything fits.
std::vector<std::string> shortfalls(const TableSizes& have, const TableSizes& need);

}  // namespace sluice
