#include "spread.h"

#include <algorithm>
#include <cstddef>

namespace sluice::bench {

Spread spread_of(std::vector<double> values) {
    std::ranges::sort(values);
    // The value that a share of them lies below.
    const auto quantile = [&](double share) {
        return values[static_cast<size_t>(static_cast<double>(values.size() - 1) * share + 0.5)];
    };
    return {.median = quantile(0.5), .low = quantile(0.25), .high = quantile(0.75)};
}

}  // namespace sluice::bench
