#include "policy/service_change.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "policy/rule_id.h"
#include "policy/schedule_marks.h"

namespace sluice {

namespace {

constexpr std::string_view kPlace = "override";
constexpr size_t kLongestValue = 100;  // of a limit as people write it

Error no_change(std::string_view text, std::string_view what) {
    return make_error(ErrorCode::usage, in_quotes(text) + ' ' + std::string(what),
                      "use such as budget.data=60000/s or per_source.connections=20/s");
}

Result<ConfigNode> node_of(const std::string& value) {
    const Location at{std::string(kPlace), 1, 1};
    if (!value.starts_with('{'))
        return ConfigNode{value, at};
    auto table = read_toml("v = " + value, kPlace);
    if (!table)
        return table.error();
    ConfigNode node = std::move(table->entries.front().node);
    node.at = at;
    return node;
}

ConfigEntry& entry_of(ConfigTable& table, const std::string& key, const ConfigNode& absent) {
    const auto known = std::ranges::find(table.entries, key, &ConfigEntry::key);
    if (known != table.entries.end())
        return *known;
    return table.entries.emplace_back(ConfigEntry{key, absent.at, absent});
}

ConfigTable* find_service(ConfigTable& config, const std::string& name) {
    const auto services = std::ranges::find(config.entries, "service", &ConfigEntry::key);
    auto* array = services == config.entries.end()
                      ? nullptr
                      : std::get_if<ConfigArray>(&services->node.value);
    if (array == nullptr)
        return nullptr;
    for (ConfigNode& item : array->items) {
        auto* service = std::get_if<ConfigTable>(&item.value);
        const ConfigEntry* named = service != nullptr ? service->find("name") : nullptr;
        const auto* text =
            named != nullptr ? std::get_if<std::string>(&named->node.value) : nullptr;
        if (text != nullptr && *text == name)
            return service;
    }
    return nullptr;
}

}  // namespace

Result<std::pair<std::string, std::string>> parse_change_value(std::string_view text) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos)
        return no_change(text, "is no KEY=VALUE");
    const std::string_view key = text.substr(0, equals), value = text.substr(equals + 1);
    if (!parse_rule(key))
        return no_change(key, "is no limit of a service");
    const bool is_plain = std::ranges::all_of(
        value, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != 127; });
    if (value.empty() || value.size() > kLongestValue || !is_plain)
        return no_change(text, "has no value that could be a limit");
    return std::pair(std::string(key), std::string(value));
}

std::string format_change_values(const ServiceChange& change) {
    std::string text;
    for (const auto& [key, value] : change.values)
        text += (text.empty() ? "" : " ") + key + '=' + value;
    return text;
}

Status change_service(ConfigTable& config, const ServiceChange& change) {
    ConfigTable* service = find_service(config, change.service);
    if (service == nullptr)
        return make_error(ErrorCode::not_found,
                          "the policy has no service " + in_quotes(change.service),
                          "those it has: sluicectl services");
    for (const auto& [key, value] : change.values) {
        auto node = node_of(value);
        if (!node)
            return node.error();
        const size_t dot = key.find('.');
        const ConfigNode empty{ConfigTable{}, node->at};
        ConfigEntry& scope = entry_of(*service, key.substr(0, dot), empty);
        auto* limits = std::get_if<ConfigTable>(&scope.node.value);
        if (limits == nullptr)
            return failed(scope.key_at.to_string() + ": " + scope.key + ": is no table");
        entry_of(*limits, key.substr(dot + 1), empty).node = *std::move(node);
        unmark_rule(*service, key);  // a schedule that is due is not over it
    }
    return {};
}

}  // namespace sluice
