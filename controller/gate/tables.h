// The pinned maps of a gate, typed: created once, adopted by whoever comes next.
#pragma once

#include <sluice/ban.h>
#include <sluice/budget.h>
#include <sluice/event.h>
#include <sluice/gate.h>
#include <sluice/service.h>
#include <sluice/source.h>
#include <sluice/verdict.h>
#include <sluice/window.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "gate/flat_table.h"

namespace sluice {

// How large each table is; together with the structures it makes the layout. Powers of two where
// the packet path masks.
struct TableSizes {
    uint32_t source_sets = 1u << 15;  // × 64 bytes
    uint32_t window_sets = 1u << 10;  // × 256 bytes
    uint32_t services = 64;           // stable ids
    uint32_t interfaces = 4;          // slots
    uint32_t cpus = 1;                // slots
    uint32_t ban4_lines = 1u << 18;   // of each half, × (64 + 8) bytes, 7 bans each
    uint32_t rule_lines = 1u << 18;   // of each half, × (64 + 8) bytes, 4 rules each
    uint32_t listing = 1u << 21;      // bans, allows and classes that people see

    // What the kernel will allocate up front, in bytes.
    [[nodiscard]] uint64_t memory() const;
    friend bool operator==(const TableSizes&, const TableSizes&) = default;
};

struct Tables {
    TableSizes sizes;
    std::string pin_dir;

    FlatTable<sluice_gate> gate;
    FlatTable<sluice_service_switches> switches;
    FlatTable<sluice_interface> interfaces;

    FlatTable<sluice_code_line> prefix_codes;
    FlatTable<sluice_rule_line> rule_lines;
    FlatTable<uint64_t> rule_filter;
    UniqueFd rule_overflow;
    FlatTable<sluice_ban4_line> ban4_lines;
    FlatTable<uint64_t> ban4_filter;
    UniqueFd ban4_overflow;
    UniqueFd bans_manual;
    FlatTable<uint32_t> bans_manual_on;
    UniqueFd listing;
    FlatTable<sluice_list_name> list_names;
    UniqueFd notes;

    FlatTable<sluice_policy> policy;
    FlatTable<sluice_service> services;
    FlatTable<sluice_port_line> ports;
    FlatTable<sluice_cell_line> cells;
    UniqueFd destinations;
    FlatTable<sluice_service_name> service_names;
    FlatTable<sluice_policy_text> policy_text;

    FlatTable<sluice_source_set> sources;
    FlatTable<sluice_budget> budgets;
    FlatTable<sluice_lease> leases;
    FlatTable<sluice_share> shares;
    UniqueFd windows;

    FlatTable<sluice_counters> counters;
    FlatTable<sluice_cpu> cpus;
    FlatTable<sluice_recent> recent;
    FlatTable<sluice_cache> verdict_cache;
    UniqueFd events;

    // Creates all maps and pins them in `pin_dir` (made if missing), with a fresh secret seed.
    static Result<Tables> create(const std::string& pin_dir, const TableSizes& sizes);
    // Adopts the maps pinned in `pin_dir`. ErrorCode::not_found: nothing there; failed: another ABI
    // version or layout.
    static Result<Tables> open(const std::string& pin_dir);
    // The listing alone, with its names and notes: what people asked for, of a gate of another
    // version. Only Listing may be given these.
    static Result<Tables> open_listing(const std::string& pin_dir);

    // Pins again what somebody removed, but for the settings: without them it is no gate any more.
    // For whoever holds the WriterLock; the names of what was missing.
    [[nodiscard]] Result<std::vector<std::string>> pin_missing() const;

    [[nodiscard]] sluice_gate& settings() const { return gate[0]; }
    [[nodiscard]] const sluice_seed& seed() const { return gate[0].seed; }
};

// One writer at a time: flock on the pin directory, for everybody who writes the maps.
class WriterLock {
  public:
    // Waits at most `timeout_ms`; the error names the directory.
    static Result<WriterLock> take(const std::string& pin_dir, int timeout_ms = 5000);

  private:
    explicit WriterLock(UniqueFd fd) : fd_(std::move(fd)) {}
    UniqueFd fd_;
};

// Monotonic time as the packet path sees it: the kernel's, or the value set for tests.
uint64_t gate_now_ns(const Tables& tables);

// Returns when no packet is still being decided by what was published before the call.
Status wait_for_packets_in_flight();

// A number that the pins of another gate do not have; nothing where there are none. Cheap.
std::optional<uint64_t> gate_pin(const std::string& pin_dir);

}  // namespace sluice
