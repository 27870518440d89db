#include "operate/scheduled_config.h"

#include <algorithm>

#include "policy/config_text.h"
#include "policy/parse.h"
#include "policy/schedule_marks.h"

namespace sluice {

namespace {

// Those that the policy says are in force.
std::vector<DueSchedule> marked(const Policy& policy) {
    std::vector<DueSchedule> marked;
    for (const Service& service : policy.services)
        for (const Schedule& schedule : service.schedules)
            if (!schedule.in_force.empty())
                marked.push_back({service.name, schedule.name, schedule.in_force});
    return marked;
}

}  // namespace

Result<ConfigFile> with_schedules(ConfigFile config, Instant now) {
    const std::vector<DueSchedule> due = due_schedules(config.policy, now);
    const std::vector<DueSchedule> before = marked(config.policy);
    if (std::ranges::is_permutation(due, before))
        return config;
    auto tree = read_toml(config.text, config.source);
    if (!tree)
        return tree.error();
    mark_schedules(*tree, due);
    auto policy = read_policy(*tree, config.source);
    if (!policy)
        return policy.error();
    return ConfigFile{*std::move(policy), "# " + config.source + '\n' + config_text(*tree),
                      std::move(config.source)};
}

}  // namespace sluice
