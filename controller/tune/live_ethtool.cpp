// The end of Ethtool that is the kernel: SIOCETHTOOL, which every kernel and driver has, and
// netlink for what only newer ones say.
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/if_link.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "net/netlink.h"
#include "tune/device.h"

namespace sluice {

namespace {

// Tables that the kernel fills end with an array whose length is asked for first.
constexpr uint32_t kMostEntries = 65'536;

Status ask(const std::string& interface, void* command, std::string_view what) {
    ifreq request{};
    interface.copy(request.ifr_name, sizeof(request.ifr_name) - 1);
    request.ifr_data = static_cast<char*>(command);
    const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket)
        return from_errno(errno, "open a socket");
    if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) {
        const int error_number = errno;
        return error_number == ENODEV
                   ? make_error(ErrorCode::not_found, "no interface \"" + interface + '"')
                   : from_errno(error_number, std::string(what) + " of " + interface);
    }
    return {};
}

// A command without an array behind it; nothing where the driver does not know it.
template <class Command>
std::optional<Command> query(const std::string& interface, uint32_t number) {
    Command command{};
    command.cmd = number;
    if (!ask(interface, &command, "read"))
        return std::nullopt;
    return command;
}

// How many names there are of a kind (ETH_SS_FEATURES, ETH_SS_STATS).
uint32_t count_of(const std::string& interface, uint32_t kind) {
    alignas(ethtool_sset_info) std::array<char, sizeof(ethtool_sset_info) + sizeof(uint32_t)>
        buffer{};
    auto* info = reinterpret_cast<ethtool_sset_info*>(buffer.data());
    info->cmd = ETHTOOL_GSSET_INFO;
    info->sset_mask = uint64_t{1} << kind;
    if (!ask(interface, info, "read") || info->sset_mask == 0)
        return 0;
    return std::min(info->data[0], kMostEntries);
}

std::vector<std::string> names_of(const std::string& interface, uint32_t kind) {
    const uint32_t count = count_of(interface, kind);
    std::vector<char> buffer(sizeof(ethtool_gstrings) + size_t{count} * ETH_GSTRING_LEN);
    auto* strings = reinterpret_cast<ethtool_gstrings*>(buffer.data());
    strings->cmd = ETHTOOL_GSTRINGS;
    strings->string_set = kind;
    strings->len = count;
    std::vector<std::string> names;
    if (count == 0 || !ask(interface, strings, "read names"))
        return names;
    for (uint32_t i = 0; i < std::min(count, strings->len); ++i) {
        const char* name = buffer.data() + sizeof(ethtool_gstrings) + size_t{i} * ETH_GSTRING_LEN;
        names.emplace_back(name, ::strnlen(name, ETH_GSTRING_LEN));
    }
    return names;
}

std::map<std::string, bool> features_of(const std::string& interface) {
    constexpr uint32_t kBlockBits = 32;
    const auto names = names_of(interface, ETH_SS_FEATURES);
    const auto blocks = static_cast<uint32_t>((names.size() + kBlockBits - 1) / kBlockBits);
    std::vector<char> buffer(sizeof(ethtool_gfeatures) +
                             size_t{blocks} * sizeof(ethtool_get_features_block));
    auto* features = reinterpret_cast<ethtool_gfeatures*>(buffer.data());
    features->cmd = ETHTOOL_GFEATURES;
    features->size = blocks;
    std::map<std::string, bool> found;
    if (blocks == 0 || !ask(interface, features, "read features"))
        return found;
    for (size_t i = 0; i < names.size(); ++i)
        if (names[i].starts_with("rx-"))
            found[names[i]] =
                (features->features[i / kBlockBits].active >> i % kBlockBits & 1) != 0;
    return found;
}

std::vector<uint32_t> spread_of(const std::string& interface) {
    ethtool_rxfh_indir size{};
    size.cmd = ETHTOOL_GRXFHINDIR;
    if (!ask(interface, &size, "read RSS") || size.size == 0 || size.size > kMostEntries)
        return {};
    std::vector<uint32_t> buffer(sizeof(ethtool_rxfh_indir) / sizeof(uint32_t) + size.size);
    auto* table = reinterpret_cast<ethtool_rxfh_indir*>(buffer.data());
    table->cmd = ETHTOOL_GRXFHINDIR;
    table->size = size.size;
    if (!ask(interface, table, "read RSS"))
        return {};
    return {table->ring_index, table->ring_index + size.size};
}

