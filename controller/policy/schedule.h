// When a schedule is to be in force, by the clock on the wall of its zone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "policy/policy.h"
#include "policy/zone.h"

namespace sluice {

// From `begin` on, and at `end` no more.
struct Occurrence {
    Instant begin, end;

    [[nodiscard]] bool has(Instant instant) const { return begin <= instant && instant < end; }
};

// That of now, or the next one; nothing where all are over. One that falls wholly into an hour that
// its day does not have is left out.
std::optional<Occurrence> occurrence_from(const Schedule& schedule, Instant now);

// All limits that the schedule changes.
std::set<Rule> rules_of(const Schedule& schedule);
// One of those, which it has.
Limit limit_of(const Schedule& schedule, Rule rule);
// The service gets that limit in the place of its own.
void put_limit(Service& service, Rule rule, const Limit& limit);

// What a schedule is to change at some instant. Of two that overlap, as they can where clocks are
// set back, the one that began later wins.
struct DueSchedule {
    std::string service;
    std::string schedule;
    std::set<Rule> rules;  // never empty

    friend bool operator==(const DueSchedule&, const DueSchedule&) = default;
};
std::vector<DueSchedule> due_schedules(const Policy& policy, Instant now);
// When that becomes other; nothing where it never does.
std::optional<Instant> next_change(const Policy& policy, Instant now);

// Whether two schedules are ever due at once by the clocks of their zones. Where those differ, in
// the year from `now` on.
bool overlap(const Schedule& a, const Schedule& b, Instant now);

// "Fri, 2026-11-11 19:55 to 20:30 Asia/Shanghai"
std::string format_times(const Schedule& schedule);
// "budget.data 60000/s, per_source.data 30/s"
std::string format_changes(const Schedule& schedule);

// The wall clock of this host.
Instant wall_now();

}  // namespace sluice
