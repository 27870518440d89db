// The protected set: whom a ban must not hit, because the host or its operator would be cut off.
#pragma once

#include <string_view>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/operator.h"

namespace sluice {

constexpr std::string_view kOwnAddresses = "own-addresses";
constexpr std::string_view kGateways = "gateways";
constexpr std::string_view kResolvers = "resolvers";
constexpr std::string_view kSshPeers = "ssh-peers";

// Lists that sluicectl keeps by itself; nobody else may write to them.
bool is_reserved_list(std::string_view list);

// Makes the lists follow what the host looks like now.
Status protect_host(SourceRules& rules, const Operator& who);
// The operator's own SSH client, for as long as sessions usually last.
Status protect_operator(SourceRules& rules, const Operator& who);

}  // namespace sluice