std::optional<bool> hashes_ports(const std::string& interface, uint32_t flow_type) {
    ethtool_rxnfc hash{};
    hash.cmd = ETHTOOL_GRXFH;
    hash.flow_type = flow_type;
    if (!ask(interface, &hash, "read RSS") || hash.data == 0)
        return std::nullopt;
    return (hash.data & (RXH_L4_B_0_1 | RXH_L4_B_2_3)) != 0;
}

XdpUse xdp_of(const std::string& interface) {
    XdpUse use = XdpUse::none;
    const unsigned index = ::if_nametoindex(interface.c_str());
    (void)dump(RTM_GETLINK, AF_UNSPEC, [&](Bytes payload) {
        const auto header = read_as<ifinfomsg>(payload);
        if (static_cast<unsigned>(header.ifi_index) != index)
            return;
        const auto attributes =
            parse_attributes(payload.subspan(std::min(payload.size(), NLMSG_ALIGN(sizeof header))));
        const auto xdp = attributes.find(IFLA_XDP);
        if (xdp == attributes.end())
            return;
        const auto details = parse_attributes(xdp->second);
        const auto attached = details.find(IFLA_XDP_ATTACHED);
        const uint8_t mode = attached == details.end() ? uint8_t{XDP_ATTACHED_NONE}
                                                       : read_as<uint8_t>(attached->second);
        if (mode == XDP_ATTACHED_SKB)
            use = XdpUse::generic;
        else if (mode != XDP_ATTACHED_NONE)
            use = XdpUse::native;
    });
    return use;
}

// Which kinds of waiting the driver has: what it lacks is left out of the answer.
void take_coalescing(const std::string& interface, DeviceFacts& facts) {
    const auto name = std::as_bytes(std::span(interface.c_str(), interface.size() + 1));
    const auto header = attribute(ETHTOOL_A_COALESCE_HEADER | NLA_F_NESTED,
                                  attribute(ETHTOOL_A_HEADER_DEV_NAME, name));
    (void)ask_family(ETHTOOL_GENL_NAME, ETHTOOL_MSG_COALESCE_GET, Ask::one, header,
                     [&](Bytes answer) {
                         const auto known = parse_attributes(answer);
                         facts.can_adapt = known.contains(ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX);
                         facts.can_wait = known.contains(ETHTOOL_A_COALESCE_RX_USECS);
                     });
}

// linux/netdev.h, which older systems lack: the command and attributes of its queue statistics.
constexpr const char* kNetdevFamily = "netdev";
constexpr uint8_t kQueueStatistics = 12;
enum class QueueStatistic : uint16_t { interface = 1, direction, queue, scope, packets = 8 };
constexpr uint32_t kByQueue = 1, kReceived = 0;

std::vector<std::byte> attribute_of(QueueStatistic type, uint32_t number) {
    return attribute(static_cast<uint16_t>(type), std::as_bytes(std::span(&number, 1)));
}

// Packets received by queue; none before Linux 6.9, and of drivers that do not take part.
std::map<uint64_t, uint64_t> received_by_queue(const std::string& interface) {
    auto request = attribute_of(QueueStatistic::interface, ::if_nametoindex(interface.c_str()));
    const auto scope = attribute_of(QueueStatistic::scope, kByQueue);
    request.insert(request.end(), scope.begin(), scope.end());
    std::map<uint64_t, uint64_t> found;
    (void)ask_family(kNetdevFamily, kQueueStatistics, Ask::dump, request, [&](Bytes answer) {
        const auto known = parse_attributes(answer);
        const auto number = [&](QueueStatistic type) -> std::optional<uint64_t> {
            const auto value = known.find(static_cast<uint16_t>(type));
            return value == known.end() ? std::nullopt : std::optional(read_number(value->second));
        };
        const auto queue = number(QueueStatistic::queue);
        const auto packets = number(QueueStatistic::packets);
        if (queue && packets && number(QueueStatistic::direction) == kReceived)
            found[*queue] = *packets;
    });
    return found;
}

class LiveEthtool : public Ethtool {
  public:
    Result<DeviceFacts> read(const std::string& interface) override {
        if (::if_nametoindex(interface.c_str()) == 0)
            return make_error(ErrorCode::not_found, "no interface \"" + interface + '"');
        DeviceFacts facts;
        if (const auto info = query<ethtool_drvinfo>(interface, ETHTOOL_GDRVINFO))
            facts.driver = {info->driver, ::strnlen(info->driver, sizeof(info->driver))};
        if (const auto channels = query<ethtool_channels>(interface, ETHTOOL_GCHANNELS)) {
            facts.channels = {channels->rx_count, channels->tx_count, channels->combined_count};
            facts.most_channels = {channels->max_rx, channels->max_tx, channels->max_combined};
        }
        if (const auto rings = query<ethtool_ringparam>(interface, ETHTOOL_GRINGPARAM)) {
            facts.rings = {rings->rx_pending, rings->tx_pending};
            facts.most_rings = {rings->rx_max_pending, rings->tx_max_pending};
        }
        if (const auto coalescing = query<ethtool_coalesce>(interface, ETHTOOL_GCOALESCE))
            facts.coalescing = {coalescing->use_adaptive_rx_coalesce != 0,
                                coalescing->rx_coalesce_usecs};
        take_coalescing(interface, facts);
        facts.tcp_by_port = hashes_ports(interface, TCP_V4_FLOW);
        facts.udp_by_port = hashes_ports(interface, UDP_V4_FLOW);
        facts.spread = spread_of(interface);
        facts.features = features_of(interface);
        facts.xdp = xdp_of(interface);
        return facts;
    }

