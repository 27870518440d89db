#include "gate/policy_store.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <vector>

#include "base/quantities.h"
#include "gate/publish.h"
#include "gate/service_ids.h"
#include "gate/switch_word.h"
#include "policy/compile.h"
#include "policy/parse.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

SwitchWord policy_word(const Tables& tables) {
    return SwitchWord::from(published(tables.settings().policy));
}

// --- filling a half ----------------------------------------------------------------------------

Status clear_destinations(const Tables& tables, uint32_t half) {
    std::vector<sluice_destination_key> stale;
    sluice_destination_key key{};
    const void* previous = nullptr;
    while (bpf_map_get_next_key(tables.destinations.get(), previous, &key) == 0) {
        if (key.half == half)
            stale.push_back(key);
        previous = &key;
    }
    for (const sluice_destination_key& old : stale)
        if (bpf_map_delete_elem(tables.destinations.get(), &old) != 0 && errno != ENOENT)
            return from_errno(errno, "remove an old destination");
    return {};
}

Status write_destinations(const Tables& tables, uint32_t half, const ServiceTable& table) {
    if (const Status status = clear_destinations(tables, half); !status)
        return status;
    for (const DestinationGroup& destination : table.destinations) {
        const sluice_destination_key key{destination.high, destination.low, destination.length,
                                         half};
        if (bpf_map_update_elem(tables.destinations.get(), &key, &destination.group, BPF_ANY) != 0)
            return from_errno(errno, "write a destination");
    }
    return {};
}

void write_service_table(const Tables& tables, uint32_t half, const ServiceTable& table) {
    sluice_port_line* ports = &tables.ports[size_t{half} * SLUICE_HALF_PORT_LINES];
    for (uint32_t selector = 0; selector < kSelectors; ++selector)
        ports[selector / 32].port_class[selector % 32] = table.selector_class[selector];
    sluice_cell_line* cells = &tables.cells[size_t{half} * SLUICE_HALF_CELL_LINES];
    for (size_t cell = 0; cell < table.cells.size(); ++cell)
        cells[cell / 32].service[cell % 32] = table.cells[cell];
}

void write_text(const Tables& tables, uint32_t half, std::string_view text,
                std::string_view source) {
    sluice_policy_text& kept = tables.policy_text[half];
    kept.applied_s = static_cast<uint64_t>(::time(nullptr));
    std::memset(kept.source, 0, sizeof(kept.source));
    std::memcpy(kept.source, source.data(), std::min(source.size(), sizeof(kept.source) - 1));
    kept.length = static_cast<uint32_t>(text.size());
    std::memcpy(kept.text, text.data(), text.size());
}

Status write_half(const Tables& tables, uint32_t half, const CompiledPolicy& compiled,
                  uint64_t version) {
    tables.policy[half] = {};
    if (const Status status = write_destinations(tables, half, compiled.table); !status)
        return status;
    write_service_table(tables, half, compiled.table);
    const auto services =
        tables.services.span().subspan(size_t{half} * tables.sizes.services, tables.sizes.services);
    std::fill(services.begin(), services.end(), sluice_service{});
    for (const sluice_service& service : compiled.services)
        services[service.id] = service;
    tables.policy[half] = compiled.shared;
    tables.policy[half].version = version;
    return {};
}

// --- what the policy says to the switches ------------------------------------------------------

// What a policy brings to one switch. The smallest of gate, service and rule wins, and limits do
// not change at the same moment as all modes. So that nobody is dropped meanwhile by the limits of
// one policy in the mode of the other, what becomes more lenient does so before the limits change,
// what becomes stricter after.
struct ModeChange {
    __u64* word = nullptr;
    uint64_t to = 0;
    bool is_stricter = false;
};

