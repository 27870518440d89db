#include "policy/rule_id.h"

#include <algorithm>

#include "base/text.h"

namespace sluice {

namespace {

// The names of an enum in the order of its values, which start at 0.
template <size_t N>
using Names = std::array<std::string_view, N>;

constexpr Names<3> kModes = {"off", "observe", "enforce"};
constexpr Names<3> kXdpModes = {"auto", "native", "generic"};
constexpr Names<4> kDimensionNames = {"connections", "data", "packets", "bytes"};
constexpr Names<3> kScopes = {"per_source", "per_prefix", "budget"};

template <size_t N, class E>
std::string_view name_of(const Names<N>& names, E value) {
    const auto index = static_cast<size_t>(value);
    return index < N ? names[index] : "unknown";
}

template <class E, size_t N>
Result<E> value_of(const Names<N>& names, std::string_view what, std::string_view text) {
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end())
        return static_cast<E>(found - names.begin());
    std::string hint = "use one of:";
    for (const std::string_view name : names)
        hint += ' ' + std::string(name);
    return make_error(ErrorCode::usage, in_quotes(text) + " is not " + std::string(what),
                      std::move(hint));
}

}  // namespace

std::string_view mode_name(Mode mode) {
    return name_of(kModes, mode);
}
Result<Mode> parse_mode(std::string_view text) {
    return value_of<Mode>(kModes, "a mode", text);
}

std::string_view xdp_mode_name(XdpMode mode) {
    return name_of(kXdpModes, mode);
}
Result<XdpMode> parse_xdp_mode(std::string_view text) {
    return value_of<XdpMode>(kXdpModes, "an XDP mode", text);
}

std::string_view dimension_name(Dimension dimension) {
    return name_of(kDimensionNames, dimension);
}
Result<Dimension> parse_dimension(std::string_view text) {
    return value_of<Dimension>(kDimensionNames, "a dimension", text);
}

std::string_view scope_name(Scope scope) {
    return name_of(kScopes, scope);
}
Result<Scope> parse_scope(std::string_view text) {
    return value_of<Scope>(kScopes, "a scope", text);
}

std::string format_rule(Rule rule) {
    return std::string(scope_name(rule.scope)) + "." + std::string(dimension_name(rule.dimension));
}

Result<Rule> parse_rule(std::string_view text) {
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos)
        return make_error(ErrorCode::usage, in_quotes(text) + " is not a rule",
                          "use SCOPE.DIMENSION such as \"per_source.connections\"");
    const auto scope = parse_scope(text.substr(0, dot));
    if (!scope)
        return scope.error();
    const auto dimension = parse_dimension(text.substr(dot + 1));
    if (!dimension)
        return dimension.error();
    return Rule{*scope, *dimension};
}

std::string format_rule_id(const RuleId& id) {
    return id.service + "." + format_rule(id.rule);
}

Result<RuleId> parse_rule_id(std::string_view text) {
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos || !is_valid_name(text.substr(0, dot)))
        return make_error(ErrorCode::usage, in_quotes(text) + " is not a rule id",
                          "use SERVICE.SCOPE.DIMENSION such as \"login.per_source.connections\"");
    const auto rule = parse_rule(text.substr(dot + 1));
    if (!rule)
        return rule.error().with_context(shortened(text));
    return RuleId{std::string(text.substr(0, dot)), *rule};
}

bool is_valid_name(std::string_view name) {
    constexpr size_t kLongestName = 32;
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    };
    return !name.empty() && name.size() <= kLongestName &&
           std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace sluice
