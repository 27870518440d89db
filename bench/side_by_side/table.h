// Results for people and for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>

#include "race.h"

namespace sluice::bench {

void print_heading(std::ostream& out);
void print(std::ostream& out, const RowResult& result);
nlohmann::json to_json(const RowResult& result);

}  // namespace sluice::bench