// With a deadline the packet path takes the modes back together with the policy.
std::vector<ModeChange> mode_changes(const Tables& tables, const Policy& policy,
                                     const ServiceIds& ids, uint64_t deadline_ns) {
    const uint64_t now_ns = gate_now_ns(tables);
    std::vector<ModeChange> changes;
    const auto say = [&](__u64& word, uint32_t value) {
        const SwitchWord before = SwitchWord::from(published(word));
        // By a writer that was killed before it was done with the others.
        if (deadline_ns != 0 && !before.is_override() && before.waits &&
            before.deadline_ns() == deadline_ns)
            return;
        const SwitchWord after = before.with_policy(value, now_ns, deadline_ns);
        if (after.word() != before.word())
            changes.push_back({&word, after.word(), after.now > before.settled(now_ns).now});
    };
    for (const ServiceModes& modes : policy_modes(policy)) {
        const auto id = ids.find(modes.service);
        if (id == ids.end())
            continue;
        sluice_service_switches& switches = tables.switches[id->second];
        say(switches.service.word, modes.mode);
        for (uint32_t rule = 0; rule < SLUICE_RULES; ++rule)
            say(switches.rule[rule].word, modes.rules[rule]);
    }
    say(tables.settings().mode, to_abi(policy.mode));
    return changes;
}

void publish_modes(const std::vector<ModeChange>& changes, bool stricter) {
    for (const ModeChange& change : changes)
        if (change.is_stricter == stricter)
            publish(*change.word, change.to);
}

// A rule that is gone takes its override with it; so does a service.
void drop_lost_overrides(const Tables& tables) {
    for (uint32_t id = 0; id < tables.sizes.services; ++id) {
        const sluice_service& service = service_in_force(tables, id);
        if (service.id != id) {
            reset_switches(tables, id);
            continue;
        }
        for (uint32_t rule = 0; rule < SLUICE_RULES; ++rule)
            if (!has_rule(service, rule))
                publish(tables.switches[id].rule[rule].word,
                        SwitchWord::by_policy(SLUICE_MODE_ENFORCE).word());
    }
}

// --- checks ------------------------------------------------------------------------------------

Status check_pending(const Tables& tables) {
    const uint64_t now_ns = gate_now_ns(tables);
    const SwitchWord word = policy_word(tables);
    if (!word.is_pending(now_ns))
        return {};
    const auto left_s = (word.deadline_ns() - now_ns) / 1'000'000'000 + 1;
    return failed("the policy in force waits for its confirmation; it is taken back in " +
                      std::to_string(left_s) + " s",
                  "keep it with: sluicectl confirm policy; or wait");
}

Status check_confirm(const InstallOptions& options) {
    if (!options.confirm || *options.confirm > nanoseconds::zero())
        return {};
    return make_error(ErrorCode::usage, "a confirmation needs time", "use a time such as \"60s\"");
}

void put_in_force(const Tables& tables, uint32_t half, uint64_t deadline_ns) {
    SwitchWord word = SwitchWord::by_policy(half);
    if (deadline_ns != 0) {
        word.after = half_in_force(tables);
        word.waits = true;
        word.deadline = sluice_deadline_from_ns(deadline_ns);
    }
    publish(tables.settings().policy, word.word());
}

}  // namespace

Result<uint64_t> install_policy(const Tables& tables, const Policy& policy, std::string_view text,
                                std::string_view source, const InstallOptions& options) {
    for (const Status& status :
         {check_confirm(options), check_config_size(text), check_pending(tables)})
        if (!status)
            return status.error();
    if (const Status status = settle_policy(tables); !status)
        return status.error();
    const auto plan = plan_service_ids(tables, service_names(policy));
    if (!plan)
        return plan.error();
    sluice_gate& gate = tables.settings();
    const auto compiled =
        compile(policy, plan->ids, {{gate.tick_ns, gate.lag_ns}, tables.sizes.cpus});
    if (!compiled)
        return compiled.error();

    // Whoever still reads the idle half from before the last change must be done.
    if (const Status status = wait_for_packets_in_flight(); !status)
        return status.error();
    const uint32_t half = 1 - half_in_force(tables);
    const uint64_t version = std::max<uint64_t>(gate.next_version, 1);
    if (const Status status = write_half(tables, half, *compiled, version); !status)
        return status.error();
    write_text(tables, half, text, source);
    adopt_service_ids(tables, *plan);

    // In whole units of a switch, as it will be read from there.
    const uint64_t deadline_ns =
        options.confirm ? sluice_deadline_from_ns(gate_now_ns(tables) +
                                                  static_cast<uint64_t>(options.confirm->count()))
                              << SLUICE_DEADLINE_SHIFT
                        : 0;
    const auto modes = mode_changes(tables, policy, plan->ids, deadline_ns);
    publish_modes(modes, false);
    if (const Status status = wait_for_packets_in_flight(); !status) {
        (void)restate_policy(tables);
        return status.error();
    }
    gate.next_version = version + 1;
    put_in_force(tables, half, deadline_ns);
    (void)wait_for_packets_in_flight();  // it worked a moment ago, and the policy is in force
    publish_modes(modes, true);
    mark_removed_services(tables);
    if (!options.confirm)
        drop_lost_overrides(tables);
    gate.changes++;
    return version;
}

