#include "network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace sluice::lab {

namespace {

UniqueFd current_netns() {
    return UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}

// A new namespace; the calling thread stays where it is.
UniqueFd make_netns() {
    const UniqueFd home = current_netns();
    if (!home || ::unshare(CLONE_NEWNET) != 0)
        return {};
    UniqueFd made = current_netns();
    if (::setns(home.get(), CLONE_NEWNET) != 0)
        std::abort();  // nothing of a test must run in the wrong namespace
    return made;
}

bool shell(const std::string& commands) {
    return std::system(commands.c_str()) == 0;
}

std::string path_of(const UniqueFd& fd) {
    return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd.get());
}

// Neighbours are fixed and both ends poll, so that floods arrive as they were sent.
std::string configure(std::string_view device, std::string_view ipv4, std::string_view ipv6,
                      std::string_view peer4, std::string_view peer6, std::string_view peer_mac) {
    std::ostringstream commands;
    commands << "set -e; ip link set lo up; ip address add " << ipv4 << "/24 dev " << device
             << "; ip address add " << ipv6 << "/64 dev " << device << " nodad; ip link set "
             << device << " up; ethtool -K " << device << " gro on";
    for (const auto peer : {peer4, peer6})
        commands << "; ip neighbour replace " << peer << " lladdr " << peer_mac
                 << " nud permanent dev " << device;
    commands << "; ip route add default via " << peer4 << "; ip -6 route add default via " << peer6;
    return commands.str();
}

// The number in the column `name` of the line pair of `protocol`.
uint64_t snmp(std::string_view protocol, std::string_view name) {
    std::ifstream file("/proc/thread-self/net/snmp");
    std::string names, values;
    while (std::getline(file, names) && std::getline(file, values)) {
        if (!names.starts_with(protocol))
            continue;
        std::istringstream name_words(names), value_words(values);
        std::string word, value;
        while (name_words >> word && value_words >> value)
            if (word == name)
                return std::stoull(value);
    }
    return 0;
}

uint64_t snmp6(std::string_view name) {
    std::ifstream file("/proc/thread-self/net/snmp6");
    std::string word;
    uint64_t value = 0;
    while (file >> word >> value)
        if (word == name)
            return value;
    return 0;
}

}  // namespace

Network::Visit::Visit(int netns) : home_(current_netns()) {
    if (!home_ || ::setns(netns, CLONE_NEWNET) != 0)
        std::abort();
}

Network::Visit::~Visit() {
    if (::setns(home_.get(), CLONE_NEWNET) != 0)
        std::abort();
}

Result<Network> Network::make(unsigned queues) {
    Network network;
    network.edge_ = make_netns();
    network.world_ = make_netns();
    if (!network.edge_ || !network.world_)
        return from_errno(errno, "make network namespaces");
    const std::string count = std::to_string(queues);
    const std::string queue_options = " numrxqueues " + count + " numtxqueues " + count;
    const bool made =
        network.edge_shell("ip link add edge0 address 02:00:00:00:00:01" + queue_options +
                           " type veth peer name world0 netns " + path_of(network.world_) +
                           " address 02:00:00:00:00:02" + queue_options) &&
        network.edge_shell(
            configure("edge0", kEdge4, kEdge6, kWorld4, kWorld6, "02:00:00:00:00:02")) &&
        network.world_shell(
            configure("world0", kWorld4, kWorld6, kEdge4, kEdge6, "02:00:00:00:00:01"));
    if (!made)
        return failed("cannot make the veth pair", "iproute2 and ethtool are needed");
    return network;
}

bool Network::edge_shell(const std::string& commands) const {
    return in_edge([&] { return shell(commands); });
}
bool Network::world_shell(const std::string& commands) const {
    return in_world([&] { return shell(commands); });
}

UdpReceived Network::received() const {
    return in_edge([] {
        return UdpReceived{
            .ipv4 =
                snmp("Udp:", "InDatagrams") + snmp("Udp:", "NoPorts") + snmp("Udp:", "InErrors"),
            .ipv6 = snmp6("Udp6InDatagrams") + snmp6("Udp6NoPorts") + snmp6("Udp6InErrors")};
    });
}

uint64_t Network::received_bytes() const {
    return in_edge([] {
        std::ifstream file("/proc/thread-self/net/dev");
        std::string word;
        uint64_t bytes = 0;
        while (file >> word)
            if (word == "edge0:" && file >> bytes)
                return bytes;
        return uint64_t{0};
    });
}

uint64_t Network::lost_in_queue() const {
    return in_world([] {
        uint64_t lost = 0;
        if (FILE* pipe = ::popen("ethtool -S world0 2>/dev/null", "r"); pipe != nullptr) {
            char name[128];
            unsigned long long value = 0;
            while (std::fscanf(pipe, " %127[^:]:", name) == 1)
                if (std::fscanf(pipe, "%llu", &value) == 1 &&
                    std::string_view(name).ends_with("xdp_xmit_errors"))
                    lost += value;
            ::pclose(pipe);
        }
        return lost;
    });
}

}  // namespace sluice::lab
