// A configuration file as a tree of values that know where they stand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace sluice {

struct Location {
    std::string file;
    uint32_t line = 0;
    uint32_t column = 0;

    [[nodiscard]] std::string to_string() const;  // "sluice.toml:12:9"
};

struct ConfigNode;
struct ConfigEntry;

// The entries in the order of the file; an ordered map would lose it.
struct ConfigTable {
    std::vector<ConfigEntry> entries;

    [[nodiscard]] const ConfigEntry* find(std::string_view key) const;
};

struct ConfigArray {
    std::vector<ConfigNode> items;
    bool of_tables = false;  // written as [[…]], so that another file may append to it
};

// TOML knows dates; no key of ours takes one.
struct ConfigDate {};

struct ConfigNode {
    using Value =
        std::variant<std::string, int64_t, double, bool, ConfigDate, ConfigArray, ConfigTable>;
    Value value;
    Location at;
};

struct ConfigEntry {
    std::string key;
    Location key_at;
    ConfigNode node;
};

// "a string", "an integer", …: for errors.
std::string_view kind_name(const ConfigNode::Value& value);

// Reads TOML; a syntax error names file, line and column.
Result<ConfigTable> read_toml(std::string_view text, std::string_view file_name);

// Adds another file: tables merge, arrays of tables append, anything else set twice is an error
// that names both places.
Status merge(ConfigTable& base, ConfigTable added);

}  // namespace sluice
