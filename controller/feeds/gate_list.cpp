#include "feeds/gate_list.h"

#include <chrono>

#include "gate/listing.h"
#include "operate/gate_access.h"
#include "operate/protected_sources.h"

namespace sluice {

namespace {

// Another writer holds the lock for as long as a large import takes.
constexpr std::chrono::milliseconds kPatience{10'000};
constexpr std::string_view kActor = "sluiced";

Result<WritableGate> open_guarded(const std::string& pin_dir, const std::stop_token& stop) {
    auto gate = open_gate_to_write(pin_dir, kPatience);
    if (!gate)
        return gate;
    if (stop.stop_requested())
        return failed("stopped");
    SourceRules rules(gate->tables);
    if (const Status guarded = refresh_protection(gate->tables, rules, {std::string(kActor), {}});
        !guarded)
        return guarded.error();
    return gate;
}

}  // namespace

Result<size_t> GateList::count() const {
    const auto tables = open_gate(pin_dir_);
    if (!tables)
        return tables.error();
    Listing listing(*tables);
    if (const Status begun = listing.begin(); !begun)
        return begun.error();
    const auto list = listing.find_list(name_);
    if (!list)
        return size_t{0};
    const uint64_t now_ns = gate_now_ns(*tables);
    size_t count = 0;
    const Status read = listing.for_each([&](const Member& member) {
        count += member.key.list == *list && member.kind() == RuleKind::ban && member.live(now_ns);
    });
    if (!read)
        return read.error();
    return count;
}

std::optional<uint64_t> GateList::version() const {
    const auto tables = open_gate(pin_dir_);
    if (!tables)
        return std::nullopt;
    return tables->settings().changes;
}

Result<ImportOutcome> GateList::replace(std::span<const RuleEntry> entries,
                                        const std::stop_token& stop) {
    auto gate = open_guarded(pin_dir_, stop);
    if (!gate)
        return gate.error();
    return SourceRules(gate->tables)
        .replace_list(name_, entries, {.reason = reason_, .actor = std::string(kActor)});
}

Result<ImportOutcome> GateList::change(std::span<const Prefix> gone,
                                       std::span<const RuleEntry> added,
                                       const std::stop_token& stop) {
    auto gate = open_guarded(pin_dir_, stop);
    if (!gate)
        return gate.error();
    SourceRules rules(gate->tables);
    for (const Prefix& prefix : gone) {
        const auto taken = rules.withdraw(prefix, RuleKind::ban, name_);
        if (!taken && taken.error().code != ErrorCode::not_found)
            return taken.error();
    }
    return rules.import(name_, added, {.reason = reason_, .actor = std::string(kActor)});
}

}  // namespace sluice
