// Reads [rl]: how another limiter's policies in Redis are followed.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "policy/config_reader.h"
#include "policy/policy.h"

namespace sluice {

// Of a gateway's routes: 1 to 64 of letters, digits, "." "_" "/" and "-".
bool is_valid_route(std::string_view route);

// What each of these numbers may be, and what it is called; in the order of the members.
struct RlField {
    std::string_view name;
    std::optional<double> RlNumbers::*member;
    double least, most;
    bool is_whole;
};
extern const std::array<RlField, 4> kRlFields;

void read_rl(const Field& field, Policy& policy);

}  // namespace sluice
