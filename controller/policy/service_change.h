// Other numbers for one service, laid over a configuration: what an override is made of.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "policy/config_tree.h"

namespace sluice {

struct ServiceChange {
    std::string service;
    std::vector<std::pair<std::string, std::string>> values;  // "budget.data" -> "60000/s"

    friend bool operator==(const ServiceChange&, const ServiceChange&) = default;
};

// "budget.data=60000/s", or with a TOML table behind it: "per_source.connections={ limit = 5,
// window = \"60s\" }".
Result<std::pair<std::string, std::string>> parse_change_value(std::string_view text);
// "budget.data=60000/s budget.connections=10/s"
std::string format_change_values(const ServiceChange& change);

// Makes the change in a configuration that was read. Whether the numbers make sense is for whoever
// reads it on; errors then name the key, and "override" as their file. ErrorCode::not_found where
// there is no such service.
Status change_service(ConfigTable& config, const ServiceChange& change);

}  // namespace sluice
