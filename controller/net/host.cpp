#include "net/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <sstream>

#include "base/file.h"

namespace sluice {

namespace {

struct FreeIfaddrs {
    void operator()(ifaddrs* list) const noexcept { freeifaddrs(list); }
};

std::optional<IpAddress> address_of(const sockaddr* address) {
    if (address == nullptr)
        return std::nullopt;
    if (address->sa_family == AF_INET) {
        sockaddr_in ipv4{};
        std::memcpy(&ipv4, address, sizeof ipv4);
        return IpAddress::from_ipv4(ntohl(ipv4.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        sockaddr_in6 ipv6{};
        std::memcpy(&ipv6, address, sizeof ipv6);
        std::array<uint8_t, 16> bytes{};
        std::memcpy(bytes.data(), &ipv6.sin6_addr, bytes.size());
        return IpAddress::from_bytes(bytes);
    }
    return std::nullopt;
}

// Link-local addresses come with a zone ("fe80::1%eth0") that no packet carries.
std::optional<IpAddress> parse_without_zone(std::string_view text) {
    const auto address = IpAddress::parse(text.substr(0, text.find('%')));
    return address ? std::optional(*address) : std::nullopt;
}

std::optional<pid_t> parent_of(pid_t process, const std::string& proc) {
    const auto status = read_file(proc + "/" + std::to_string(process) + "/status");
    if (!status)
        return std::nullopt;
    std::istringstream lines(*status);
    for (std::string key; lines >> key;) {
        pid_t parent = 0;
        if (key == "PPid:" && lines >> parent && parent > 0)
            return parent;
    }
    return std::nullopt;
}

template <class T>
std::optional<T> parse_hex(std::string_view text) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, value, 16);
    if (failure != std::errc{} || stop != end)
        return std::nullopt;
    return value;
}

// The kernel prints each 32-bit word of the address as a number in its own byte order.
std::optional<IpAddress> parse_proc_address(std::string_view hex) {
    constexpr size_t kWordDigits = 8;
    std::array<uint8_t, 16> bytes{};
    if (hex.size() != kWordDigits && hex.size() != 4 * kWordDigits)
        return std::nullopt;
    for (size_t word = 0; word < hex.size() / kWordDigits; ++word) {
        const auto value = parse_hex<uint32_t>(hex.substr(word * kWordDigits, kWordDigits));
        if (!value)
            return std::nullopt;
        std::memcpy(bytes.data() + word * sizeof *value, &*value, sizeof *value);
    }
    if (hex.size() > kWordDigits)
        return IpAddress::from_bytes(bytes);
    uint32_t network_order = 0;
    std::memcpy(&network_order, bytes.data(), sizeof network_order);
    return IpAddress::from_ipv4(ntohl(network_order));
}

struct SocketTable {
    std::string_view file;
    uint8_t protocol;
    std::string_view open_state;  // TCP_LISTEN; an unconnected UDP socket is TCP_CLOSE
};

void read_sockets(const std::string& text, const SocketTable& table, std::vector<Listener>& found) {
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);  // The headings.
    while (std::getline(lines, line)) {
        std::istringstream fields(line);
        std::string slot, local, remote, state;
        if (!(fields >> slot >> local >> remote >> state) || state != table.open_state)
            continue;
        const size_t colon = local.find(':');
        if (colon == std::string::npos)
            continue;
        const auto address = parse_proc_address(std::string_view(local).substr(0, colon));
        const auto port = parse_hex<uint16_t>(std::string_view(local).substr(colon + 1));
        if (address && port)
            found.push_back({table.protocol, *address, *port});
    }
}

using Ifaddrs = std::unique_ptr<ifaddrs, FreeIfaddrs>;

Result<Ifaddrs> list_addresses() {
    ifaddrs* raw = nullptr;
    if (getifaddrs(&raw) != 0)
        return from_errno(errno, "list own addresses");
    return Ifaddrs(raw);
}

unsigned length_of(const IpAddress& mask) {
    if (mask.family() == Family::ipv4)
        return static_cast<unsigned>(std::popcount(mask.ipv4_host_order()));
    return static_cast<unsigned>(std::popcount(mask.high64()) + std::popcount(mask.low64()));
}

}  // namespace

