// What the back end of a service can take, against what it is to get.
#pragma once

#include <string>
#include <vector>

#include "policy/policy.h"

namespace sluice {

// Units a second, not rounded.
double per_second(Rate rate);

// Of each budget above its service's capacity, in words:
// "login.budget.data = 100k/s is above its capacity of 80k/s". Of schedules, whether they are due
// or not: "schedule flash-sale: login.budget.data = …".
std::vector<std::string> above_capacity(const Policy& policy);

}  // namespace sluice
