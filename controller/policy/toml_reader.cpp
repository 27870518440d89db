// The only user of toml++: it is large, and its types stay in here.
#define TOML_EXCEPTIONS 0
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/impl/preprocessor.h>
// Malformed text such as "[[[a" reaches assertions of toml++ 3.3 (and under clang, assumptions)
// although the checks behind them report it: a typing error must not end the program.
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT_ASSUME(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>

#include "policy/config_tree.h"

namespace sluice {

namespace {

Location location(const toml::source_region& source, std::string_view file) {
    return {std::string(file), source.begin.line, source.begin.column};
}

ConfigTable convert_table(const toml::table& table, std::string_view file);

ConfigArray convert_array(const toml::array& array, std::string_view file);

ConfigNode convert_node(const toml::node& node, std::string_view file) {
    ConfigNode result;
    result.at = location(node.source(), file);
    if (const auto* text = node.as_string())
        result.value = text->get();
    else if (const auto* integer = node.as_integer())
        result.value = integer->get();
    else if (const auto* number = node.as_floating_point())
        result.value = number->get();
    else if (const auto* flag = node.as_boolean())
        result.value = flag->get();
    else if (const auto* array = node.as_array())
        result.value = convert_array(*array, file);
    else if (const auto* table = node.as_table())
        result.value = convert_table(*table, file);
    else
        result.value = ConfigDate{};
    return result;
}

ConfigArray convert_array(const toml::array& array, std::string_view file) {
    ConfigArray result;
    result.of_tables = !array.empty();
    for (const toml::node& item : array) {
        const auto* table = item.as_table();
        if (table == nullptr || table->is_inline())
            result.of_tables = false;
        result.items.push_back(convert_node(item, file));
    }
    return result;
}

ConfigTable convert_table(const toml::table& table, std::string_view file) {
    ConfigTable result;
    for (const auto& [key, node] : table)
        result.entries.push_back(
            {std::string(key.str()), location(key.source(), file), convert_node(node, file)});
    // toml++ sorts by key; people read from top to bottom, and so do our errors.
    std::stable_sort(result.entries.begin(), result.entries.end(),
                     [](const ConfigEntry& a, const ConfigEntry& b) {
                         return std::pair(a.key_at.line, a.key_at.column) <
                                std::pair(b.key_at.line, b.key_at.column);
                     });
    return result;
}

}  // namespace

Result<ConfigTable> read_toml(std::string_view text, std::string_view file_name) {
    const toml::parse_result parsed = toml::parse(text, file_name);
    if (!parsed)
        return failed(location(parsed.error().source(), file_name).to_string() + ": " +
                      std::string(parsed.error().description()));
    return convert_table(parsed.table(), file_name);
}

}  // namespace sluice
