// Medians of rounds, and how far the rounds lie apart.
#pragma once

#include <vector>

namespace sluice::bench {

struct Spread {
    double median = 0;
    double low = 0;  // half of the values lie between low and high
    double high = 0;
};

// Of at least one value.
Spread spread_of(std::vector<double> values);

}  // namespace sluice::bench
