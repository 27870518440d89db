#include "policy/schedule_marks.h"

#include <algorithm>

#include "policy/rule_id.h"

namespace sluice {

namespace {

std::vector<ConfigNode>* items_of(ConfigTable& table, std::string_view key) {
    const auto entry = std::ranges::find(table.entries, key, &ConfigEntry::key);
    auto* array =
        entry == table.entries.end() ? nullptr : std::get_if<ConfigArray>(&entry->node.value);
    return array == nullptr ? nullptr : &array->items;
}

template <class Change>
void for_each_table(ConfigTable& parent, std::string_view key, const Change& change) {
    if (auto* items = items_of(parent, key))
        for (ConfigNode& item : *items)
            if (auto* table = std::get_if<ConfigTable>(&item.value))
                change(*table, item.at);
}

std::string name_in(const ConfigTable& table) {
    const ConfigEntry* entry = table.find("name");
    const auto* name = entry != nullptr ? std::get_if<std::string>(&entry->node.value) : nullptr;
    return name != nullptr ? *name : std::string();
}

void mark(ConfigTable& schedule, const Location& at, const std::set<Rule>& rules) {
    std::erase_if(schedule.entries, [](const ConfigEntry& entry) { return entry.key == kInForce; });
    if (rules.empty())
        return;
    ConfigArray list;
    for (const Rule rule : rules)
        list.items.push_back({format_rule(rule), at});
    schedule.entries.push_back({std::string(kInForce), at, {std::move(list), at}});
}

}  // namespace

void mark_schedules(ConfigTable& config, const std::vector<DueSchedule>& due) {
    for_each_table(config, "service", [&](ConfigTable& service, const Location&) {
        for_each_table(service, "schedule", [&](ConfigTable& schedule, const Location& at) {
            const auto found = std::ranges::find_if(due, [&](const DueSchedule& one) {
                return one.service == name_in(service) && one.schedule == name_in(schedule);
            });
            mark(schedule, at, found == due.end() ? std::set<Rule>() : found->rules);
        });
    });
}

void unmark_rule(ConfigTable& service, const std::string& rule) {
    for_each_table(service, "schedule", [&](ConfigTable& schedule, const Location&) {
        if (auto* marks = items_of(schedule, kInForce))
            std::erase_if(*marks, [&](const ConfigNode& mark) {
                const auto* text = std::get_if<std::string>(&mark.value);
                return text != nullptr && *text == rule;
            });
    });
}

}  // namespace sluice
