#include "observe/schedule_audit.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "policy/find_service.h"
#include "policy/rule_id.h"
#include "policy/schedule.h"
#include "policy/written_rate.h"

namespace sluice {

namespace {

// What the policy says is in force of that schedule.
std::set<Rule> in_force(const Policy& policy, const std::string& service, const std::string& name) {
    const Service* found = find_service(policy, service);
    if (found == nullptr)
        return {};
    const auto schedule = std::ranges::find(found->schedules, name, &Schedule::name);
    return schedule == found->schedules.end() ? std::set<Rule>() : schedule->in_force;
}

std::set<Rule> without(const std::set<Rule>& rules, const std::set<Rule>& others) {
    std::set<Rule> left;
    std::ranges::set_difference(rules, others, std::inserter(left, left.end()));
    return left;
}

std::string numbers(const Policy& policy, const std::string& service, const std::set<Rule>& rules) {
    std::string text;
    for (const Rule rule : rules)
        if (const std::string rate = written_rate(policy, service, rule); !rate.empty())
            text += (text.empty() ? "" : ", ") + format_rule(rule) + ' ' + rate;
    return text;
}

// Those of `here` that `there` does not have in force.
void add_turns(const Policy& before, const Policy& after, bool begins,
               std::vector<ScheduleTurn>& turns) {
    const Policy& here = begins ? after : before;
    const Policy& there = begins ? before : after;
    for (const Service& service : here.services)
        for (const Schedule& schedule : service.schedules) {
            const std::set<Rule> rules =
                without(schedule.in_force, in_force(there, service.name, schedule.name));
            if (rules.empty())
                continue;
            turns.push_back({{"schedule:" + schedule.name, {}},
                             {begins ? "schedule begins" : "schedule ends", service.name,
                              numbers(before, service.name, rules),
                              numbers(after, service.name, rules), format_times(schedule)}});
        }
}

}  // namespace

std::string ScheduleTurn::to_string() const {
    return entry.action + ", " + who.name + " of " + entry.target + ": " + entry.after +
           ", before " + entry.before;
}

std::vector<ScheduleTurn> schedule_turns(const Policy& before, const Policy& after) {
    std::vector<ScheduleTurn> turns;
    add_turns(before, after, false, turns);
    add_turns(before, after, true, turns);
    return turns;
}

}  // namespace sluice
