#include "gate/source_state.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cerrno>

#include "gate/budgets.h"
#include "gate/policy_store.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;
using Wide = unsigned __int128;

constexpr uint64_t kMiddleDither = 1ULL << 63;
// Salts of the hashes, as the packet path uses them; a window's is its own.
constexpr unsigned kShortFraction = 4;  // a bucket below a quarter of its burst is short

nanoseconds from_units(uint64_t units) {
    return nanoseconds(static_cast<int64_t>(units << SLUICE_UNIT_SHIFT));
}

nanoseconds from_ns(uint64_t ns) {
    return nanoseconds(static_cast<int64_t>(ns));
}

sluice_address address_of(const IpAddress& address) {
    return {address.high64(), address.low64()};
}

// What the whole span is worth; the lag was taken from it where the coarse clock decides.
uint64_t burst_of(const sluice_limit& limit, uint32_t inverse_scale, uint64_t lag_units) {
    const Wide span = limit.span + (limit.exact != 0 ? 0 : lag_units);
    const Wide cost = Wide{limit.multiplier} * inverse_scale;  // × 2^8 ÷ 2^(shift + 16)
    return cost == 0 ? 0 : static_cast<uint64_t>((span << (limit.shift + 16)) / (cost << 8));
}

uint32_t scaled_limit(uint32_t limit, uint32_t inverse_scale) {
    const uint64_t scaled = uint64_t{limit} * SLUICE_SCALE_ONE / inverse_scale;
    return std::max<uint32_t>(1, static_cast<uint32_t>(scaled));
}

uint32_t window_time(uint64_t now_ns) {
    return std::max<uint32_t>(1, static_cast<uint32_t>(now_ns >> SLUICE_WINDOW_SHIFT));
}

struct Counted {
    uint64_t count = 0;
    nanoseconds next_free{};
};

// Another CPU's clock may be a little ahead of ours: that is no age.
uint32_t window_age(uint32_t time, uint32_t at) {
    return static_cast<int32_t>(time - at) > 0 ? time - at : 0;
}

// Of the last `most` admissions in the ring, those that still count, and when the oldest of them
// stops to.
Counted count_log(const sluice_window& window, const sluice_window_limit& limit, uint32_t most,
                  uint64_t now_ns) {
    const uint32_t time = window_time(now_ns);
    Counted counted;
    uint32_t oldest = 0;
    for (uint32_t back = 1; back <= std::min<uint32_t>(most, SLUICE_WINDOW_SLOTS); ++back) {
        const uint32_t at = window.slot[(window.head - back) % SLUICE_WINDOW_SLOTS];
        if (at == 0 || window_age(time, at) >= limit.length)
            break;
        ++counted.count;
        oldest = window_age(time, at);
    }
    counted.next_free = from_ns(uint64_t{limit.length - oldest} << SLUICE_WINDOW_SHIFT);
    return counted;
}

Counted count_cells(const sluice_window& window, const sluice_window_limit& limit,
                    uint64_t now_ns) {
    const uint64_t epoch = now_ns / limit.cell_ns;
    Counted counted;
    uint64_t oldest = 0;
    for (const uint32_t cell : window.slot) {
        const uint64_t age = (epoch - (cell >> 16)) & 0xffff;
        if (age >= SLUICE_WINDOW_SLOTS || (cell & 0xffff) == 0)
            continue;
        counted.count += cell & 0xffff;
        oldest = std::max(oldest, age);
    }
    counted.next_free = from_ns((epoch + SLUICE_WINDOW_SLOTS - oldest) * limit.cell_ns - now_ns);
    return counted;
}

}  // namespace

SourceState::SourceState(const Tables& tables, const IpAddress& source, uint32_t service_id,
                         uint8_t source_class)
    : tables_(&tables),
      policy_(&policy_in_force(tables)),
      service_(&service_in_force(tables, service_id)),
      source_(address_of(source)),
      ipv6_(source.family() == Family::ipv6),
      service_id_(service_id),
      inverse_scale_(policy_->inverse_scale[source_class]),
      now_ns_(gate_now_ns(tables)) {
    if (inverse_scale_ == 0)
        inverse_scale_ = SLUICE_SCALE_ONE;
}

uint64_t SourceState::masked_hash(uint32_t scope) const {
    const auto hash = [&](const auto& mask) {
        return sluice_address_hash(&tables_->seed(),
                                   {source_.high & mask.high, source_.low & mask.low});
    };
    return scope == SLUICE_PER_PREFIX ? hash(service_->prefix_mask[ipv6_ ? 1 : 0])
                                      : hash(policy_->source_mask[ipv6_ ? 1 : 0]);
}

uint64_t SourceState::word(uint32_t scope, uint32_t dimension) const {
    const SourceWords words(*tables_, masked_hash(scope), service_id_, scope);
    if (now_ns_ > words.touched_ns() && now_ns_ - words.touched_ns() >= SLUICE_SET_STALE_NS)
        return 0;
    return words.find(dimension);
}

uint64_t SourceState::part_word(uint32_t dimension) const {
    return are_parts_heeded(*tables_) ? word(SLUICE_PER_SOURCE, SLUICE_PART(dimension)) : 0;
}

std::optional<Part> SourceState::part(uint32_t dimension) const {
    return read_part(part_word(dimension), now_ns_);
}

