// The protected set: whom a ban must not hit, because the host or its operator would be cut off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gate/source_rules.h"
#include "operate/operator.h"

namespace sluice {

constexpr std::string_view kOwnAddresses = "own-addresses";
constexpr std::string_view kGateways = "gateways";
constexpr std::string_view kResolvers = "resolvers";
constexpr std::string_view kSshPeers = "ssh-peers";
constexpr std::string_view kGrace = "grace";  // unbanned a moment ago

// Lists that sluicectl keeps by itself; nobody else may write to them.
bool is_reserved_list(std::string_view list);

struct ProtectedSource {
    IpAddress address;
    std::string_view list;
    std::string_view reason;
};

// Whom this host and its operator cannot do without, by what they look like now. Of the operator
// alone where the gate is on interfaces of another namespace, whose addresses these are not.
Result<std::vector<ProtectedSource>> wanted_protections(const Tables& tables, const Operator& who);

// Makes the lists follow what the host looks like now, and protects the operator's SSH client for
// as long as sessions usually last.
Status protect_host(const Tables& tables, SourceRules& rules, const Operator& who);
// The same, before anything by which more could be dropped; as wanted_protections() has it.
Status refresh_protection(const Tables& tables, SourceRules& rules, const Operator& who);

// The operator's SSH client alone, where he has one and there is room for another.
Status protect_operator(SourceRules& rules, const Operator& who);

// Warns where the operator's own SSH client is banned in spite of its protection: by force.
Status warn_of_own_ban(SourceRules& rules, const Operator& who, std::vector<std::string>& warnings);

}  // namespace sluice
