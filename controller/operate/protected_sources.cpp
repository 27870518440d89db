#include "operate/protected_sources.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gate/attachment.h"
#include "net/host.h"
#include "net/host_watch.h"
#include "net/interface.h"

namespace sluice {

namespace {

constexpr std::array kReserved = {kPolicyList, kOwnAddresses, kGateways, kResolvers,
                                  kSshPeers,   kGrace,        kRlList};
constexpr std::chrono::hours kSession(24);  // renewed by every change
// More than sit at any gate. Where a client comes from is what its own end says, so whoever may
// talk to the daemon could protect the whole Internet one address after the other.
constexpr size_t kMostOperators = 256;

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

// What sluicectl keeps a list of, and how it finds out.
struct HostList {
    std::string_view name;
    std::string_view reason;
    Result<std::vector<IpAddress>> (*find)();
};
constexpr std::array<HostList, 3> kHostLists = {
    {{kOwnAddresses, "an address of this host", own_addresses},
     {kGateways, "a default gateway", gateways},
     {kResolvers, "a name server of this host", [] { return resolvers(); }}}};
constexpr std::string_view kSshReason = "an operator's SSH client";

Result<std::vector<ProtectedSource>> look_at_host() {
    std::vector<ProtectedSource> found;
    for (const HostList& list : kHostLists) {
        const auto addresses = list.find();
        if (!addresses)
            return addresses.error().with_context(list.name);
        for (const IpAddress& address : *addresses)
            found.push_back({address, list.name, list.reason});
    }
    return found;
}

// Every ban asks for them, and the kernel takes longer to tell than to ban: it is asked again only
// where something changed.
Result<std::vector<ProtectedSource>> host_sources() {
    static std::mutex mutex;
    static HostWatch watch;
    static std::optional<std::vector<ProtectedSource>> known;
    const std::lock_guard lock(mutex);
    if (watch.has_changed())
        known.reset();
    if (!known) {
        auto found = look_at_host();
        if (!found)
            return found.error();
        known = *std::move(found);
    }
    return *known;
}

using Addresses = std::set<IpAddress>;

// Building a list anew costs a look at everything that is listed: only where something changed.
Status follow(SourceRules& rules, const Operator& who, const HostList& list,
              const Addresses& wanted, const std::vector<ListedRule>& standing) {
    Addresses there;
    for (const ListedRule& rule : standing)
        if (rule.list == list.name)
            there.insert(rule.prefix.address());
    if (there == wanted)
        return {};
    std::vector<RuleEntry> entries;
    for (const IpAddress& address : wanted)
        entries.push_back({.prefix = Prefix::host(address), .kind = RuleKind::protect});
    const auto replaced = rules.replace_list(
        list.name, entries, {.reason = std::string(list.reason), .actor = who.name});
    return replaced ? Status{} : replaced.error().with_context(list.name);
}

}  // namespace

Status protect_operator(SourceRules& rules, const Operator& who) {
    if (!who.from)
        return {};
    const auto is_operator = [](const ListedRule& rule) { return rule.list == kSshPeers; };
    const auto found = rules.lookup(*who.from);
    if (!found)
        return found.error();
    const bool is_known = std::ranges::any_of(found->matches, [&](const SourceMatch& match) {
        return std::ranges::any_of(match.listed, is_operator);
    });
    if (!is_known) {
        const auto standing = rules.protections();
        if (!standing)
            return standing.error();
        if (static_cast<size_t>(std::ranges::count_if(*standing, is_operator)) >= kMostOperators)
            return {};
    }
    const auto outcome = rules.protect(Prefix::host(*who.from), {.ttl = kSession,
                                                                 .list = std::string(kSshPeers),
                                                                 .reason = std::string(kSshReason),
                                                                 .actor = who.name});
    return outcome ? Status{} : outcome.error().with_context(kSshPeers);
}

bool is_reserved_list(std::string_view list) {
    return std::find(kReserved.begin(), kReserved.end(), list) != kReserved.end();
}

Result<std::vector<ProtectedSource>> wanted_protections(const Tables& tables, const Operator& who) {
    auto found = attached_here(tables) ? host_sources() : std::vector<ProtectedSource>{};
    if (found && who.from)
        found->push_back({*who.from, kSshPeers, kSshReason});
    return found;
}

namespace {

// FNV-1a; never 0.
uint64_t hash_of(const std::vector<ProtectedSource>& sources) {
    uint64_t hash = 14695981039346656037U;
    const auto add = [&hash](uint8_t byte) { hash = (hash ^ byte) * 1099511628211U; };
    for (const ProtectedSource& source : sources) {
        for (const char c : source.list)
            add(static_cast<uint8_t>(c));
        for (const uint8_t byte : source.address.bytes())
            add(byte);
    }
    return hash | 1;
}

}  // namespace

Status protect_host(const Tables& tables, SourceRules& rules, const Operator& who) {
    const auto wanted = host_sources();
    if (!wanted)
        return wanted.error();
    // Nobody else writes to these lists, and to compare them is a look at everything that is
    // banned.
    auto& listed = tables.settings().host_sources;
    const uint64_t hash = hash_of(*wanted);
    if (listed == hash)
        return protect_operator(rules, who);
    const auto standing = rules.protections();
    if (!standing)
        return standing.error();
    for (const HostList& list : kHostLists) {
        Addresses addresses;
        for (const ProtectedSource& source : *wanted)
            if (source.list == list.name)
                addresses.insert(source.address);
        if (const Status followed = follow(rules, who, list, addresses, *standing); !followed)
            return followed;
    }
    listed = hash;
    return protect_operator(rules, who);
}

Status refresh_protection(const Tables& tables, SourceRules& rules, const Operator& who) {
    const Status done =
        attached_here(tables) ? protect_host(tables, rules, who) : protect_operator(rules, who);
    return done ? done : done.error().with_context("protected set");
}

Status warn_of_own_ban(SourceRules& rules, const Operator& who,
                       std::vector<std::string>& warnings) {
    if (!who.from)
        return {};
    const auto found = rules.lookup(*who.from);
    if (!found)
        return found.error();
    const bool by_force = found->deciding && (found->deciding->flags & SLUICE_RULE_FORCED) != 0;
    const bool by_hand = !found->deciding && found->by_hand_until_ns;
    if (found->standing != SourceStanding::banned || !(by_force || by_hand))
        return {};
    const std::string own = who.from->to_string();
    warnings.push_back("your own address " + own + " is banned" +
                       (by_hand
                            ? " by hand: delete it from bans_manual with bpftool"
                            : " by force: sluicectl unban " + found->deciding->prefix.to_string() +
                                  ", or sluicectl allow " + own));
    return {};
}

}  // namespace sluice
