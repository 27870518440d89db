#include "net/interface.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/text.h"
#include "net/netlink.h"

namespace sluice {

namespace {

using Attributes = std::map<uint16_t, Bytes>;

// A link as the kernel lists it, before the stack of devices is known.
struct Link {
    Interface interface;
    std::optional<unsigned> lower;  // the device that it is stacked on
};

std::string text_of(Bytes bytes) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.substr(0, text.find('\0'));
}

// Kinds whose IFLA_LINK is the device below; a veth's is its peer, a tunnel's only a route.
bool is_stacked(std::string_view kind) {
    constexpr std::array<std::string_view, 6> kStacked = {"vlan",   "macvlan", "macvtap",
                                                          "ipvlan", "ipvtap",  "macsec"};
    return std::find(kStacked.begin(), kStacked.end(), kind) != kStacked.end();
}

Link read_link(Bytes payload) {
    const auto header = read_as<ifinfomsg>(payload);
    const Attributes attributes =
        parse_attributes(payload.subspan(std::min(payload.size(), NLMSG_ALIGN(sizeof header))));
    const auto number = [&](uint16_t type) -> std::optional<unsigned> {
        const auto found = attributes.find(type);
        if (found == attributes.end())
            return std::nullopt;
        return read_as<uint32_t>(found->second);
    };

    Link link;
    Interface& interface = link.interface;
    interface.index = static_cast<unsigned>(header.ifi_index);
    interface.up = (header.ifi_flags & IFF_UP) != 0;
    interface.loopback = (header.ifi_flags & IFF_LOOPBACK) != 0;
    interface.mtu = number(IFLA_MTU).value_or(0);
    interface.master = number(IFLA_MASTER);
    if (const auto name = attributes.find(IFLA_IFNAME); name != attributes.end())
        interface.name = text_of(name->second);
    if (const auto info = attributes.find(IFLA_LINKINFO); info != attributes.end()) {
        const Attributes details = parse_attributes(info->second);
        if (const auto kind = details.find(IFLA_INFO_KIND); kind != details.end())
            interface.kind = text_of(kind->second);
        if (const auto kind = details.find(IFLA_INFO_SLAVE_KIND); kind != details.end())
            interface.bond_slave = text_of(kind->second) == "bond";
    }
    // With a namespace id the index belongs to another namespace.
    if (is_stacked(interface.kind) && !attributes.contains(IFLA_LINK_NETNSID))
        link.lower = number(IFLA_LINK);
    return link;
}

bool sits_on(const Link& upper, const Interface& lower) {
    return upper.lower == lower.index || lower.master == upper.interface.index;
}

void find_uppers(const std::vector<Link>& links, const Interface& lower,
                 std::vector<unsigned>& uppers) {
    for (const Link& link : links) {
        const unsigned index = link.interface.index;
        if (!sits_on(link, lower) || std::find(uppers.begin(), uppers.end(), index) != uppers.end())
            continue;
        uppers.push_back(index);
        find_uppers(links, link.interface, uppers);
    }
}

std::optional<IpAddress> address_of(Bytes bytes) {
    if (bytes.size() == 4) {
        const auto octets = read_as<std::array<uint8_t, 4>>(bytes);
        return IpAddress::from_ipv4(static_cast<uint32_t>(octets[0]) << 24 |
                                    static_cast<uint32_t>(octets[1]) << 16 |
                                    static_cast<uint32_t>(octets[2]) << 8 | octets[3]);
    }
    if (bytes.size() == 16)
        return IpAddress::from_bytes(read_as<std::array<uint8_t, 16>>(bytes));
    return std::nullopt;
}

// RTA_GATEWAY, or RTA_VIA where the gateway is of the other family.
std::optional<IpAddress> gateway_of(const Attributes& attributes) {
    if (const auto gateway = attributes.find(RTA_GATEWAY); gateway != attributes.end())
        return address_of(gateway->second);
    if (const auto via = attributes.find(RTA_VIA);
        via != attributes.end() && via->second.size() > sizeof(rtvia::rtvia_family))
        return address_of(via->second.subspan(sizeof(rtvia::rtvia_family)));
    return std::nullopt;
}

void read_route(Bytes payload, std::vector<DefaultRoute>& routes) {
    const auto header = read_as<rtmsg>(payload);
    const bool is_default = header.rtm_dst_len == 0 && header.rtm_type == RTN_UNICAST &&
                            (header.rtm_flags & RTM_F_CLONED) == 0;
    if (!is_default)
        return;
    const Attributes attributes =
        parse_attributes(payload.subspan(std::min(payload.size(), NLMSG_ALIGN(sizeof header))));
    DefaultRoute route;
    route.family = header.rtm_family == AF_INET ? Family::ipv4 : Family::ipv6;
    if (const auto metric = attributes.find(RTA_PRIORITY); metric != attributes.end())
        route.metric = read_as<uint32_t>(metric->second);
    // The header has 8 bits for the table; the attribute has them all.
    const auto table = attributes.find(RTA_TABLE);
    route.main_table =
        RT_TABLE_MAIN ==
        (table == attributes.end() ? uint32_t{header.rtm_table} : read_as<uint32_t>(table->second));

    if (const auto hops = attributes.find(RTA_MULTIPATH); hops != attributes.end()) {
        Bytes rest = hops->second;
        while (rest.size() >= sizeof(rtnexthop)) {
            const auto hop = read_as<rtnexthop>(rest);
            if (hop.rtnh_len < sizeof hop || hop.rtnh_len > rest.size())
                break;
            route.gateway =
                gateway_of(parse_attributes(rest.subspan(sizeof hop, hop.rtnh_len - sizeof hop)));
            route.interface = interface_name(static_cast<unsigned>(hop.rtnh_ifindex));
            routes.push_back(route);
            rest = rest.subspan(std::min<size_t>(RTNH_ALIGN(hop.rtnh_len), rest.size()));
        }
        return;
    }
    route.gateway = gateway_of(attributes);
    if (const auto out = attributes.find(RTA_OIF); out != attributes.end())
        route.interface = interface_name(read_as<uint32_t>(out->second));
    routes.push_back(route);
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
    std::vector<Link> links;
    const auto status =
        dump(RTM_GETLINK, AF_UNSPEC, [&](Bytes payload) { links.push_back(read_link(payload)); });
    if (!status)
        return status.error().with_context("list interfaces");
    std::vector<Interface> interfaces;
    for (const Link& link : links) {
        interfaces.push_back(link.interface);
        find_uppers(links, link.interface, interfaces.back().uppers);
    }
    return interfaces;
}

Result<Interface> find_interface(std::string_view name) {
    const auto interfaces = list_interfaces();
    if (!interfaces)
        return interfaces.error();
    std::string hint = "interfaces here:";
    for (const Interface& interface : *interfaces) {
        if (interface.name == name)
            return interface;
        hint += ' ' + interface.name;
    }
    return make_error(ErrorCode::not_found, "no interface " + in_quotes(name), std::move(hint));
}

std::string interface_name(unsigned index) {
    std::array<char, IF_NAMESIZE> name{};
    return if_indextoname(index, name.data()) == nullptr ? std::string{} : name.data();
}

Result<std::vector<DefaultRoute>> default_routes() {
    std::vector<DefaultRoute> routes;
    for (const auto family : {uint8_t{AF_INET}, uint8_t{AF_INET6}}) {
        const auto status =
            dump(RTM_GETROUTE, family, [&](Bytes payload) { read_route(payload, routes); });
        if (!status)
            return status.error().with_context("list default routes");
    }
    std::stable_sort(
        routes.begin(), routes.end(), [](const DefaultRoute& a, const DefaultRoute& b) {
            return std::pair(!a.main_table, a.metric) < std::pair(!b.main_table, b.metric);
        });
    return routes;
}

Result<std::string> default_interface() {
    const auto routes = default_routes();
    if (!routes)
        return routes.error();
    for (const Family family : {Family::ipv4, Family::ipv6}) {
        for (const DefaultRoute& route : *routes) {
            if (route.family == family && !route.interface.empty())
                return route.interface;
        }
    }
    return make_error(ErrorCode::not_found, "no default route", "name the interface");
}

}  // namespace sluice
