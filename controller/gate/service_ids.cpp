#include "gate/service_ids.h"

#include <algorithm>
#include <cstring>

#include "gate/make_anew.h"
#include "gate/policy_store.h"

namespace sluice {

namespace {

// State of a service ages out within twice the longest span; windows are shorter.
constexpr uint64_t kReusedAfterNs = 2 * SLUICE_MAX_SPAN_NS;

uint32_t capacity(const Tables& tables) {
    return std::min(tables.sizes.services, SLUICE_MAX_SERVICES + 1);
}

std::string_view name_at(const Tables& tables, uint32_t id) {
    const char* name = tables.service_names[id].name;
    return {name, ::strnlen(name, SLUICE_NAME_BYTES)};
}

bool is_in_force(const Tables& tables, uint32_t id) {
    return id == SLUICE_SERVICE_OTHER ||
           tables.services[size_t{half_in_force(tables)} * tables.sizes.services + id].id == id;
}

Result<uint32_t> free_id(const Tables& tables, const std::vector<bool>& taken, uint64_t now_ns) {
    std::optional<uint32_t> best;
    for (uint32_t id = 1; id < capacity(tables); ++id) {
        if (taken[id])
            continue;
        if (name_at(tables, id).empty())
            return id;
        const uint64_t removed_ns = tables.service_names[id].removed_ns;
        const bool is_aged = removed_ns != 0 && now_ns - removed_ns >= kReusedAfterNs;
        if (is_aged && (!best || removed_ns < tables.service_names[*best].removed_ns))
            best = id;
    }
    if (best)
        return *best;
    return failed("the gate holds " + std::to_string(capacity(tables) - 1) +
                      " services, those removed within the last 4 days included",
                  "wait, or " + std::string(kMakeAnew) + "; " + std::string(kKeepBans));
}

void clear_state(const Tables& tables, uint32_t id) {
    const TableSizes& sizes = tables.sizes;
    tables.budgets[id] = {};
    for (size_t dimension = 0; dimension < SLUICE_DIMENSIONS; ++dimension)
        tables.shares[size_t{id} * SLUICE_DIMENSIONS + dimension] = {};
    for (uint32_t cpu = 0; cpu < sizes.cpus; ++cpu)
        tables.leases[size_t{cpu} * sizes.services + id] = {};
    for (size_t slot = 0; slot < size_t{sizes.cpus} * sizes.interfaces; ++slot)
        tables.counters[slot * sizes.services + id] = {};
    reset_switches(tables, id);
}

void write_name(const Tables& tables, uint32_t id, std::string_view name) {
    sluice_service_name& entry = tables.service_names[id];
    std::memset(entry.name, 0, sizeof(entry.name));
    std::memcpy(entry.name, name.data(), std::min(name.size(), sizeof(entry.name) - 1));
}

}  // namespace

Result<ServiceIdPlan> plan_service_ids(const Tables& tables,
                                       const std::vector<std::string>& names) {
    const uint64_t now_ns = gate_now_ns(tables);
    std::map<std::string_view, uint32_t> known;
    for (uint32_t id = 1; id < capacity(tables); ++id)
        if (const auto name = name_at(tables, id); !name.empty())
            known.emplace(name, id);

    ServiceIdPlan plan;
    std::vector<bool> taken(capacity(tables));
    plan.ids["other"] = SLUICE_SERVICE_OTHER;
    if (name_at(tables, SLUICE_SERVICE_OTHER).empty())
        plan.fresh.push_back(SLUICE_SERVICE_OTHER);
    for (const std::string& name : names)
        if (const auto entry = known.find(name); entry != known.end()) {
            plan.ids[name] = entry->second;
            taken[entry->second] = true;
        }
    for (const std::string& name : names) {
        if (plan.ids.contains(name))
            continue;
        const auto id = free_id(tables, taken, now_ns);
        if (!id)
            return id.error();
        plan.ids[name] = *id;
        plan.fresh.push_back(*id);
        taken[*id] = true;
    }
    return plan;
}

void adopt_service_ids(const Tables& tables, const ServiceIdPlan& plan) {
    for (const uint32_t id : plan.fresh)
        clear_state(tables, id);
    for (const auto& [name, id] : plan.ids)
        write_name(tables, id, name);
}

void mark_removed_services(const Tables& tables) {
    const uint64_t now_ns = std::max<uint64_t>(gate_now_ns(tables), 1);
    for (uint32_t id = 1; id < capacity(tables); ++id) {
        sluice_service_name& entry = tables.service_names[id];
        if (is_in_force(tables, id))
            entry.removed_ns = 0;
        else if (entry.name[0] != '\0' && entry.removed_ns == 0)
            entry.removed_ns = now_ns;
    }
}

ServiceIds service_ids(const Tables& tables) {
    ServiceIds ids;
    for (uint32_t id = 0; id < capacity(tables); ++id)
        if (const auto name = name_at(tables, id); !name.empty() && is_in_force(tables, id))
            ids.emplace(name, id);
    return ids;
}

std::optional<uint32_t> find_service_id(const Tables& tables, std::string_view name) {
    const ServiceIds ids = service_ids(tables);
    const auto entry = ids.find(name);
    return entry == ids.end() ? std::nullopt : std::optional(entry->second);
}

std::string service_name(const Tables& tables, uint32_t id) {
    return id < capacity(tables) ? std::string(name_at(tables, id)) : std::string();
}

}  // namespace sluice