uint32_t half_in_force(const Tables& tables) {
    return sluice_switch_value(published(tables.settings().policy), gate_now_ns(tables)) & 1;
}

const sluice_policy& policy_in_force(const Tables& tables) {
    return tables.policy[half_in_force(tables)];
}

const sluice_service& service_in_force(const Tables& tables, uint32_t id) {
    return tables.services[size_t{half_in_force(tables)} * tables.sizes.services + id];
}

uint64_t current_policy_version(const Tables& tables) {
    return policy_in_force(tables).version;
}

Result<InstalledPolicy> current_policy(const Tables& tables) {
    const uint32_t half = half_in_force(tables);
    if (tables.policy[half].version == 0)
        return make_error(ErrorCode::not_found, "this gate has no policy yet",
                          "give it one: sluicectl policy apply FILE");
    const sluice_policy_text& kept = tables.policy_text[half];
    InstalledPolicy installed;
    installed.text.assign(kept.text, std::min<size_t>(kept.length, sizeof(kept.text)));
    installed.source.assign(kept.source, ::strnlen(kept.source, sizeof(kept.source)));
    installed.version = tables.policy[half].version;
    installed.applied_s = kept.applied_s;
    auto policy = parse_policy(installed.text, installed.source);
    if (!policy)
        return policy.error().with_context("the policy in force");
    installed.policy = *std::move(policy);
    return installed;
}

Status settle_policy(const Tables& tables) {
    const SwitchWord word = policy_word(tables);
    if (!word.is_expired(gate_now_ns(tables)))
        return {};
    // The words of the packet path first: its coarse clock may lag behind ours.
    put_in_force(tables, word.after & 1, 0);
    return restate_policy(tables);
}

Status restate_policy(const Tables& tables) {
    const SwitchWord word = policy_word(tables);
    const bool waits = word.is_pending(gate_now_ns(tables));
    mark_removed_services(tables);
    const auto installed = current_policy(tables);
    if (!installed)
        return installed.error().code == ErrorCode::not_found ? Status{} : installed.error();
    const auto modes = mode_changes(tables, installed->policy, service_ids(tables),
                                    waits ? word.deadline_ns() : 0);
    publish_modes(modes, false);
    publish_modes(modes, true);
    if (!waits)
        drop_lost_overrides(tables);
    tables.settings().changes++;
    return {};
}

void confirm_policy(const Tables& tables) {
    const uint64_t now_ns = gate_now_ns(tables);
    const auto confirm = [now_ns](__u64& word) {
        const SwitchWord before = SwitchWord::from(published(word));
        if (!before.is_override() && before.is_pending(now_ns))
            publish(word, before.confirmed(0).word());
    };
    confirm(tables.settings().policy);
    confirm(tables.settings().mode);
    for (sluice_service_switches& switches : tables.switches.span()) {
        confirm(switches.service.word);
        for (sluice_switch& rule : switches.rule)
            confirm(rule.word);
    }
    drop_lost_overrides(tables);
    tables.settings().changes++;
}

bool has_rule(const sluice_service& service, uint32_t rule) {
    const uint32_t bit = 1u << rule % SLUICE_DIMENSIONS;
    switch (rule / SLUICE_DIMENSIONS) {
        case SLUICE_PER_SOURCE:
            return (service.source_limits & bit) != 0 ||
                   (rule == sluice_rule(SLUICE_PER_SOURCE, SLUICE_CONNECTIONS) &&
                    service.window.limit != 0);
        case SLUICE_PER_PREFIX:
            return (service.prefix_limits & bit) != 0;
        default:
            return (service.budget_limits & bit) != 0;
    }
}

void reset_switches(const Tables& tables, uint32_t id) {
    const uint64_t inherits = SwitchWord::by_policy(SLUICE_MODE_ENFORCE).word();
    publish(tables.switches[id].service.word, inherits);
    for (sluice_switch& rule : tables.switches[id].rule)
        publish(rule.word, inherits);
}

}  // namespace sluice