Result<std::vector<Prefix>> own_networks() {
    const auto list = list_addresses();
    if (!list)
        return list.error();
    std::vector<Prefix> networks;
    for (const ifaddrs* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
        const auto address = address_of(entry->ifa_addr);
        const auto mask = address_of(entry->ifa_netmask);
        if (!address || !mask || address->family() != mask->family() || length_of(*mask) == 0)
            continue;
        if (const auto network = Prefix::make(*address, length_of(*mask)))
            networks.push_back(*network);
    }
    std::sort(networks.begin(), networks.end());
    networks.erase(std::unique(networks.begin(), networks.end()), networks.end());
    return networks;
}

Result<std::vector<IpAddress>> own_addresses() {
    const auto list = list_addresses();
    if (!list)
        return list.error();
    std::vector<IpAddress> addresses;
    for (const ifaddrs* entry = list->get(); entry != nullptr; entry = entry->ifa_next) {
        if (const auto address = address_of(entry->ifa_addr))
            addresses.push_back(*address);
    }
    std::sort(addresses.begin(), addresses.end());
    addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
    return addresses;
}

Result<std::vector<IpAddress>> resolvers(const std::string& path) {
    const auto text = read_file(path);
    if (!text && text.error().code == ErrorCode::not_found)
        return std::vector<IpAddress>{};
    if (!text)
        return text.error();
    std::vector<IpAddress> found;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string keyword, server;
        if (!(words >> keyword >> server) || keyword != "nameserver")
            continue;
        if (const auto address = parse_without_zone(server))
            found.push_back(*address);
    }
    return found;
}

std::optional<IpAddress> ssh_peer_in(std::string_view environment) {
    while (!environment.empty()) {
        const std::string_view entry = environment.substr(0, environment.find('\0'));
        environment.remove_prefix(std::min(entry.size() + 1, environment.size()));
        for (const std::string_view name : {"SSH_CONNECTION=", "SSH_CLIENT="}) {
            if (!entry.starts_with(name))
                continue;
            const std::string_view value = entry.substr(name.size());
            if (const auto peer = parse_without_zone(value.substr(0, value.find(' '))))
                return peer;
        }
    }
    return std::nullopt;
}

std::optional<IpAddress> operator_peer(pid_t process, const std::string& proc) {
    constexpr int kMostParents = 64;  // A bound in case a parent's id is taken by a new child.
    std::optional<pid_t> current = process;
    for (int i = 0; current && i < kMostParents; ++i) {
        const auto environment = read_file(proc + "/" + std::to_string(*current) + "/environ");
        if (environment) {
            if (const auto peer = ssh_peer_in(*environment))
                return peer;
        }
        current = parent_of(*current, proc);
    }
    return std::nullopt;
}

uint64_t own_netns() {
    struct stat info {};
    return ::stat("/proc/thread-self/ns/net", &info) == 0 ? info.st_ino : 0;
}

Result<std::vector<Listener>> listeners(const std::string& proc_net) {
    constexpr std::array kTables = {
        SocketTable{"tcp", IPPROTO_TCP, "0A"},
        SocketTable{"tcp6", IPPROTO_TCP, "0A"},
        SocketTable{"udp", IPPROTO_UDP, "07"},
        SocketTable{"udp6", IPPROTO_UDP, "07"},
    };
    std::vector<Listener> found;
    for (const SocketTable& table : kTables) {
        const auto text = read_file(proc_net + "/" + std::string(table.file));
        if (text)
            read_sockets(*text, table, found);
        else if (text.error().code != ErrorCode::not_found)  // No IPv6, no tcp6.
            return text.error().with_context("list listening sockets");
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace sluice
