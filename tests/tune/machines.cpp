#include "machines.h"

#include <algorithm>
#include <stdexcept>

#include "tree.h"

namespace sluice {

namespace {

std::string text_of(unsigned number) {
    return std::to_string(number);
}

DeviceFacts device(const std::string& driver, unsigned queues, unsigned most) {
    DeviceFacts facts;
    facts.driver = driver;
    facts.channels = {0, 0, queues};
    facts.most_channels = {0, 0, most};
    return facts;
}

// Every CPU a core of its own, all on node 0, one cache.
void plain_cpus(const Tree& tree, const std::string& cpus) {
    tree.cpus(cpus, cpus);
    tree.node(0, cpus);
    tree.cache(cpus);
}

void virtio_irqs(Tree& tree, const std::string& card, unsigned queues, const std::string& affinity,
                 bool managed = false) {
    tree.irq(card, 24, "virtio0-config", affinity);
    for (unsigned queue = 0; queue < queues; ++queue) {
        const std::string home = managed ? text_of(queue) : affinity;
        tree.irq(card, 25 + 2 * queue, "virtio0-input." + text_of(queue), home, managed);
        tree.irq(card, 26 + 2 * queue, "virtio0-output." + text_of(queue), home, managed);
    }
}

void virtio_one_queue(Tree& tree) {
    plain_cpus(tree, "0-3");
    tree.card("eth0", -1, device("virtio_net", 1, 1), {});
    virtio_irqs(tree, "eth0", 1, "0-3");
}

void virtio_eight_queues(Tree& tree) {
    plain_cpus(tree, "0-3");
    tree.card("eth0", -1, device("virtio_net", 8, 8), {.receive = 8, .send = 8});
    virtio_irqs(tree, "eth0", 8, "0-3");
}

void mlx5_two_nodes(Tree& tree) {
    tree.cpus("0-63", "0-63");
    tree.node(0, "0-31");
    tree.node(1, "32-63");
    tree.cache("0-31");
    tree.cache("32-63");
    DeviceFacts facts = device("mlx5_core", 63, 63);
    facts.rings = {1024, 1024};
    facts.most_rings = {8192, 8192};
    facts.coalescing = {true, 8};
    tree.card("ens1f0", 1, facts,
              {.receive = 63, .send = 63, .rps = "00000000,00000000", .xps = "00000000,00000000"});
    tree.irq("ens1f0", 100, "mlx5_async0@pci:0000:3b:00.0", "0-63");
    for (unsigned queue = 0; queue < 63; ++queue)
        tree.irq("ens1f0", 101 + queue, "mlx5_comp" + text_of(queue) + "@pci:0000:3b:00.0", "0-63");
}

void ena_eight_of_eight(Tree& tree) {
    plain_cpus(tree, "0-7");
    DeviceFacts facts = device("ena", 8, 8);
    facts.rings = {1024, 1024};
    facts.most_rings = {8192, 1024};
    facts.coalescing = {true, 0};
    for (unsigned bucket = 0; bucket < 128; ++bucket)
        facts.spread.push_back(bucket % 8);
    tree.card("ens5", 0, facts, {.receive = 8, .send = 8});
    tree.irq("ens5", 30, "ena-mgmnt@pci:0000:00:05.0", "0-7");
    for (unsigned queue = 0; queue < 8; ++queue)
        tree.irq("ens5", 31 + queue, "ens5-Tx-Rx-" + text_of(queue), "0-7");
}

void ixgbe_cores(Tree& tree) {
    tree.cpus("0-15", "0-15");
    tree.node(0, "0-15");
    tree.cache("0-15");
    for (unsigned core = 0; core < 8; ++core)
        tree.core(text_of(core) + ',' + text_of(core + 8));
}

void ixgbe_card(Tree& tree, const std::string& name, unsigned first_irq, unsigned queues,
                const DeviceFacts& facts, const std::string& xps) {
    tree.card(name, 0, facts, {.receive = queues, .send = queues, .rps = "0", .xps = xps});
    for (unsigned queue = 0; queue < queues; ++queue)
        tree.irq(name, first_irq + queue, name + "-TxRx-" + text_of(queue), "0-15");
    // Link changes and the like: no queue.
    tree.irq(name, first_irq + queues, name, "0-15");
}

void ixgbe_smt(Tree& tree) {
    ixgbe_cores(tree);
    DeviceFacts facts = device("ixgbe", 16, 63);
    facts.rings = {512, 512};
    facts.most_rings = {4096, 4096};
    facts.coalescing = {false, 1};
    ixgbe_card(tree, "eth0", 40, 16, facts, "0");
}

void isolated_cpus(Tree& tree) {
    tree.cpus("0-7", "0-7", "2-7");
    tree.node(0, "0-7");
    tree.cache("0-7");
    tree.card("eth0", 0, device("i40e", 8, 8), {.receive = 8, .send = 8});
    for (unsigned queue = 0; queue < 8; ++queue)
        tree.irq("eth0", 50 + queue, "i40e-eth0-TxRx-" + text_of(queue), "0-7");
}

void offline_cpus(Tree& tree) {
    tree.cpus("0,2,4,6,9-11", "0-15");
    tree.node(0, "0,2,4,6");
    tree.node(1, "9-11");
    tree.cache("0,2,4,6");
    tree.cache("9-11");
    tree.card("eth0", 1, device("ice", 4, 16), {.receive = 4, .send = 4});
    for (unsigned queue = 0; queue < 4; ++queue)
        tree.irq("eth0", 60 + queue, "ice-eth0-TxRx-" + text_of(queue), "0-15");
}

void managed_irqs(Tree& tree) {
    plain_cpus(tree, "0-3");
    tree.card("eth0", -1, device("virtio_net", 4, 4), {.receive = 4, .send = 4});
    virtio_irqs(tree, "eth0", 4, "0-3", true);
}

void bond_of_two(Tree& tree) {
    ixgbe_cores(tree);
    DeviceFacts facts = device("ixgbe", 4, 4);
    ixgbe_card(tree, "eth0", 40, 4, facts, "0");
    ixgbe_card(tree, "eth1", 50, 4, facts, "0");
    tree.lower("bond0", "eth0");
    tree.lower("bond0", "eth1");
}

void many_cpus(Tree& tree) {
    tree.cpus("0-95", "0-127");
    tree.node(0, "0-47");
    tree.node(1, "48-95");
    tree.cache("0-47");
    tree.cache("48-95");
    tree.card("eth0", 1, device("bnxt_en", 4, 4),
              {.receive = 4,
               .send = 4,
               .rps = "00000000,00000000,00000000,00000000",
               .xps = "00000000,00000000,00000000,00000000"});
    for (unsigned queue = 0; queue < 4; ++queue)
        tree.irq("eth0", 70 + queue, "eth0-TxRx-" + text_of(queue), text_of(48 + queue));
}

void container(Tree& tree) {
    virtio_one_queue(tree);
    tree.write("/proc/self/mounts",
               "proc /proc proc rw,relatime 0 0\nsysfs /sys sysfs ro,nosuid 0 "
               "0\nproc /proc/irq proc ro,nosuid 0 0\n");
}

void irqbalance_runs(Tree& tree) {
    plain_cpus(tree, "0-3");
    tree.card("eth0", 0, device("igb", 4, 4), {.receive = 4, .send = 4});
    for (unsigned queue = 0; queue < 4; ++queue)
        tree.irq("eth0", 80 + queue, "eth0-TxRx-" + text_of(queue), text_of((queue + 1) % 4));
    tree.program(612, "irqbalance");
    tree.program(613, "tuned");
    tree.program(614, "sshd");
}

void veth(Tree& tree) {
    plain_cpus(tree, "0-1");
    DeviceFacts facts;
    facts.driver = "veth";
    facts.channels = {1, 1, 0};
    facts.most_channels = {2, 2, 0};
    tree.card("edge0", -1, facts, {.receive = 1, .send = 1});
}

void xdp_attached(Tree& tree) {
    plain_cpus(tree, "0-3");
    DeviceFacts facts = device("virtio_net", 2, 4);
    facts.xdp = XdpUse::native;
    tree.card("eth0", -1, facts, {.receive = 2, .send = 2});
    virtio_irqs(tree, "eth0", 2, "0-3");
}

void uneven_spread(Tree& tree) {
    plain_cpus(tree, "0-3");
    DeviceFacts facts = device("ixgbe", 4, 4);
    facts.rings = {256, 512};
    facts.most_rings = {4096, 4096};
    facts.coalescing = {true, 10};
    for (unsigned bucket = 0; bucket < 16; ++bucket)
        facts.spread.push_back(bucket % 2);
    tree.card("eth0", 0, facts, {.receive = 4, .send = 4, .rps = "f", .xps = "0"});
    for (unsigned queue = 0; queue < 4; ++queue)
        tree.irq("eth0", 90 + queue, "eth0-TxRx-" + text_of(queue), text_of(queue));
}

// Six queues, of which somebody chose two.
void table_set_by_hand(Tree& tree) {
    plain_cpus(tree, "0-3");
    DeviceFacts facts = device("ice", 6, 8);
    for (unsigned bucket = 0; bucket < 16; ++bucket)
        facts.spread.push_back(bucket % 2 == 0 ? 0 : 5);
    tree.card("eth0", 0, facts, {.receive = 6, .send = 6});
    for (unsigned queue = 0; queue < 6; ++queue)
        tree.irq("eth0", 90 + queue, "ice-eth0-TxRx-" + text_of(queue), "0-3");
}

// Two nodes of four cores with two threads each: 0-3 and 8-11 on node 0, 4-7 and 12-15 on node 1.
void two_nodes_with_threads(Tree& tree) {
    tree.cpus("0-15", "0-15");
    tree.node(0, "0-3,8-11");
    tree.node(1, "4-7,12-15");
    tree.cache("0-3,8-11");
    tree.cache("4-7,12-15");
    for (unsigned core = 0; core < 8; ++core)
        tree.core(text_of(core) + ',' + text_of(core + 8));
}

void bond_over_two_nodes(Tree& tree) {
    two_nodes_with_threads(tree);
    const DeviceFacts facts = device("ixgbe", 4, 4);
    for (unsigned card = 0; card < 2; ++card) {
        const std::string name = "eth" + text_of(card);
        tree.card(name, static_cast<int>(card), facts, {.receive = 4, .send = 4});
        for (unsigned queue = 0; queue < 4; ++queue)
            tree.irq(name, 40 + 10 * card + queue, name + "-TxRx-" + text_of(queue), "0-15");
        tree.lower("bond0", name);
    }
}

void without_a_node(Tree& tree) {
    two_nodes_with_threads(tree);
    tree.card("eth0", -1, device("virtio_net", 2, 2), {.receive = 2, .send = 2});
    virtio_irqs(tree, "eth0", 2, "0-15");
}

void nohz_full(Tree& tree) {
    plain_cpus(tree, "0-3");
    tree.write("/sys/devices/system/cpu/nohz_full", "2-3\n");
    tree.card("eth0", 0, device("igb", 4, 4), {.receive = 4, .send = 4});
    for (unsigned queue = 0; queue < 4; ++queue)
        tree.irq("eth0", 80 + queue, "eth0-TxRx-" + text_of(queue), "0-3");
}

void vlan(Tree& tree) {
    ixgbe_cores(tree);
    DeviceFacts facts = device("ixgbe", 8, 63);
    facts.rings = {512, 512};
    facts.most_rings = {4096, 4096};
    facts.coalescing = {true, 10};
    ixgbe_card(tree, "eth0", 40, 8, facts, "0");
    tree.lower("eth0.5", "eth0");
}

}  // namespace

const std::vector<TestMachine>& test_machines() {
    static const std::vector<TestMachine> machines = {
        {"virtio-one-queue", "eth0", "", virtio_one_queue},
        {"virtio-eight-queues-four-cpus", "eth0", "", virtio_eight_queues},
        {"mlx5-two-nodes", "ens1f0", "", mlx5_two_nodes},
        {"ena-eight-of-eight", "ens5", "", ena_eight_of_eight},
        {"ixgbe-smt", "eth0", "", ixgbe_smt},
        {"isolated-cpus", "eth0", "", isolated_cpus},
        {"offline-cpus", "eth0", "", offline_cpus},
        {"managed-irqs", "eth0", "", managed_irqs},
        {"bond-of-two", "bond0", "", bond_of_two},
        {"many-cpus", "eth0", "", many_cpus},
        {"container", "eth0", "", container},
        {"irqbalance-runs", "eth0", "", irqbalance_runs},
        {"veth", "edge0", "", veth},
        {"xdp-attached", "eth0", "", xdp_attached},
        {"uneven-spread", "eth0", "--profile flood", uneven_spread},
        {"bond-over-two-nodes", "bond0", "", bond_over_two_nodes},
        {"without-a-node", "eth0", "", without_a_node},
        {"nohz-full", "eth0", "", nohz_full},
        {"table-set-by-hand", "eth0", "", table_set_by_hand},
        {"vlan", "eth0.5", "--profile latency --reserve-cores 2", vlan},
    };
    return machines;
}

void build_machine(const std::string& name, const std::string& folder) {
    const auto found = std::ranges::find(test_machines(), name, &TestMachine::name);
    if (found == test_machines().end())
        throw std::invalid_argument("no machine " + name);
    Tree tree(folder);
    found->build(tree);
}

}  // namespace sluice
