// Stable ids of services: state, counters and leases never land on another service.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/service_table.h"

namespace sluice {

// Which name gets which id; nothing is written yet.
struct ServiceIdPlan {
    ServiceIds ids;
    std::vector<uint32_t> fresh;  // ids that the name in question did not have before
};

// The same name keeps its id. A removed service's id goes to another name only when all state under
// it has aged out. `names` starts with "other", whose id is always 0.
Result<ServiceIdPlan> plan_service_ids(const Tables& tables, const std::vector<std::string>& names);

// Writes the names, and clears what fresh ids may have been used for before.
void adopt_service_ids(const Tables& tables, const ServiceIdPlan& plan);

// Notes since when a service is gone, by what the half in force holds.
void mark_removed_services(const Tables& tables);

// Services of the policy in force, and "other", by name.
ServiceIds service_ids(const Tables& tables);
std::optional<uint32_t> find_service_id(const Tables& tables, std::string_view name);
// The name that an id has, or last had; empty where it was never used.
std::string service_name(const Tables& tables, uint32_t id);

}  // namespace sluice
