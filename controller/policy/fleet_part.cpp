#include "policy/fleet_part.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>

#include "net/address.h"

namespace sluice {

namespace {

constexpr std::array<std::string_view, 13> kOfHost = {
    "interfaces", "xdp_mode", "redis",    "fleet", "control", "metrics", "events",
    "asn",        "risk",     "honeypot", "feeds", "tune",    "rl"};
constexpr std::array<std::string_view, 2> kOfHostInSources = {"capacity", "on_table_full"};
constexpr std::array<std::string_view, 3> kReplaced = {"service", "class", "forwarder"};
constexpr std::array<std::string_view, 2> kReplacedInSources = {"ipv4_prefix", "ipv6_prefix"};

template <size_t N>
bool is_in(const std::array<std::string_view, N>& keys, std::string_view key) {
    return std::ranges::find(keys, key) != keys.end();
}

template <size_t N>
void leave_out(ConfigTable& table, const std::array<std::string_view, N>& keys,
               const std::string& path, std::vector<std::string>& left_out) {
    std::erase_if(table.entries, [&](const ConfigEntry& entry) {
        if (!is_in(keys, entry.key))
            return false;
        left_out.push_back(entry.key_at.to_string() + ": " + path + entry.key +
                           ": is each host's own, and stays out");
        return true;
    });
}

ConfigEntry* find_entry(ConfigTable& table, std::string_view key) {
    const auto found = std::ranges::find(table.entries, key, &ConfigEntry::key);
    return found == table.entries.end() ? nullptr : &*found;
}

ConfigTable* find_table(ConfigTable& table, std::string_view key) {
    ConfigEntry* entry = find_entry(table, key);
    return entry == nullptr ? nullptr : std::get_if<ConfigTable>(&entry->node.value);
}

// In place of what stands there.
void put(ConfigTable& table, ConfigEntry entry) {
    if (ConfigEntry* known = find_entry(table, entry.key))
        *known = std::move(entry);
    else
        table.entries.push_back(std::move(entry));
}

// Of an allow that makes sense.
std::optional<Prefix> prefix_of(const ConfigNode& allow) {
    const auto* text = std::get_if<std::string>(&allow.value);
    if (const auto* table = std::get_if<ConfigTable>(&allow.value))
        if (const ConfigEntry* entry = table->find("prefix"))
            text = std::get_if<std::string>(&entry->node.value);
    const auto prefix = text != nullptr ? Prefix::parse(*text) : failed("no prefix");
    return prefix ? std::optional(*prefix) : std::nullopt;
}

// The host's own word about a prefix is the one that holds.
void add_allows(ConfigTable& sources, ConfigEntry allows) {
    ConfigEntry* known = find_entry(sources, allows.key);
    auto* own = known != nullptr ? std::get_if<ConfigArray>(&known->node.value) : nullptr;
    auto* added = std::get_if<ConfigArray>(&allows.node.value);
    if (own == nullptr || added == nullptr)
        return put(sources, std::move(allows));
    std::set<Prefix> here;
    for (const ConfigNode& item : own->items)
        if (const auto prefix = prefix_of(item))
            here.insert(*prefix);
    for (ConfigNode& item : added->items)
        if (const auto prefix = prefix_of(item); !prefix || !here.contains(*prefix))
            own->items.push_back(std::move(item));
}

void add_sources(ConfigTable& host, ConfigEntry entry) {
    ConfigTable* own = find_table(host, entry.key);
    auto* added = std::get_if<ConfigTable>(&entry.node.value);
    if (own == nullptr || added == nullptr)
        return put(host, std::move(entry));
    for (ConfigEntry& source : added->entries) {
        if (source.key == "allow")
            add_allows(*own, std::move(source));
        else
            put(*own, std::move(source));
    }
}

}  // namespace

FleetPart fleet_part(ConfigTable config) {
    FleetPart part;
    leave_out(config, kOfHost, "", part.left_out);
    if (ConfigTable* sources = find_table(config, "sources"))
        leave_out(*sources, kOfHostInSources, "sources.", part.left_out);
    part.policy = std::move(config);
    return part;
}

ConfigTable with_fleet_part(ConfigTable host, ConfigTable policy) {
    std::erase_if(host.entries,
                  [](const ConfigEntry& entry) { return is_in(kReplaced, entry.key); });
    if (ConfigTable* sources = find_table(host, "sources"))
        std::erase_if(sources->entries, [](const ConfigEntry& entry) {
            return is_in(kReplacedInSources, entry.key);
        });
    for (ConfigEntry& entry : policy.entries) {
        if (entry.key == "sources")
            add_sources(host, std::move(entry));
        else
            put(host, std::move(entry));
    }
    return host;
}

}  // namespace sluice
