// The one list of pinned maps: name, where it lives in Tables, how large it is.
#pragma once

#include <cstdint>
#include <string_view>

#include "gate/tables.h"

namespace sluice {

enum class MapStorage {
    array,  // allocated up front, elements 8 bytes apart at least
    hash,   // only the buckets are
    ring,
};

struct MapShape {
    std::string_view name;
    MapStorage storage = MapStorage::array;
    uint32_t key_bytes = 0;
    uint32_t value_bytes = 0;
    uint64_t entries = 0;
};

// Overflow is rare by design: at the fill that growth aims for, 2 % of exact bans and 3 % of rules
// find their line full. Rules longer than IPv6 /64 always go there, hence the larger share.
constexpr uint32_t kLeastOverflow = 64;
constexpr uint32_t ban4_overflow_entries(const TableSizes& sizes) {
    return sizes.ban4_lines / 2 > kLeastOverflow ? sizes.ban4_lines / 2 : kLeastOverflow;
}
constexpr uint32_t rule_overflow_entries(const TableSizes& sizes) {
    return sizes.rule_lines > kLeastOverflow ? sizes.rule_lines : kLeastOverflow;
}

constexpr uint64_t kManualBans = 4096;
constexpr uint64_t kNotes = 65536;
constexpr uint64_t kEventBytes = 1U << 20;

// Calls visit(shape, member) for every pinned map until a call fails; `gate` comes last, so that
// what is pinned in this order is complete once the settings are there.
template <class Visit>
Status visit_tables(Tables& t, const TableSizes& s, Visit&& visit) {
    Status status;
    const auto flat = [&]<class T>(std::string_view name, uint64_t entries, FlatTable<T>& member) {
        if (status)
            status = visit(MapShape{name, MapStorage::array, 4, sizeof(T), entries}, member);
    };
    const auto plain = [&](const MapShape& shape, UniqueFd& member) {
        if (status)
            status = visit(shape, member);
    };
    const uint64_t services = s.services;

    flat("switches", services, t.switches);
    flat("interfaces", SLUICE_MAX_INTERFACES, t.interfaces);

    flat("prefix_codes", SLUICE_CODE_LINES, t.prefix_codes);
    flat("rule_lines", 2ULL * s.rule_lines, t.rule_lines);
    flat("rule_filter", 2ULL * s.rule_lines, t.rule_filter);
    plain({"rule_overflow", MapStorage::hash, sizeof(sluice_overflow_key), sizeof(sluice_overflow),
           rule_overflow_entries(s)},
          t.rule_overflow);
    flat("ban4_lines", 2ULL * s.ban4_lines, t.ban4_lines);
    flat("ban4_filter", 2ULL * s.ban4_lines, t.ban4_filter);
    plain({"ban4_overflow", MapStorage::hash, 4, 8, ban4_overflow_entries(s)}, t.ban4_overflow);
    plain({"bans_manual", MapStorage::hash, sizeof(sluice_manual_key), sizeof(sluice_manual),
           kManualBans},
          t.bans_manual);
    flat("bans_manual_on", 1, t.bans_manual_on);
    plain({"listing", MapStorage::hash, sizeof(sluice_listing_key), sizeof(sluice_listing),
           s.listing},
          t.listing);
    flat("list_names", SLUICE_MAX_LISTS, t.list_names);
    plain({"notes", MapStorage::hash, 4, sizeof(sluice_note), kNotes}, t.notes);

    flat("policy", 2, t.policy);
    flat("services", 2 * services, t.services);
    flat("ports", 2ULL * SLUICE_HALF_PORT_LINES, t.ports);
    flat("cells", 2ULL * SLUICE_HALF_CELL_LINES, t.cells);
    plain({"destinations", MapStorage::hash, sizeof(sluice_destination_key), 4,
           2ULL * SLUICE_MAX_DESTINATIONS},
          t.destinations);
    flat("service_names", SLUICE_MAX_SERVICES + 1, t.service_names);
    flat("policy_text", 2, t.policy_text);

    flat("sources", s.source_sets, t.sources);
    flat("budgets", services, t.budgets);
    flat("leases", s.cpus * services, t.leases);
    flat("shares", services * SLUICE_DIMENSIONS, t.shares);
    plain({"windows", MapStorage::array, 4, sizeof(sluice_window_set), s.window_sets}, t.windows);

    flat("counters", services * s.cpus * s.interfaces, t.counters);
    flat("cpus", s.cpus, t.cpus);
    flat("recent", s.cpus, t.recent);
    flat("verdict_cache", s.cpus, t.verdict_cache);
    plain({"events", MapStorage::ring, 0, 0, kEventBytes}, t.events);

    flat("gate", 1, t.gate);
    return status;
}

}  // namespace sluice
