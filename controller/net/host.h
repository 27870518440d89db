// What this host looks like from outside: whom it must never ban, and what it serves.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/address.h"
#include "net/interface.h"

namespace sluice {

// All addresses of all interfaces, loopback included.
Result<std::vector<IpAddress>> own_addresses();

// The networks that these addresses are in: whoever is there is a neighbour.
Result<std::vector<Prefix>> own_networks();

// The nameservers of a resolv.conf; none where there is no such file.
Result<std::vector<IpAddress>> resolvers(const std::string& path = "/etc/resolv.conf");

// The client address in an environment block ("NAME=value\0…"): SSH_CONNECTION or SSH_CLIENT.
std::optional<IpAddress> ssh_peer_in(std::string_view environment);
// From where the operator is logged in over SSH, if so. sudo drops the variable, so the
// environments of the parents of `process` are searched too.
std::optional<IpAddress> operator_peer(pid_t process = getpid(), const std::string& proc = "/proc");

// The network namespace of the caller, as a number that no other living one has; 0 where /proc does
// not tell.
uint64_t own_netns();

// A socket that takes what strangers send: a listening TCP or an unconnected UDP one.
struct Listener {
    uint8_t protocol = 0;  // IPPROTO_TCP or IPPROTO_UDP
    IpAddress address;     // 0.0.0.0 or :: for all
    uint16_t port = 0;

    friend auto operator<=>(const Listener&, const Listener&) = default;
};

// Those of this network namespace, sorted, each once.
Result<std::vector<Listener>> listeners(const std::string& proc_net = "/proc/net");

}  // namespace sluice
