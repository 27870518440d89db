#include "gate/driver_advice.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace sluice {

namespace {

struct Rule {
    std::string_view driver;
    std::string_view advice;
};

// Each from the driver's own checks at attach.
constexpr std::array kRules = {
    Rule{"virtio_net",
         "virtio_net refuses while the host joins packets and that cannot be switched off: start "
         "the "
         "guest with ctrl_guest_offloads=on."},
    Rule{"ena",
         "ena wants at most half of its channels and an MTU of 3498 at most: ethtool -L "
         "IFACE combined N/2."},
    Rule{"gve",
         "gve wants LRO off and RX = TX queues at most half of the maximum: ethtool -K "
         "IFACE lro off."},
    Rule{"ixgbe", "ixgbe refuses with LRO, SR-IOV or DCB: ethtool -K IFACE lro off."},
    Rule{"bonding", "a bond takes native XDP only where all its slaves do: attach to the slaves."},
    Rule{"bridge", "a bridge has no native XDP: attach to its ports."},
    Rule{"802.1Q VLAN Support", "a VLAN device has no native XDP: attach to the device below."},
    Rule{"veth",
         "a veth device needs as many RX queues as its other end has TX queues: ethtool -L IFACE "
         "rx N."},
    Rule{"tun", "a tun device needs multi_queue for native XDP."},
};

std::string driver_of(const std::string& interface) {
    ethtool_drvinfo info{};
    info.cmd = ETHTOOL_GDRVINFO;
    ifreq request{};
    interface.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    request.ifr_data = reinterpret_cast<char*>(&info);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket || ::ioctl(socket.get(), SIOCETHTOOL, &request) != 0)
        return {};
    return {info.driver, ::strnlen(info.driver, sizeof(info.driver))};
}

// With the name in place of IFACE, so that the command can be typed.
std::string of_interface(std::string_view advice, const std::string& name) {
    constexpr std::string_view kPlace = "IFACE";
    std::string text(advice);
    if (const size_t at = text.find(kPlace); at != std::string::npos)
        text.replace(at, kPlace.size(), name);
    return text;
}

}  // namespace

std::string native_mode_advice(const Interface& interface, bool multi_buffer) {
    const std::string driver = driver_of(interface.name);
    std::string advice;
    if (interface.mtu > kSinglePageMtu && !multi_buffer)
        advice = "The MTU of " + std::to_string(interface.mtu) +
                 " needs a kernel of 5.18, or: ip link set " + interface.name + " mtu 3498. ";
    else if (interface.mtu > kSinglePageMtu)
        advice = "The MTU of " + std::to_string(interface.mtu) +
                 " may be too large for the driver: ip link set " + interface.name + " mtu 1500. ";
    for (const Rule& rule : kRules)
        if (rule.driver == driver)
            return advice + of_interface(rule.advice, interface.name);
    if (advice.empty())
        advice = driver.empty() ? "Its driver has no native XDP."
                                : "The driver " + driver + " may have no native XDP.";
    return advice;
}

}  // namespace sluice
