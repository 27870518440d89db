#include "tune/port.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "tune/number.h"

namespace sluice {

namespace {

constexpr const char* kInterfaces = "/sys/class/net/";
std::string lower_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
    });
    return text;
}

// The last number before the '@' of "mlx5_comp3@pci:0000:3b:00.0", or of the whole.
std::optional<unsigned> last_number(std::string_view name) {
    return number_at_end(name.substr(0, name.find('@')));
}

// Link changes, errors, administration.
bool is_of_no_queue(const std::string& lower) {
    constexpr std::array<std::string_view, 7> kOthers = {"config", "async", "mgmnt", "mgmt",
                                                         "misc",   "fdir",  "event"};
    return std::ranges::any_of(
        kOthers, [&](std::string_view other) { return lower.find(other) != std::string::npos; });
}

// What a driver's name of an interrupt says of its queue; nothing where it serves none.
std::optional<QueueIrq> read_name(const std::string& name) {
    const std::string lower = lower_case(name);
    const auto contains = [&](std::string_view part) {
        return lower.find(part) != std::string::npos;
    };
    if (is_of_no_queue(lower))
        return std::nullopt;
    const auto queue = last_number(lower);
    if (!queue)
        return std::nullopt;
    QueueIrq irq;
    irq.name = name;
    irq.queue = *queue;
    if (contains("txrx") || contains("tx-rx") || contains("comp") || contains("ntfy")) {
        irq.receives = irq.sends = true;
    } else {
        irq.receives = contains("input") || contains("rx");
        irq.sends = contains("output") || contains("tx");
    }
    return irq.receives || irq.sends ? std::optional(irq) : std::nullopt;
}

// gve numbers its notification blocks through: the sending half first.
void split_notification_blocks(std::vector<QueueIrq>& irqs) {
    const auto is_block = [](const QueueIrq& irq) {
        return irq.name.find("ntfy") != std::string::npos;
    };
    const auto half = static_cast<unsigned>(std::ranges::count_if(irqs, is_block) / 2);
    for (QueueIrq& irq : irqs) {
        if (!is_block(irq))
            continue;
        irq.receives = irq.queue >= half;
        irq.sends = !irq.receives;
        if (irq.receives)
            irq.queue -= half;
    }
}

// Where names say nothing of directions, the card's interrupts are its queues', in their order;
// none where there are more of them than queues.
std::vector<QueueIrq> by_order(const std::vector<InterruptLine>& own, const Port& port) {
    std::vector<QueueIrq> irqs;
    for (const InterruptLine& line : own) {
        const auto number = last_number(line.name);
        const bool is_of_card = line.name == port.name && own.size() > 1;
        if (number && !is_of_card && !is_of_no_queue(lower_case(line.name)))
            irqs.push_back({.number = line.number,
                            .name = line.name,
                            .queue = *number,
                            .receives = true,
                            .sends = true,
                            .affinity = {}});
    }
    std::ranges::stable_sort(irqs, {}, &QueueIrq::queue);
    for (size_t queue = 0; queue < irqs.size(); ++queue)
        irqs[queue].queue = static_cast<unsigned>(queue);
    return irqs.size() <= std::max(port.receive.size(), port.send.size()) ? irqs
                                                                          : std::vector<QueueIrq>();
}

// Where it may arrive, and whether anybody may change that.
Status read_affinity(const Machine& machine, QueueIrq& irq) {
    const std::string number = std::to_string(irq.number);
    irq.managed = machine.text("/sys/kernel/debug/irq/irqs/" + number)
                      .value_or("")
                      .find("IRQD_AFFINITY_MANAGED") != std::string::npos;
    std::string path = "/proc/irq/" + number + "/smp_affinity_list";
    // What the kernel chose of the CPUs that a managed one is given.
    const std::string effective = "/proc/irq/" + number + "/effective_affinity_list";
    if (irq.managed && !machine.text(effective).value_or("").empty())
        path = effective;
    auto affinity = parse_cpu_list(machine.text(path).value_or(""));
    if (!affinity)
        return affinity.error().with_context(machine.path_of(path));
    irq.affinity = *std::move(affinity);
    return {};
}

Status read_irqs(const Machine& machine, Port& port) {
    const auto numbers = irqs_of(machine, port.name);
    auto own = interrupts(machine);
    std::erase_if(own, [&](const InterruptLine& line) { return !numbers.contains(line.number); });
    for (const InterruptLine& line : own)
        if (auto irq = read_name(line.name)) {
            irq->number = line.number;
            port.irqs.push_back(*std::move(irq));
        }
    split_notification_blocks(port.irqs);
    if (port.irqs.empty())
        port.irqs = by_order(own, port);
    for (QueueIrq& irq : port.irqs)
        if (const Status read = read_affinity(machine, irq); !read)
            return read;
    std::ranges::stable_sort(port.irqs, {}, &QueueIrq::queue);
    return {};
}