    Status set(const std::string& interface, DevicePart part, std::string_view text) override {
        auto facts = read(interface);
        if (!facts)
            return facts.error();
        if (const Status set = set_part(*facts, part, text); !set)
            return set;
        switch (part) {
            case DevicePart::channels:
                return set_channels(interface, *facts->channels);
            case DevicePart::rings:
                return set_rings(interface, *facts->rings);
            case DevicePart::coalescing:
                return set_coalescing(interface, *facts->coalescing);
            case DevicePart::spread:
                break;
        }
        // A table of no entries asks for the driver's own.
        return default_queues(part, text) ? set_spread(interface, {})
                                          : set_spread(interface, facts->spread);
    }

    std::map<std::string, uint64_t> counters(const std::string& interface) override {
        const auto names = names_of(interface, ETH_SS_STATS);
        std::vector<uint64_t> buffer(sizeof(ethtool_stats) / sizeof(uint64_t) + names.size() + 1);
        auto* stats = reinterpret_cast<ethtool_stats*>(buffer.data());
        stats->cmd = ETHTOOL_GSTATS;
        stats->n_stats = static_cast<uint32_t>(names.size());
        std::map<std::string, uint64_t> found;
        if (!names.empty() && ask(interface, stats, "read counters"))
            for (size_t i = 0; i < names.size(); ++i)
                found[names[i]] = stats->data[i];
        // What drivers count there they count here no more: virtio_net since Linux 6.10.
        for (const auto& [queue, packets] : received_by_queue(interface))
            found["rx_queue_" + std::to_string(queue) + "_packets"] = packets;
        return found;
    }

  private:
    static Status set_channels(const std::string& interface, const Channels& wanted) {
        auto channels = query<ethtool_channels>(interface, ETHTOOL_GCHANNELS);
        if (!channels)
            return failed(interface + " has no channels to set");
        channels->cmd = ETHTOOL_SCHANNELS;
        channels->rx_count = wanted.rx;
        channels->tx_count = wanted.tx;
        channels->combined_count = wanted.combined;
        return ask(interface, &*channels, "set the channels");
    }

    static Status set_rings(const std::string& interface, const Rings& wanted) {
        auto rings = query<ethtool_ringparam>(interface, ETHTOOL_GRINGPARAM);
        if (!rings)
            return failed(interface + " has no rings to set");
        rings->cmd = ETHTOOL_SRINGPARAM;
        rings->rx_pending = wanted.rx;
        rings->tx_pending = wanted.tx;
        return ask(interface, &*rings, "set the rings");
    }

    static Status set_coalescing(const std::string& interface, const Coalescing& wanted) {
        auto coalescing = query<ethtool_coalesce>(interface, ETHTOOL_GCOALESCE);
        if (!coalescing)
            return failed(interface + " has no coalescing to set");
        coalescing->cmd = ETHTOOL_SCOALESCE;
        coalescing->use_adaptive_rx_coalesce = wanted.adaptive_rx ? 1 : 0;
        coalescing->rx_coalesce_usecs = wanted.rx_usecs;
        return ask(interface, &*coalescing, "set the coalescing");
    }

    static Status set_spread(const std::string& interface, const std::vector<uint32_t>& wanted) {
        std::vector<uint32_t> buffer(sizeof(ethtool_rxfh_indir) / sizeof(uint32_t) + wanted.size());
        auto* table = reinterpret_cast<ethtool_rxfh_indir*>(buffer.data());
        table->cmd = ETHTOOL_SRXFHINDIR;
        table->size = static_cast<uint32_t>(wanted.size());
        std::copy(wanted.begin(), wanted.end(), table->ring_index);
        return ask(interface, table, "set the RSS table");
    }
};

}  // namespace

std::unique_ptr<Ethtool> live_ethtool() {
    return std::make_unique<LiveEthtool>();
}

}  // namespace sluice
