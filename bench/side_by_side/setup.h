// What a contender is told to do before a row is measured; each translates it into its own terms.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/address.h"

namespace sluice::bench {

// Ports of the services. What the gate alone can do has a port of its own, so that it need not be
// told anew; the others limit kLimitedPort only.
inline constexpr uint16_t kLimitedPort = 1000, kAndBytesPort = 2000, kAllLimitsPort = 3000,
                          kBytesPort = 4000, kUnlimitedPort = 5000, kFirstOtherPort = 10'000;

struct Limit {
    uint64_t rate = 0;  // packets of a source; 0: no limit, kMoreThanSent: never reached
    bool a_minute = false;
    uint64_t burst = 1;

    friend bool operator==(const Limit&, const Limit&) = default;
};
inline constexpr uint64_t kMoreThanSent = 200'000'000;

struct Bans {
    uint32_t count = 0;
    bool networks = false;  // IPv4 /24, IPv6 /48
    bool for_a_time = false;

    friend bool operator==(const Bans&, const Bans&) = default;
};

struct Setup {
    Family family = Family::ipv4;
    bool tcp = false;     // SYNs, not datagrams
    bool tagged = false;  // packets have a VLAN tag
    Limit limit;
    Bans bans;
    unsigned services = 1;
    bool let_pass = false;  // what is not dropped goes to the stack
    uint16_t port = kLimitedPort;

    friend bool operator==(const Setup&, const Setup&) = default;
};

// The first one, and all, of what a setup bans.
IpAddress first_banned(Family family, bool networks);
std::vector<Prefix> banned(const Setup& setup);
inline constexpr unsigned kNetworkLength4 = 24, kNetworkLength6 = 48;

}  // namespace sluice::bench