LimitState SourceState::bucket(uint32_t scope, uint32_t dimension, uint64_t units) const {
    const sluice_limit& limit =
        (scope == SLUICE_PER_PREFIX ? service_->prefix : service_->source)[dimension];
    // A class, and the fleet, scale what one source may do, not what its neighbourhood may.
    const uint32_t inverse_scale =
        scope == SLUICE_PER_SOURCE
            ? sluice_both_scales(inverse_scale_,
                                 sluice_inverse_part(part_word(dimension), sluice_units(now_ns_)))
            : uint32_t{SLUICE_SCALE_ONE};
    const uint64_t cost = sluice_cost(&limit, units, inverse_scale, kMiddleDither);
    const uint64_t found = word(scope, dimension);
    const uint64_t owed =
        found == 0 ? 0 : sluice_owed(found, sluice_units(now_ns_), limit.span, cost);
    const uint64_t lag_units = (tables_->settings().lag_ns >> SLUICE_UNIT_SHIFT) + 1;

    LimitState state;
    state.admits = sluice_admits(owed, limit.span, cost) != 0;
    state.burst = burst_of(limit, inverse_scale, lag_units);
    const uint64_t left = owed < limit.span ? limit.span - owed : 0;
    state.available = static_cast<uint64_t>(Wide{state.burst} * left / limit.span);
    if (!state.admits)
        state.wait = from_units(owed + std::min<uint64_t>(cost, limit.span) - limit.span);
    return state;
}

Result<LimitState> SourceState::window() const {
    const sluice_window_limit& limit = service_->window;
    const uint64_t hash = masked_hash(SLUICE_PER_SOURCE);
    const uint64_t key = sluice_rehash(&tables_->seed(), hash, service_id_ + 1) | 1;
    const uint32_t index = static_cast<uint32_t>(key >> 32) & (tables_->sizes.window_sets - 1);
    sluice_window_set set{};
    if (bpf_map_lookup_elem(tables_->windows.get(), &index, &set) != 0)
        return from_errno(errno, "read the windows");

    LimitState state;
    state.burst = state.available = scaled_limit(limit.limit, inverse_scale_);
    if (now_ns_ > set.touched && now_ns_ - set.touched > SLUICE_SET_STALE_NS)
        return state;
    const auto* found = std::find_if(std::begin(set.window), std::end(set.window),
                                     [key](const auto& window) { return window.key == key; });
    if (found == std::end(set.window) ||
        window_age(window_time(now_ns_), found->newest) >= limit.length)
        return state;
    const Counted counted =
        limit.cell_ns != 0 ? count_cells(*found, limit, now_ns_)
                           : count_log(*found, limit, static_cast<uint32_t>(state.burst), now_ns_);
    state.available = state.burst - std::min(state.burst, counted.count);
    state.admits = state.available != 0;
    if (!state.admits)
        state.wait = counted.next_free;
    return state;
}

bool SourceState::passed_within(nanoseconds time) const {
    const uint64_t now = sluice_units(now_ns_);
    const auto least =
        -static_cast<int64_t>(static_cast<uint64_t>(time.count()) >> SLUICE_UNIT_SHIFT);
    for (uint32_t dimension = 0; dimension < SLUICE_DIMENSIONS; ++dimension) {
        const uint64_t found = (service_->source_limits & 1U << dimension) != 0
                                   ? word(SLUICE_PER_SOURCE, dimension)
                                   : 0;
        if (found != 0 && sluice_ahead(found, now) > least)
            return true;
    }
    return false;
}

std::optional<nanoseconds> SourceState::jail(bool shadow) const {
    const uint64_t found = word(SLUICE_PER_SOURCE, shadow ? SLUICE_SHADOW_JAIL : SLUICE_JAIL);
    const int64_t ahead = found == 0 ? 0 : sluice_ahead(found, sluice_units(now_ns_));
    if (ahead <= 0)
        return std::nullopt;
    return from_units(static_cast<uint64_t>(ahead));
}

BudgetState budget_state(const Tables& tables, uint32_t service_id, uint32_t dimension,
                         uint64_t units) {
    const sluice_budget& budget = tables.budgets[service_id];
    const uint64_t now_ns = gate_now_ns(tables);
    const sluice_budget_limit& limit = budget_limit(tables, service_id, dimension, now_ns);
    if (limit.burst_ns == 0)
        return {.admits = true};
    const uint64_t tat = __atomic_load_n(&budget.tat_ns[dimension], __ATOMIC_RELAXED);
    const bool is_leftover = tat <= now_ns || tat - now_ns > 2 * limit.burst_ns + SLUICE_STEER_NS;
    const uint64_t spent = is_leftover ? 0 : tat - now_ns;
    const uint64_t price = (units + limit.lease - 1) / limit.lease * limit.lease_ns;
    const uint64_t least = std::min<uint64_t>(price, limit.burst_ns);

    BudgetState state;
    state.admits = spent + least <= limit.burst_ns;
    state.is_short = spent > limit.burst_ns - limit.burst_ns / kShortFraction;
    state.shed = static_cast<double>(budget.shed[dimension]) / SLUICE_SHED_ALL;
    const uint64_t lag = limit.exact != 0 ? 0 : tables.settings().lag_ns;
    state.burst = static_cast<uint64_t>(Wide{limit.burst_ns + lag} * limit.lease / limit.lease_ns);
    const uint64_t left = spent < limit.burst_ns ? limit.burst_ns - spent : 0;
    state.available = static_cast<uint64_t>(Wide{state.burst} * left / limit.burst_ns);
    if (!state.admits)
        state.wait = from_ns(spent + least - limit.burst_ns);
    return state;
}

bool is_shed(const Tables& tables, const IpAddress& source, uint32_t service_id,
             uint32_t dimension) {
    const sluice_budget& budget = tables.budgets[service_id];
    const sluice_address address = address_of(source);
    const auto& mask = policy_in_force(tables).source_mask[source.family() == Family::ipv6 ? 1 : 0];
    const uint64_t hash =
        sluice_address_hash(&tables.seed(), {address.high & mask.high, address.low & mask.low});
    return sluice_lot(&tables.seed(), hash, budget.rotation) < budget.shed[dimension];
}

}  // namespace sluice
