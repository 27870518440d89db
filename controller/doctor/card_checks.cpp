// One card: what runs on it, what its driver will say, and whether its packets are spread.
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>

#include "doctor/doctor.h"
#include "gate/driver_advice.h"
#include "gate/xdp_link.h"
#include "tune/apply.h"
#include "tune/number.h"

namespace sluice {

namespace {

Finding cannot_look(const Card& card) {
    return skipped(card.tuning.error().message, card.tuning.error().hint);
}

std::string root_looks_at(const Card& card) {
    return "sudo sluicectl doctor " + card.interface.name;
}

bool runs_native(const Card& card) {
    return card.attachment && card.attachment->acts() && card.attachment->native;
}

// The worst that is found on the cards below, such as the slaves of a bond; of equals the first.
template <class Check>
Finding worst_of_ports(const Card& card, Check check) {
    if (!card.tuning)
        return cannot_look(card);
    constexpr std::array kFromBad = {Outcome::fail, Outcome::warn, Outcome::skip, Outcome::pass};
    const auto rank = [&](const Finding& finding) {
        return std::ranges::find(kFromBad, finding.outcome);
    };
    std::optional<Finding> worst;
    for (const Port& port : card.tuning->ports) {
        Finding finding = check(port);
        if (port.name != card.interface.name)
            finding.seen = port.name + ": " + finding.seen;
        if (!worst || rank(finding) < rank(*worst))
            worst = std::move(finding);
    }
    return *worst;
}

bool has_feature(const Port& port, const char* name) {
    const auto found = port.device.features.find(name);
    return found != port.device.features.end() && found->second;
}

Finding check_link(const Patient& /*patient*/, const Card& card) {
    if (!card.interface.up)
        return failed_check("is down", "nothing arrives, and the gate is not attached to it",
                            "ip link set " + card.interface.name + " up");
    return passed("is up");
}

Finding check_kind(const Patient& /*patient*/, const Card& card) {
    const std::string& name = card.interface.name;
    const auto lower = [&] {
        return card.tuning ? card.tuning->ports.front().name : std::string("eth0");
    };
    if (card.interface.kind == "vlan" || card.interface.kind == "macvlan")
        return warned("is a " + card.interface.kind + " device",
                      "it has no native XDP; the card below has, and sees all of its packets",
                      "sluicectl attach " + lower());
    if (card.interface.kind == "bridge")
        return warned("is a bridge", "it has no native XDP; its ports have",
                      "ls /sys/class/net/" + name + "/brif");
    if (card.interface.kind == "bond")
        return warned("is a bond", "it has native XDP only where all its slaves have",
                      "sluicectl attach " + lower() + ", and the other slaves");
    if (card.interface.loopback)
        return warned("is loopback", "nobody from outside comes this way",
                      "sluicectl doctor IFACE, with one of: ip -brief link");
    return passed(card.interface.kind.empty() ? "a card of its own" : "a " + card.interface.kind);
}

Finding check_other_program(const Patient& patient, const Card& card) {
    const auto state = xdp_state(card.interface.index);
    if (!state)
        return skipped(state.error().message, root_looks_at(card));
    const uint32_t id = state->any_id();
    if (id == 0)
        return passed("none");
    if (card.attachment && card.attachment->acts())
        return passed("the gate");
    const bool is_generic = state->native_id == 0;
    const std::string seen = "XDP program " + std::to_string(id) + " (" + program_name(id) +
                             ") is attached, " + (is_generic ? "generic" : "native");
    const bool may_look = has_capability(patient.machine, 21);
    if (may_look && has_dispatcher(card.interface.index))
        return passed("a dispatcher, which the gate can join");
    if (may_not_see_gate(patient))
        return skipped(seen, root_looks_at(card));
    return failed_check(seen,
                        "an interface takes one program, so the gate cannot be attached; whose it "
                        "is: bpftool prog show id " +
                            std::to_string(id),
                        command_to_remove(*state, card.interface));
}

Finding check_mode(const Patient& patient, const Card& card) {
    if (!card.attachment && may_not_see_gate(patient))
        return skipped(
            "whether the gate is attached here is seen in its pins, which only root may "
            "read (" +
                patient.gate.error().message + ')',
            root_looks_at(card));
    if (!card.attachment)
        return skipped("the gate is not attached here", "sluicectl attach " + card.interface.name);
    if (!card.attachment->acts())
        return failed_check("attached, and idle: " + why_idle(*card.attachment),
                            "everything passes", "sluicectl attach " + card.interface.name);
    if (card.attachment->native)
        return passed("native");
    const std::string seen = "generic";
    const std::string why =
        "the kernel builds a whole packet before the gate sees it: a flood "
        "costs several times as much";
    const std::string mend = native_mode_advice(card.interface, true);
    const bool wants_native = patient.policy && patient.policy->xdp_mode == XdpMode::native;
    return wants_native ? failed_check(seen + ", and the policy wants native", why, mend)
                        : warned(seen, why, mend);
}

Finding check_mtu(const Patient& /*patient*/, const Card& card) {
    const unsigned mtu = card.interface.mtu;
    if (mtu <= kSinglePageMtu || card.interface.loopback)
        return passed(std::to_string(mtu));
    return warned(std::to_string(mtu),
                  runs_native(card)
                      ? "the driver takes it; a replacement of the card or driver may not: most "
                        "want a packet to fit one page"
                      : "most drivers refuse native XDP above " + std::to_string(kSinglePageMtu) +
                            ": a packet has to fit one page",
                  "ip link set " + card.interface.name + " mtu 1500");
}

// What the host of a virtual machine joins, or does not check, for it.
bool has_guest_offloads(const std::set<VirtioFeature>& features) {
    constexpr std::array kOffloads = {VirtioFeature::guest_checksum, VirtioFeature::guest_tso4,
                                      VirtioFeature::guest_tso6,     VirtioFeature::guest_ecn,
                                      VirtioFeature::guest_ufo,      VirtioFeature::guest_uso4,
                                      VirtioFeature::guest_uso6};
    return std::ranges::any_of(kOffloads,
                               [&](VirtioFeature offload) { return features.contains(offload); });
}

Finding check_virtio_offloads(const std::set<VirtioFeature>& features) {
    if (!has_guest_offloads(features))
        return passed("none that joins packets");
    if (features.contains(VirtioFeature::switched_offloads))
        return passed("the driver switches off what joins packets, while native XDP is attached");
    return failed_check(
        "the host joins packets or leaves checksums open, and nothing here can switch that off",
        "virtio_net refuses native XDP with it",
        "start the virtual machine with ctrl_guest_offloads=on, with qemu: -device "
        "virtio-net-pci,ctrl_guest_offloads=on");
}

Finding check_offloads(const Patient& /*patient*/, const Card& card) {
    return worst_of_ports(card, [&](const Port& port) {
        if (port.virtio)
            return check_virtio_offloads(*port.virtio);
        if (has_feature(port, "rx-lro"))
            return failed_check("LRO is on",
                                "drivers refuse native XDP with it, because it joins packets",
                                "ethtool -K " + port.name + " lro off");
        if (has_feature(port, "rx-gro-hw"))
            return warned("rx-gro-hw is on",
                          "the card joins packets, and some drivers refuse native XDP with it",
                          "ethtool -K " + port.name + " rx-gro-hw off");
        return passed("none that joins packets");
    });
}

Finding check_vlan_offload(const Patient& /*patient*/, const Card& card) {
    return worst_of_ports(card, [&](const Port& port) {
        const bool strips = has_feature(port, "rx-vlan-hw-parse");
        if (!strips || card.interface.uppers.empty() || card.interface.kind == "veth")
            return passed(strips ? "tags are taken off by the card; no VLAN is on it"
                                 : "the gate sees tags");
        return warned("the card takes VLAN tags off before XDP",
                      "packets of different VLANs look alike to the gate: limits are shared",
                      "ethtool -K " + port.name + " rxvlan off");
    });
}

std::string counted(size_t number, const std::string& noun) {
    return std::to_string(number) + ' ' + noun + (number == 1 ? "" : "s");
}

// How to come by more queues than the driver has.
std::string more_queues(const PortPlan& port, const Card& card) {
    const std::string& interface = card.interface.name;
    const std::string cores = std::to_string(port.cores);
    const std::string meanwhile = "sluicectl tune apply " + interface;
    // Drivers refuse another number as long as XDP is attached.
    const bool is_held = port.queues_right > port.queues_wanted;
    if (is_held && card.attachment)
        return "sluicectl detach " + interface + " && " + meanwhile + " && sluicectl attach " +
               interface;
    if (is_held)
        return "take the XDP program off that is attached (see other-program), then " + meanwhile;
    if (port.queues_wanted > port.queues)
        return meanwhile + " --confirm 60s";
    if (port.driver == "virtio_net")
        return "give the virtual machine more queues, with qemu: -netdev tap,…,queues=" + cores +
               " -device virtio-net-pci,mq=on; until then: " + meanwhile;
    if (port.driver == "veth")
        return "make the pair with more: ip link add " + port.name + " numrxqueues " + cores +
               " numtxqueues " + cores + " type veth; until then: " + meanwhile;
    return meanwhile + ", which spreads what passes; the driver has no more queues";
}

Finding check_queues(const Patient& /*patient*/, const Card& card) {
    if (!card.tuning)
        return cannot_look(card);
    const Plan plan = make_plan(*card.tuning);
    return worst_of_ports(card, [&](const Port& looked_at) {
        const PortPlan& port = *std::ranges::find(plan.ports, looked_at.name, &PortPlan::name);
        const std::string seen = counted(port.queues, "queue") + " for " +
                                 counted(port.cores, "core") + " near the card";
        if (port.queues >= port.cores)
            return passed(seen);
        return warned(seen,
                      "in a flood " +
                          (port.queues == 1 ? std::string("one CPU has")
                                            : "only " + counted(port.queues, "CPU") + " have") +
                          " to decide on every packet, while others are idle",
                      more_queues(port, card));
    });
}

// What a driver asks for before it takes native XDP, beside MTU, offloads and kind.
Finding check_driver_of(const Patient& patient, const Card& card, const Port& port) {
    const std::string& driver = port.device.driver;
    const auto& most = port.device.most_channels;
    const unsigned queues = port.device.channels ? receiving(*port.device.channels) : 0;
    if (driver.empty())
        return passed("of no driver that says its name");
    if (runs_native(card))
        return passed(driver + ", which runs native XDP");
    if ((driver == "ena" || driver == "gve") && most && queues > 1 && queues > receiving(*most) / 2)
        return warned(driver + " with " + counted(queues, "queue") + " of " +
                          std::to_string(receiving(*most)),
                      "it refuses native XDP with more than half: the others send for it",
                      "sluicectl tune apply " + card.interface.name);
    if (driver == "ixgbe") {
        const auto functions =
            patient.machine.text("/sys/class/net/" + port.name + "/device/sriov_numvfs");
        if (functions && *functions != "0")
            return warned("ixgbe with " + *functions + " virtual functions",
                          "it refuses native XDP beside SR-IOV",
                          "echo 0 > /sys/class/net/" + port.name + "/device/sriov_numvfs");
    }
    constexpr std::array<std::string_view, 4> kResetting = {"ixgbe", "i40e", "ice", "mlx5_core"};
    if (std::ranges::find(kResetting, driver) != kResetting.end())
        return passed(driver + ", whose link is down for a moment when the gate is attached");
    return passed(driver);
}

Finding check_driver(const Patient& patient, const Card& card) {
    return worst_of_ports(card,
                          [&](const Port& port) { return check_driver_of(patient, card, port); });
}

// Packets a second of each queue that the driver counts for.
std::vector<QueueRate> rates_of(const Patient& patient, const Port& port) {
    std::vector<QueueRate> rates;
    std::ranges::copy_if(
        patient.rates.queues, std::back_inserter(rates),
        [&](const QueueRate& rate) { return rate.queue.starts_with(port.name + ' '); });
    return rates;
}

Finding check_spread(const Patient& patient, const Card& card) {
    constexpr double kEnough = 1'000;  // packets a second, of which a share means something
    // Times the fair share; with few queues half-way from there to everything.
    constexpr double kMostOfFair = 3;
    return worst_of_ports(card, [&](const Port& port) {
        const auto rates = rates_of(patient, port);
        if (rates.size() < 2)
            return skipped("the driver counts no packets by queue, or has one");
        double all = 0;
        for (const QueueRate& rate : rates)
            all += rate.packets;
        if (all < kEnough)
            return skipped(
                "too few packets to tell (" + std::to_string(static_cast<long>(all)) + " a second)",
                "run it again under load");
        const auto busiest = std::ranges::max_element(rates, {}, &QueueRate::packets);
        const double fair = 1 / static_cast<double>(rates.size());
        const double share = busiest->packets / all;
        if (share > std::min(kMostOfFair * fair, (1 + fair) / 2))
            return warned(
                busiest->queue + " has " + std::to_string(static_cast<int>(100 * share)) +
                    " % of the packets",
                "one CPU is full while others are idle: few flows, or a hash that ignores ports",
                port.device.udp_by_port == false
                    ? "ethtool -N " + port.name + " rx-flow-hash udp4 sdfn"
                    : "sluicectl tune apply " + card.interface.name);
        return passed("even over " + std::to_string(rates.size()) + " queues");
    });
}

bool serves(const Patient& patient, uint8_t protocol) {
    return patient.policy &&
           std::ranges::any_of(patient.policy->services, [&](const Service& service) {
               return std::ranges::find(service.matches, protocol, &Match::protocol) !=
                      service.matches.end();
           });
}

Finding check_hash(const Patient& patient, const Card& card) {
    return worst_of_ports(card, [&](const Port& port) {
        const std::string why =
            "all flows between two addresses take one queue, as those of a NAT or a proxy do";
        const std::string mend = "ethtool -N " + port.name + " rx-flow-hash ";
        if (!port.device.tcp_by_port && !port.device.udp_by_port)
            return passed("the driver does not say what it hashes");
        if (port.device.tcp_by_port == false)
            return warned("the hash ignores the ports of TCP", why, mend + "tcp4 sdfn");
        // Most drivers begin so, because fragments of UDP have no ports: it matters to servers.
        if (port.device.udp_by_port == false && serves(patient, IPPROTO_UDP))
            return warned("the hash ignores the ports of UDP, which services use", why,
                          mend + "udp4 sdfn");
        return passed(port.device.udp_by_port == false ? "ports of TCP" : "ports, too");
    });
}

Finding check_rings(const Patient& patient, const Card& card) {
    return worst_of_ports(card, [&](const Port& port) {
        const auto& rings = port.device.rings;
        if (!rings)
            return passed("the driver has none to set");
        const std::string statistics = "/sys/class/net/" + port.name + "/statistics/";
        uint64_t lost = 0;
        for (const char* counter : {"rx_missed_errors", "rx_fifo_errors"})
            lost = std::max(lost, whole_number<uint64_t>(
                                      patient.machine.text(statistics + counter).value_or(""))
                                      .value_or(0));
        const std::string seen = std::to_string(rings->rx) + " packets a queue, " +
                                 std::to_string(lost) + " lost since boot";
        if (lost != 0 && port.device.most_rings && rings->rx < port.device.most_rings->rx)
            return warned(seen, "packets came faster than the CPU took them, and the ring was full",
                          "sluicectl tune apply " + card.interface.name + " --profile flood");
        return passed(seen);
    });
}

Finding check_numa(const Patient& /*patient*/, const Card& card) {
    if (!card.tuning)
        return cannot_look(card);
    const Host& host = card.tuning->host;
    if (host.nodes.size() < 2)
        return passed("one node");
    for (const Port& port : card.tuning->ports) {
        if (!port.node)
            continue;
        const auto is_far = [&](const QueueIrq& irq) {
            return std::ranges::none_of(irq.affinity, [&](unsigned number) {
                const Cpu* cpu = host.find(number);
                return cpu != nullptr && cpu->node == *port.node;
            });
        };
        const auto far = std::ranges::count_if(port.irqs, is_far);
        if (far != 0)
            return warned(std::to_string(far) + " interrupts of " + port.name +
                              " go to another node than its own",
                          "every packet crosses the link between the sockets",
                          "sluicectl tune apply " + card.interface.name);
    }
    return passed("interrupts are on the card's node, or free to be");
}

Finding check_tuning(const Patient& patient, const Card& card) {
    const JournalFolder journals(patient.options.state_dir);
    if (const Status readable = journals.is_readable(); !readable)
        return skipped(readable.error().message, root_looks_at(card));
    const auto drifts = drifted(patient.machine, journals, card.interface.name);
    if (!drifts && drifts.error().code == ErrorCode::not_found)
        return passed("not tuned by Sluice");
    if (!drifts && drifts.error().code == ErrorCode::not_permitted)
        return skipped(drifts.error().message, root_looks_at(card));
    if (!drifts)
        return warned(drifts.error().message, "its queues are not where they were put",
                      drifts.error().hint);
    if (!drifts->empty())
        return warned(std::to_string(drifts->size()) + " settings are not as they were set",
                      "somebody else sets them too: irqbalance, tuned, or a script",
                      "sluicectl tune verify " + card.interface.name);
    return passed("as it was set");
}

constexpr CardCheck kChecks[] = {
    {"link", check_link},
    {"kind", check_kind},
    {"other-program", check_other_program},
    {"xdp-mode", check_mode},
    {"driver", check_driver},
    {"mtu", check_mtu},
    {"offloads", check_offloads},
    {"vlan-offload", check_vlan_offload},
    {"queues", check_queues},
    {"spread", check_spread},
    {"hash", check_hash},
    {"rings", check_rings},
    {"numa", check_numa},
    {"tuning", check_tuning},
};

}  // namespace

std::span<const CardCheck> card_checks() {
    return kChecks;
}

}  // namespace sluice
