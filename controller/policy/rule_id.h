// Stable names: of modes, scopes and dimensions, and of every rule ("login.per_source.data").
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "policy/policy.h"

namespace sluice {

std::string_view mode_name(Mode mode);
Result<Mode> parse_mode(std::string_view text);

std::string_view xdp_mode_name(XdpMode mode);
Result<XdpMode> parse_xdp_mode(std::string_view text);

Result<Dimension> parse_dimension(std::string_view text);
Result<Scope> parse_scope(std::string_view text);

// "per_source.connections"
std::string format_rule(Rule rule);
Result<Rule> parse_rule(std::string_view text);

// One limit of one service.
struct RuleId {
    std::string service;
    Rule rule;

    friend auto operator<=>(const RuleId&, const RuleId&) = default;
};

// "login.per_source.connections"
std::string format_rule_id(const RuleId& id);
Result<RuleId> parse_rule_id(std::string_view text);

// Names of services and classes: [a-z0-9-]{1,32}.
bool is_valid_name(std::string_view name);

}  // namespace sluice
