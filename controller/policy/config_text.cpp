#include "policy/config_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace sluice {

namespace {

std::string string_text(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            (out += '\\') += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            std::array<char, 8> escape{};
            (void)std::snprintf(escape.data(), escape.size(), "\\u%04x", byte);
            out += escape.data();
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string key_text(const std::string& key) {
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
    return bare ? key : string_text(key);
}

std::string number_text(double number) {
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
    std::string text(buffer.data(), end);
    // Without a point or an exponent it would be read back as an integer.
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string inline_text(const ConfigNode& node);

struct InlineWriter {
    std::string operator()(const std::string& text) const { return string_text(text); }
    std::string operator()(int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const ConfigDate&) const { return string_text(""); }
    std::string operator()(const ConfigArray& array) const {
        std::string out;
        for (const ConfigNode& item : array.items)
            out += (out.empty() ? "" : ", ") + inline_text(item);
        return '[' + out + ']';
    }
    std::string operator()(const ConfigTable& table) const {
        std::string out;
        for (const ConfigEntry& entry : table.entries)
            out +=
                (out.empty() ? "" : ", ") + key_text(entry.key) + " = " + inline_text(entry.node);
        return "{ " + out + " }";
    }
};

std::string inline_text(const ConfigNode& node) {
    return std::visit(InlineWriter{}, node.value);
}

bool is_section(const ConfigNode& node) {
    const auto* array = std::get_if<ConfigArray>(&node.value);
    return std::holds_alternative<ConfigTable>(node.value) ||
           (array != nullptr && array->of_tables);
}

// Plain keys first: whatever follows a heading belongs to it.
void write_table(const ConfigTable& table, const std::string& path, std::string& out) {
    for (const ConfigEntry& entry : table.entries)
        if (!is_section(entry.node))
            out += key_text(entry.key) + " = " + inline_text(entry.node) + '\n';
    for (const ConfigEntry& entry : table.entries) {
        const std::string name = path + key_text(entry.key);
        if (const auto* section = std::get_if<ConfigTable>(&entry.node.value)) {
            out += "\n[" + name + "]\n";
            write_table(*section, name + '.', out);
        } else if (is_section(entry.node)) {
            for (const ConfigNode& item : std::get<ConfigArray>(entry.node.value).items) {
                out += "\n[[" + name + "]]\n";
                write_table(std::get<ConfigTable>(item.value), name + '.', out);
            }
        }
    }
}

}  // namespace

std::string config_text(const ConfigTable& config) {
    std::string text;
    write_table(config, "", text);
    return text;
}

}  // namespace sluice
