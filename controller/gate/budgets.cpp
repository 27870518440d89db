#include "gate/budgets.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gate/policy_store.h"
#include "policy/compile_limit.h"

namespace sluice {

namespace {

using std::chrono::nanoseconds;

// A bucket that is only filled by hand earns its burst in this time, the longest that the packet
// path counts with: nothing within a lease.
constexpr nanoseconds kUnearned{static_cast<int64_t>(SLUICE_MAX_SPAN_NS)};
// Rates are written as whole units in so many seconds, which keeps a thousandth of a unit a second.
constexpr int64_t kRateSeconds = 1000;

sluice_share& share_at(const Tables& tables, uint32_t service_id, uint32_t dimension) {
    return tables.shares[size_t{service_id} * SLUICE_DIMENSIONS + dimension];
}

Result<sluice_budget_limit> compiled(const Tables& tables, const BudgetAllowance& allowance,
                                     Dimension dimension) {
    if (allowance.unlimited)
        return counted_only();
    TokenBucket bucket;
    bucket.burst = std::max<uint64_t>(1, static_cast<uint64_t>(allowance.burst));
    const auto earned = static_cast<uint64_t>(allowance.per_second * kRateSeconds);
    bucket.rate = earned == 0 ? Rate{bucket.burst, kUnearned}
                              : Rate{earned, std::chrono::seconds(kRateSeconds)};
    return compile_budget(bucket, dimension, {tables.settings().tick_ns, tables.settings().lag_ns});
}

// As the packet path computes it.
double unit_ns(const sluice_budget_limit& limit) {
    return static_cast<double>(limit.lease_ns) / std::max(limit.lease, 1U);
}

double tokens(const sluice_budget_limit& limit, uint64_t tat_ns, uint64_t now_ns) {
    if (limit.burst_ns == 0)
        return 0;  // whoever was without a limit has saved nothing
    const uint64_t most = 2 * limit.burst_ns + SLUICE_MAX_DEBT * limit.lease_ns + SLUICE_STEER_NS;
    const uint64_t spent = tat_ns <= now_ns || tat_ns - now_ns > most ? 0 : tat_ns - now_ns;
    return (static_cast<double>(limit.burst_ns) - static_cast<double>(spent)) / unit_ns(limit);
}

// When a bucket with so many tokens would be full.
uint64_t tat_with(const sluice_budget_limit& limit, double tokens, uint64_t now_ns) {
    if (limit.burst_ns == 0)
        return now_ns;
    const double missing = static_cast<double>(limit.burst_ns) - tokens * unit_ns(limit);
    return now_ns + static_cast<uint64_t>(std::ceil(std::max(0.0, missing)));
}

// What is in the bucket under the old terms, in the words of the new ones.
void carry_over(const Tables& tables, uint32_t service_id, uint32_t dimension,
                const sluice_budget_limit& before, const sluice_budget_limit& now, double added) {
    __u64& tat_ns = tables.budgets[service_id].tat_ns[dimension];
    __u64 old = __atomic_load_n(&tat_ns, __ATOMIC_ACQUIRE);
    for (;;) {
        const uint64_t now_ns = gate_now_ns(tables);
        const double kept = tokens(before, old, now_ns) + added;
        const uint64_t wanted = tat_with(now, kept, now_ns);
        if (__atomic_compare_exchange_n(&tat_ns, &old, wanted, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return;
    }
}

BudgetAllowance allowance_of(const Tables& tables, const sluice_budget_limit& limit) {
    if (limit.burst_ns == 0)
        return {.per_second = 0, .burst = 0, .unlimited = true};
    const double unit = unit_ns(limit);
    // The coarse clock's lag was taken off it.
    const uint64_t lag_ns = limit.exact != 0 ? 0 : tables.settings().lag_ns;
    const double burst = std::round(static_cast<double>(limit.burst_ns + lag_ns) / unit);
    // One that is filled by hand earns next to nothing.
    const bool is_earned = limit.burst_ns < SLUICE_MAX_SPAN_NS / 2;
    return {.per_second = is_earned ? 1e9 / unit : 0, .burst = burst};
}

bool is_same(const sluice_budget_limit& a, const sluice_budget_limit& b) {
    return a.burst_ns == b.burst_ns && a.lease_ns == b.lease_ns && a.lease == b.lease;
}

}  // namespace

Status put_share(const Tables& tables, uint32_t service_id, Dimension dimension,
                 const BudgetShare& wanted) {
    const auto now = compiled(tables, wanted.now, dimension);
    if (!now)
        return now.error();
    const auto after = compiled(tables, wanted.after, dimension);
    if (!after)
        return after.error();
    const auto d = static_cast<uint32_t>(dimension);
    sluice_share& share = share_at(tables, service_id, d);
    const sluice_budget_limit before = budget_limit(tables, service_id, d, gate_now_ns(tables));
    const sluice_terms& held = share.terms[share.number & 1];
    if (share.number != 0 && is_same(before, *now) && is_same(held.now, *now) &&
        is_same(held.after, *after)) {
        if (wanted.added != 0)
            carry_over(tables, service_id, d, before, *now, wanted.added);
        __atomic_store_n(&share.until_ns, wanted.until_ns, __ATOMIC_RELEASE);
        return {};
    }
    // Between the two steps the bucket is read by the wrong terms. Under a slower rate a tat means
    // less that is spent, so the slower rate never meets a tat of the faster one.
    const bool slower = unit_ns(*now) > unit_ns(before);
    if (slower)
        carry_over(tables, service_id, d, before, *now, wanted.added);
    const uint32_t number = share.number + 1;
    share.terms[number & 1] = {*now, *after};
    __atomic_store_n(&share.number, number, __ATOMIC_RELEASE);
    __atomic_store_n(&share.until_ns, wanted.until_ns, __ATOMIC_RELEASE);
    if (!slower)
        carry_over(tables, service_id, d, before, *now, wanted.added);
    return {};
}

std::optional<BudgetShare> read_share(const Tables& tables, uint32_t service_id,
                                      Dimension dimension) {
    const sluice_share& share = share_at(tables, service_id, static_cast<uint32_t>(dimension));
    if (share.number == 0)
        return std::nullopt;
    const sluice_terms& terms = share.terms[share.number & 1];
    return BudgetShare{allowance_of(tables, terms.now), 0, share.until_ns,
                       allowance_of(tables, terms.after)};
}

void drop_share(const Tables& tables, uint32_t service_id, Dimension dimension) {
    sluice_share& share = share_at(tables, service_id, static_cast<uint32_t>(dimension));
    __atomic_store_n(&share.number, 0, __ATOMIC_RELEASE);
}

const sluice_budget_limit& budget_limit(const Tables& tables, uint32_t service_id,
                                        uint32_t dimension, uint64_t now_ns) {
    const sluice_service& service = service_in_force(tables, service_id);
    const sluice_share& share = share_at(tables, service_id, dimension);
    const uint32_t number = __atomic_load_n(&share.number, __ATOMIC_ACQUIRE);
    if ((service.flags & SLUICE_SERVICE_SHARED(dimension)) == 0 || number == 0)
        return service.budget[dimension];
    const sluice_terms& terms = share.terms[number & 1];
    const bool is_over = now_ns >= __atomic_load_n(&share.until_ns, __ATOMIC_ACQUIRE);
    return is_over ? terms.after : terms.now;
}

BudgetAllowance budget_allowance(const Tables& tables, uint32_t service_id, Dimension dimension,
                                 uint64_t now_ns) {
    return allowance_of(tables,
                        budget_limit(tables, service_id, static_cast<uint32_t>(dimension), now_ns));
}

double budget_tokens(const Tables& tables, uint32_t service_id, Dimension dimension) {
    const auto d = static_cast<uint32_t>(dimension);
    const uint64_t now_ns = gate_now_ns(tables);
    const uint64_t tat_ns =
        __atomic_load_n(&tables.budgets[service_id].tat_ns[d], __ATOMIC_ACQUIRE);
    return tokens(budget_limit(tables, service_id, d, now_ns), tat_ns, now_ns);
}

uint64_t budget_demand(const Tables& tables, uint32_t service_id, Dimension dimension) {
    const auto d = static_cast<size_t>(dimension);
    uint64_t units = tables.budgets[service_id].demand[d];
    for (uint32_t cpu = 0; cpu < tables.sizes.cpus; ++cpu)
        units += tables.leases[cpu * tables.sizes.services + service_id].demand[d];
    return units;
}

}  // namespace sluice
