#include "tree.h"

#include <filesystem>
#include <fstream>

#include "tune/cpu_set.h"

namespace sluice {

namespace {

const std::string kCpus = "/sys/devices/system/cpu";

}  // namespace

Tree::~Tree() {
    write("/proc/interrupts", "           CPU0\n" + interrupts_);
}

void Tree::write(const std::string& path, std::string_view text) const {
    const std::filesystem::path file = folder_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
}

void Tree::cpus(const std::string& online, const std::string& possible,
                const std::string& isolated) const {
    write(kCpus + "/online", online + '\n');
    write(kCpus + "/possible", possible + '\n');
    write(kCpus + "/isolated", isolated + '\n');
    write("/proc/sys/net/core/rps_sock_flow_entries", "0\n");
}

void Tree::core(const std::string& threads) const {
    for (const unsigned cpu : parse_cpu_list(threads).value())
        write(kCpus + "/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
              threads + '\n');
}

void Tree::cache(const std::string& sharers) const {
    for (const unsigned cpu : parse_cpu_list(sharers).value()) {
        const std::string index = kCpus + "/cpu" + std::to_string(cpu) + "/cache/index3";
        write(index + "/level", "3\n");
        write(index + "/shared_cpu_list", sharers + '\n');
    }
}

void Tree::node(unsigned number, const std::string& cpus) const {
    write("/sys/devices/system/node/node" + std::to_string(number) + "/cpulist", cpus + '\n');
}

void Tree::card(const std::string& name, int node, const DeviceFacts& facts,
                const Queues& queues) const {
    const std::string folder = "/sys/class/net/" + name;
    write(folder + "/mtu", "1500\n");
    write(folder + "/operstate", "up\n");
    write(folder + "/device/numa_node", std::to_string(node) + '\n');
    write("/ethtool/" + name, ethtool_file_text(facts));
    for (unsigned queue = 0; queue < queues.receive; ++queue) {
        const std::string rx = folder + "/queues/rx-" + std::to_string(queue);
        write(rx + "/rps_cpus", queues.rps + '\n');
        write(rx + "/rps_flow_cnt", "0\n");
    }
    for (unsigned queue = 0; queue < queues.send; ++queue) {
        const std::string tx = folder + "/queues/tx-" + std::to_string(queue);
        write(tx + "/tx_timeout", "0\n");
        // A single queue's mask cannot be read.
        if (queues.send > 1)
            write(tx + "/xps_cpus", queues.xps + '\n');
    }
}

void Tree::lower(const std::string& upper, const std::string& lower) const {
    write("/sys/class/net/" + upper + "/lower_" + lower, "");
    write("/sys/class/net/" + upper + "/mtu", "1500\n");
}

void Tree::irq(const std::string& card, unsigned number, const std::string& name,
               const std::string& affinity, bool managed) {
    const std::string text = std::to_string(number);
    interrupts_ += ' ' + text + ":          0   PCI-MSI 524288-edge      " + name + '\n';
    write("/proc/irq/" + text + "/smp_affinity_list", affinity + '\n');
    if (!card.empty())
        write("/sys/class/net/" + card + "/device/msi_irqs/" + text, "msix\n");
    if (managed)
        write("/sys/kernel/debug/irq/irqs/" + text,
              "handler:  handle_edge_irq\ndstate:   0x37400000\n            "
              "IRQD_AFFINITY_MANAGED\n");
}

void Tree::program(unsigned pid, const std::string& name) const {
    write("/proc/" + std::to_string(pid) + "/comm", name + '\n');
}

}  // namespace sluice
