#include "policy/config_tree.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <unordered_map>

#include "base/text.h"

namespace sluice {

namespace {

Status merge_table(ConfigTable& base, ConfigTable added, const std::string& path) {
    std::unordered_map<std::string, size_t> places;
    for (size_t i = 0; i < base.entries.size(); ++i)
        places.emplace(base.entries[i].key, i);
    for (ConfigEntry& entry : added.entries) {
        const auto place = places.find(entry.key);
        if (place == places.end()) {
            base.entries.push_back(std::move(entry));
            continue;
        }
        ConfigEntry* known = &base.entries[place->second];
        const std::string name = path + shortened(entry.key);
        auto* tables = std::get_if<ConfigTable>(&known->node.value);
        auto* more_tables = std::get_if<ConfigTable>(&entry.node.value);
        if (tables != nullptr && more_tables != nullptr) {
            if (auto status = merge_table(*tables, std::move(*more_tables), name + "."); !status)
                return status;
            continue;
        }
        auto* array = std::get_if<ConfigArray>(&known->node.value);
        auto* more_items = std::get_if<ConfigArray>(&entry.node.value);
        if (array != nullptr && more_items != nullptr && array->of_tables &&
            more_items->of_tables) {
            std::move(more_items->items.begin(), more_items->items.end(),
                      std::back_inserter(array->items));
            continue;
        }
        return failed(entry.key_at.to_string() + ": " + name + ": already set at " +
                      known->key_at.to_string() + "; keep one of the two");
    }
    return {};
}

}  // namespace

std::string Location::to_string() const {
    return file + ":" + std::to_string(line) + ":" + std::to_string(column);
}

const ConfigEntry* ConfigTable::find(std::string_view key) const {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const ConfigEntry& entry) { return entry.key == key; });
    return found == entries.end() ? nullptr : &*found;
}

std::string_view kind_name(const ConfigNode::Value& value) {
    constexpr std::array<std::string_view, std::variant_size_v<ConfigNode::Value>> kNames = {
        "a string", "an integer", "a number", "a boolean", "a date", "an array", "a table"};
    return kNames[value.index()];
}

Status merge(ConfigTable& base, ConfigTable added) {
    return merge_table(base, std::move(added), "");
}

}  // namespace sluice
