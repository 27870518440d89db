// What the audit log says of schedules that begin and end.
#pragma once

#include <string>
#include <vector>

#include "observe/audit.h"
#include "policy/policy.h"

namespace sluice {

struct ScheduleTurn {
    Operator who;  // "schedule:flash-sale"
    AuditEntry entry;

    // "schedule begins, schedule:flash-sale of login: budget.data 60000/s, before budget.data
    // 20000/s"
    [[nodiscard]] std::string to_string() const;
};

// What begins and ends where one policy takes the place of the other, by what they say is in force.
std::vector<ScheduleTurn> schedule_turns(const Policy& before, const Policy& after);

}  // namespace sluice
