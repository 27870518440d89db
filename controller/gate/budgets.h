// Budgets of services on this host: what is asked of them, and the fleet's shares of those that it
// shares.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "gate/tables.h"
#include "policy/policy.h"

namespace sluice {

// What holds of a budget on this host; units are the dimension's.
struct BudgetAllowance {
    double per_second = 0;  // 0: no more than what is in the bucket
    double burst = 0;       // the most that the bucket holds
    bool unlimited = false;
};

// Complete in itself: nobody has to be alive when it ends.
struct BudgetShare {
    BudgetAllowance now;
    double added = 0;       // units put into the bucket once
    uint64_t until_ns = 0;  // monotonic: the end of `now`
    BudgetAllowance after;  // from then on
};

// Puts a share in force; the budget has to be a shared one to heed it. Tokens are kept, as far as
// the new burst holds them: what a rate would have earned in the past is not handed out. In the
// moment of the change it is never more than the old and the new terms allow. One caller at a time.
Status put_share(const Tables& tables, uint32_t service_id, Dimension dimension,
                 const BudgetShare& share);

// The share as it stands, also after its end; nothing where there is none.
std::optional<BudgetShare> read_share(const Tables& tables, uint32_t service_id,
                                      Dimension dimension);
// The policy's own limit holds again.
void drop_share(const Tables& tables, uint32_t service_id, Dimension dimension);

// The limit that the packet path goes by at this time.
const sluice_budget_limit& budget_limit(const Tables& tables, uint32_t service_id,
                                        uint32_t dimension, uint64_t now_ns);

// The same, in units.
BudgetAllowance budget_allowance(const Tables& tables, uint32_t service_id, Dimension dimension,
                                 uint64_t now_ns);

// Units in the bucket; CPUs hold a little more, which they have leased.
double budget_tokens(const Tables& tables, uint32_t service_id, Dimension dimension);

// Units asked for since ever by what passed the limits of sources, kept or not.
uint64_t budget_demand(const Tables& tables, uint32_t service_id, Dimension dimension);

}  // namespace sluice