Result<CpuSet> read_mask(const Machine& machine, const std::string& path) {
    const auto mask = parse_cpu_mask(machine.text(path).value_or("0"));
    return mask ? mask : mask.error().with_context(machine.path_of(path));
}

Status read_queues(const Machine& machine, Port& port) {
    for (const std::string& name : machine.names_in(kInterfaces + port.name + "/queues")) {
        const auto number = last_number(name);
        const bool receives = name.starts_with("rx-");
        if (!number || (!receives && !name.starts_with("tx-")))
            continue;
        const std::string folder = queue_folder(port.name, receives, *number);
        if (receives) {
            const auto rps = read_mask(machine, folder + "/rps_cpus");
            if (!rps)
                return rps.error();
            port.receive.push_back(
                {*number, *rps,
                 whole_number<unsigned>(machine.text(folder + "/rps_flow_cnt").value_or("0"))
                     .value_or(0)});
        } else {
            SendQueue queue{*number, std::nullopt};
            if (machine.text(folder + "/xps_cpus")) {
                const auto xps = read_mask(machine, folder + "/xps_cpus");
                if (!xps)
                    return xps.error();
                queue.xps = *xps;
            }
            port.send.push_back(std::move(queue));
        }
    }
    return {};
}

// A digit a bit, the lowest first.
std::optional<std::set<VirtioFeature>> read_virtio(const Machine& machine,
                                                   const std::string& name) {
    const auto bits = machine.text(kInterfaces + name + "/device/features");
    if (!bits)
        return std::nullopt;
    std::set<VirtioFeature> features;
    for (size_t bit = 0; bit < bits->size(); ++bit)
        if ((*bits)[bit] == '1')
            features.insert(static_cast<VirtioFeature>(bit));
    return features;
}

// `visited` against circles: the kernel makes none, but trees are files.
void add_ports(const Machine& machine, const std::string& name, std::set<std::string>& visited,
               std::vector<std::string>& ports) {
    constexpr std::string_view kLower = "lower_";
    if (!visited.insert(name).second)
        return;
    bool is_stacked = false;
    for (const std::string& entry : machine.names_in(kInterfaces + name)) {
        if (!entry.starts_with(kLower))
            continue;
        is_stacked = true;
        add_ports(machine, entry.substr(kLower.size()), visited, ports);
    }
    if (!is_stacked)
        ports.push_back(name);
}

}  // namespace

std::string queue_folder(const std::string& interface, bool receives, unsigned number) {
    return kInterfaces + interface + "/queues/" + (receives ? "rx-" : "tx-") +
           std::to_string(number);
}

std::set<unsigned> irqs_of(const Machine& machine, const std::string& interface) {
    std::set<unsigned> numbers;
    const std::string device = kInterfaces + interface + "/device";
    // Those of a virtio device belong to the PCI device above it.
    for (const std::string& folder : {device + "/msi_irqs", device + "/../msi_irqs"}) {
        for (const std::string& number : machine.names_in(folder))
            if (const auto irq = whole_number<unsigned>(number))
                numbers.insert(*irq);
        if (!numbers.empty())
            break;
    }
    return numbers;
}

Result<std::vector<std::string>> ports_below(const Machine& machine, const std::string& interface) {
    const bool is_name = !interface.empty() && interface.find('/') == std::string::npos &&
                         interface != "." && interface != "..";
    const bool is_there = is_name && machine.has(kInterfaces + interface);
    if (is_name && !is_there && machine.is_live() && machine.ethtool().read(interface))
        return failed(interface + " is here, but /sys shows another network namespace",
                      "ip netns exec NAME sluicectl … mounts the right one");
    if (!is_there) {
        std::string hint = "interfaces here:";
        for (const std::string& name : machine.names_in(kInterfaces))
            hint += ' ' + name;
        return make_error(ErrorCode::not_found, "no interface " + in_quotes(interface),
                          std::move(hint));
    }
    std::vector<std::string> ports;
    std::set<std::string> visited;
    add_ports(machine, interface, visited, ports);
    if (ports.empty())
        return failed(interface + ": what is below it leads back to it, so there is no card");
    return ports;
}

Result<Port> look_at_port(const Machine& machine, const std::string& name) {
    Port port;
    port.name = name;
    auto device = machine.ethtool().read(name);
    if (!device)
        return device.error();
    port.device = *std::move(device);
    if (port.device.driver == "virtio_net")
        port.virtio = read_virtio(machine, name);
    // -1 where the card is near no node in particular.
    if (const auto node = machine.text(kInterfaces + name + "/device/numa_node");
        node && !node->starts_with('-'))
        port.node = whole_number<unsigned>(*node);
    if (const Status read = read_queues(machine, port); !read)
        return read.error();
    if (const Status read = read_irqs(machine, port); !read)
        return read.error();
    return port;
}

}  // namespace sluice
