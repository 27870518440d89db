#include "operate/starter_config.h"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "net/interface.h"

namespace sluice {

namespace {

struct KnownPort {
    uint16_t port;
    std::string_view name;
};

// Names for the usual ones; others are called after their port.
constexpr std::array<KnownPort, 12> kKnownPorts = {{{22, "ssh"},
                                                    {25, "smtp"},
                                                    {53, "dns"},
                                                    {80, "http"},
                                                    {123, "ntp"},
                                                    {143, "imap"},
                                                    {443, "https"},
                                                    {465, "smtps"},
                                                    {587, "submission"},
                                                    {853, "dns-tls"},
                                                    {993, "imaps"},
                                                    {3306, "mysql"}}};

// A client's own ports: answers come there, not strangers.
bool is_dhcp_client(const Listener& listener) {
    return listener.protocol == IPPROTO_UDP && (listener.port == 68 || listener.port == 546);
}

std::string_view protocol_name(uint8_t protocol) {
    return protocol == IPPROTO_TCP ? "tcp" : "udp";
}

bool is_loopback(const IpAddress& address) {
    return address.family() == Family::ipv4 ? address.ipv4_host_order() >> 24 == 127
                                            : address.high64() == 0 && address.low64() == 1;
}

// A service name and its ports by protocol: TCP and UDP of one port belong together.
std::map<std::string, std::set<std::string>> services_of(const std::vector<Listener>& listeners) {
    std::map<std::string, std::set<std::string>> services;
    for (const Listener& listener : listeners) {
        const auto known =
            std::find_if(kKnownPorts.begin(), kKnownPorts.end(),
                         [&](const KnownPort& k) { return k.port == listener.port; });
        const std::string port = std::to_string(listener.port);
        const std::string name =
            known != kKnownPorts.end() ? std::string(known->name) : "port-" + port;
        services[name].insert(std::string(protocol_name(listener.protocol)) + '/' + port);
    }
    return services;
}

constexpr std::string_view kHead =
    R"(# Sluice: a starting point, made from what this host listens on.
#
# 1. Attach it. In observe mode nothing is dropped:
#        sluicectl attach IFACE --config THIS-FILE
# 2. Let it watch a normal day and a busy one, then take the comment off the limits below that you
#    want, with numbers of your own, and apply them:
#        sluicectl policy check THIS-FILE && sluicectl policy apply THIS-FILE
# 3. See what would be dropped. Nothing that your users do should be among it:
#        sluicectl services
# 4. Enforce, with a way back in case you cut yourself off:
#        sluicectl mode enforce --confirm 60s
)";

constexpr std::string_view kLimitAdvice = R"(
# How to choose a limit: take the most that one honest source does on a busy day, and triple it.
# Many people can share one IPv4 address (offices, mobile networks); an IPv6 source is a /64.
# There are no default numbers, because nobody but you can know the right ones.
)";

constexpr std::string_view kLimits =
    R"([service.per_source]
# connections = "…/s"   # new TCP connections: a browser opens 6 and more at once
# data = "…/s"          # TCP segments with payload, or datagrams: the nearest thing to requests
# packets = "…/s"       # a flood ceiling; one fast download makes thousands a second, nearly all ACKs
[service.budget]
# connections = "…/s"   # what the server behind can take from everybody together
)";

std::string service_text(const std::string& name, const std::set<std::string>& matches) {
    std::string list;
    for (const std::string& match : matches)
        list += (list.empty() ? "\"" : ", \"") + match + '"';
    return "\n[[service]]\nname = \"" + name + "\"\nmatch = [" + list + "]\n" +
           std::string(kLimits);
}

void add_protected(std::vector<std::string>& to, const Result<std::vector<IpAddress>>& addresses,
                   std::string_view what) {
    if (!addresses)
        return;
    for (const IpAddress& address : *addresses)
        if (!is_loopback(address))
            to.push_back(address.to_string() + " (" + std::string(what) + ')');
}

}  // namespace

Result<HostPicture> look_at_host() {
    HostPicture host;
    if (const auto interface = default_interface())
        host.interface = *interface;
    const auto all = listeners();
    if (!all)
        return all.error();
    for (const Listener& listener : *all)
        if (!is_loopback(listener.address) && !is_dhcp_client(listener))
            host.listeners.push_back(listener);

    add_protected(host.protected_, own_addresses(), "an address of this host");
    if (const auto routes = default_routes())
        for (const DefaultRoute& route : *routes)
            if (route.gateway)
                host.protected_.push_back(route.gateway->to_string() + " (a default gateway)");
    add_protected(host.protected_, resolvers(), "a name server");
    if (const auto peer = operator_peer())
        host.protected_.push_back(peer->to_string() + " (your SSH client)");
    return host;
}

std::string starter_config(const HostPicture& host) {
    std::string text(kHead);
    text += "\nmode = \"observe\"\n";
    text += host.interface.empty()
                ? "interfaces = []   # no default route found: name the one that faces the world\n"
                : "interfaces = [\"" + host.interface + "\"]   # the one with the default route\n";
    text +=
        "\n[sources]\ncapacity = 1_000_000   # sources that are remembered at a time\n"
        "# allow = [\"192.0.2.0/24\"]   # your monitoring, your office: skips per-source limits\n";
    if (!host.protected_.empty()) {
        text += "\n# Protected at attach, so that no ban can hit them by mistake:\n";
        for (const std::string& line : host.protected_)
            text += "#   " + line + '\n';
    }
    text += kLimitAdvice;
    const auto services = services_of(host.listeners);
    if (services.empty())
        text +=
            "\n# Nothing listens here that others could reach. A service looks like this:\n#\n"
            "# [[service]]\n# name = \"web\"\n# match = [\"tcp/80\", \"tcp/443\"]\n";
    for (const auto& [name, matches] : services)
        text += service_text(name, matches);
    text += "\n# What matches no service above.\n[[service]]\nname = \"other\"\n" +
            std::string(kLimits);
    return text;
}

}  // namespace sluice
