#include "operate/protected_sources.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "net/host.h"
#include "net/interface.h"

namespace sluice {

namespace {

constexpr std::array kReserved = {kPolicyList, kOwnAddresses, kGateways, kResolvers, kSshPeers};
constexpr std::chrono::hours kSession(24);  // renewed by every change

Result<std::vector<IpAddress>> gateways() {
    const auto routes = default_routes();
    if (!routes)
        return routes.error();
    std::vector<IpAddress> found;
    for (const DefaultRoute& route : *routes)
        if (route.gateway)
            found.push_back(*route.gateway);
    return found;
}

Status replace(SourceRules& rules, const Operator& who, std::string_view list, std::string reason,
               const Result<std::vector<IpAddress>>& addresses) {
    if (!addresses)
        return addresses.error().with_context(list);
    std::vector<RuleEntry> entries;
    for (const IpAddress& address : *addresses)
        entries.push_back({.prefix = Prefix::host(address), .kind = RuleKind::protect});
    const auto replaced =
        rules.replace_list(list, entries, {.reason = std::move(reason), .actor = who.name});
    return replaced ? Status{} : replaced.error().with_context(list);
}

}  // namespace

bool is_reserved_list(std::string_view list) {
    return std::find(kReserved.begin(), kReserved.end(), list) != kReserved.end();
}

Status protect_host(SourceRules& rules, const Operator& who) {
    for (const Status& status :
         {replace(rules, who, kOwnAddresses, "an address of this host", own_addresses()),
          replace(rules, who, kGateways, "a default gateway", gateways()),
          replace(rules, who, kResolvers, "a name server of this host", resolvers())})
        if (!status)
            return status;
    return protect_operator(rules, who);
}

Status protect_operator(SourceRules& rules, const Operator& who) {
    if (!who.from)
        return {};
    const auto outcome =
        rules.protect(Prefix::host(*who.from), {.ttl = kSession,
                                                .list = std::string(kSshPeers),
                                                .reason = "an operator's SSH client",
                                                .actor = who.name});
    return outcome ? Status{} : outcome.error().with_context(kSshPeers);
}

}  // namespace sluice
