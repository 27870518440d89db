// The rows of the table: what is sent, from how many sources, and who receives it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contender.h"
#include "flood.h"
#include "setup.h"

namespace sluice::bench {

struct Entrant {
    std::string name;  // as in the table; a contender may be in a row by several
    Contender* contender = nullptr;
    uint16_t port = kLimitedPort;
};

struct Row {
    std::string group;  // what plots put together
    std::string name;
    Setup setup;
    lab::FloodPlan packets;
    std::string sources;
    unsigned cores = 1;
    uint64_t warm_up = 0;  // packets to each before the first round
    std::vector<Entrant> entrants;
};

// Entrants who are missing here, or who cannot do what the row asks, are left out.
std::vector<Row> all_rows(const Cast& cast);

// Groups that plots are made of.
inline constexpr const char *kOverGroup = "over a limit", *kBannedGroup = "banned",
                            *kNetworkGroup = "banned networks", *kWithinGroup = "within a limit";

}  // namespace sluice::bench
