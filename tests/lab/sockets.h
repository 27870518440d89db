// Sockets of the lab's hosts: made in one namespace, used from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/unique_fd.h"

namespace sluice::lab {

// On all IPv4 addresses of the calling thread's namespace; port 0: any.
UniqueFd listen_tcp(uint16_t port);
UniqueFd bind_udp(uint16_t port);
uint16_t port_of(const UniqueFd& socket);
// Waits at most 5 s; empty where there is no answer.
UniqueFd connect_tcp(std::string_view address, uint16_t port);
UniqueFd accept_tcp(const UniqueFd& listener);
UniqueFd connect_udp(std::string_view address, uint16_t port);

// Sends so many bytes into one socket while the other takes them; how long that took, or nothing
// where it stood still for 5 s.
std::optional<std::chrono::duration<double>> transfer(const UniqueFd& from, const UniqueFd& to,
                                                      uint64_t bytes);
// So many small datagrams from one socket to one port.
void send_datagrams(const UniqueFd& from, std::string_view address, uint16_t port, unsigned count,
                    size_t size = 32);
// What a TCP socket has sent, retransmissions included.
struct Sent {
    uint64_t segments = 0;  // with data
    uint64_t bytes = 0;
};
Sent sent(const UniqueFd& socket);

// The next datagram: when the kernel received it, in monotonic ns; nothing after `timeout`.
std::optional<uint64_t> arrival(const UniqueFd& socket, std::chrono::milliseconds timeout);
// How many datagrams lie in the socket, or come within a tenth of a second; takes them all.
uint64_t take_all(const UniqueFd& socket);

}  // namespace sluice::lab
