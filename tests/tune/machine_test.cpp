#include "tune/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "machines.h"
#include "temp_folder.h"
#include "tree.h"
#include "tune/host.h"
#include "tune/journal.h"
#include "tune/port.h"

namespace sluice {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CapturedMachine, HasToLookLikeOne) {
    const TempFolder folder;
    const auto machine = Machine::captured(folder.path());
    ASSERT_FALSE(machine);
    EXPECT_EQ(machine.error().code, ErrorCode::not_found);
    EXPECT_FALSE(Machine::captured("/nowhere"));
    for (const char* here : {"", "/", "//"})
        EXPECT_FALSE(Machine::captured(here)) << here;
}

TEST(CapturedMachine, LeadsNowhereElse) {
    const TempFolder folder, other;
    const std::string root = folder.path() + "/machine";
    folder.write("machine/sys/devices/system/cpu/online", "0");
    other.write("precious", "x");
    std::filesystem::create_symlink("devices/system", root + "/sys/inside");
    EXPECT_TRUE(Machine::captured(root));
    for (const std::string& elsewhere : {other.path() + "/precious", other.path(),
                                         std::string("/proc/sys"), std::string("../../..")}) {
        std::filesystem::create_symlink(elsewhere, root + "/sys/outside");
        const auto machine = Machine::captured(root);
        EXPECT_FALSE(machine) << elsewhere;
        if (!machine) {
            EXPECT_THAT(machine.error().message, HasSubstr("sys/outside is a link"));
        }
        std::filesystem::remove(root + "/sys/outside");
    }
}

TEST(JournalFolder, TakesOnlyWhatTuningWrites) {
    const TempFolder folder;
    const JournalFolder journals(folder.path());
    Journal journal;
    journal.interface = "eth0";
    journal.entries.push_back(
        {{SettingKind::file, "/sys/class/net/eth0/queues/rx-0/rps_cpus"}, "0", "1"});
    ASSERT_TRUE(journals.write(journal));
    EXPECT_TRUE(journals.read("eth0"));
    std::filesystem::copy_file(folder.path() + "/tune/eth0.journal",
                               folder.path() + "/tune/eth1.journal");
    EXPECT_FALSE(journals.read("eth1")) << "it is of another interface";
    for (const char* elsewhere : {"/etc/passwd", "/sys/../etc/passwd", "/proc/..", "relative"}) {
        journal.entries[0].setting.name = elsewhere;
        ASSERT_TRUE(journals.write(journal));
        EXPECT_FALSE(journals.read("eth0")) << elsewhere;
    }
}

TEST(Interrupts, AreThoseWithANumberAndTheirNames) {
    const TempFolder folder;
    build_machine("virtio-one-queue", folder.path());
    folder.write("proc/interrupts",
                 "           CPU0       CPU1\n"
                 " 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n"
                 "130:          0    2556509 PCI-MSIX-0000:00:02.0   1-edge      eth0-TxRx-0\n"
                 "NMI:          0          0   Non-maskable interrupts\n"
                 "ERR:          0\n");
    const auto lines = interrupts(Machine::captured(folder.path()).value());
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[1].number, 130U);
    EXPECT_EQ(lines[1].name, "eth0-TxRx-0");
}

TEST(Ports, AreThoseBelowWithTheNamesThatExistAsTheHint) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path());
    const Machine machine = Machine::captured(folder.path()).value();
    EXPECT_THAT(ports_below(machine, "bond0").value(), ElementsAre("eth0", "eth1"));
    EXPECT_THAT(ports_below(machine, "eth1").value(), ElementsAre("eth1"));
    const auto none = ports_below(machine, "eth7");
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::not_found);
    EXPECT_THAT(none.error().hint, HasSubstr("bond0 eth0 eth1"));
    for (const char* name : {"", ".", "..", "../eth0", "eth0/queues"})
        EXPECT_FALSE(ports_below(machine, name)) << name;
}

TEST(Ports, AreNotLookedForInACircle) {
    const TempFolder folder;
    {
        Tree tree(folder.path());
        tree.cpus("0", "0");
        for (const char* upper : {"bond0", "bond1", "bond2"})
            for (const char* lower : {"bond0", "bond1", "bond2"})
                tree.lower(upper, lower);
    }
    const auto ports = ports_below(Machine::captured(folder.path()).value(), "bond0");
    ASSERT_FALSE(ports);
    EXPECT_THAT(ports.error().message, HasSubstr("leads back to it"));
}

TEST(Port, TakesItsInterruptsInOrderWhereNamesSayNothing) {
    const TempFolder folder;
    {
        Tree tree(folder.path());
        tree.cpus("0-3", "0-3");
        tree.card("eth0", 0, {}, {.receive = 2, .send = 2});
        tree.irq("eth0", 20, "eth0", "0-3");  // link changes
        tree.irq("eth0", 21, "eth0-11", "0-3");
        tree.irq("eth0", 22, "eth0-10", "0-3");
        tree.irq("", 23, "eth0-12", "0-3");  // of something else
        tree.card("eth1", 0, {}, {});
        tree.irq("eth1", 30, "eth1", "0-3");
    }
    const Machine machine = Machine::captured(folder.path()).value();
    const auto port = look_at_port(machine, "eth0");
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_EQ(port->irqs.size(), 2U);
    EXPECT_EQ(port->irqs[0].number, 22U);
    EXPECT_EQ(port->irqs[0].queue, 0U);
    EXPECT_EQ(port->irqs[1].number, 21U);
    EXPECT_TRUE(port->irqs[1].receives && port->irqs[1].sends);
    EXPECT_EQ(look_at_port(machine, "eth1")->irqs.size(), 1U);
}

TEST(Port, HasManagedInterruptsWhereTheyArrive) {
    const TempFolder folder;
    {
        Tree tree(folder.path());
        tree.cpus("0-3", "0-3");
        tree.card("eth0", 0, {}, {.receive = 2, .send = 2});
        tree.irq("eth0", 20, "eth0-TxRx-0", "0-1", true);
        tree.irq("eth0", 21, "eth0-TxRx-1", "0-3");
        tree.write("/proc/irq/20/effective_affinity_list", "1\n");
        tree.write("/proc/irq/21/effective_affinity_list", "1\n");
    }
    const auto port = look_at_port(Machine::captured(folder.path()).value(), "eth0");
    ASSERT_TRUE(port) << port.error().message;
    EXPECT_EQ(port->irqs[0].affinity, CpuSet{1});
    EXPECT_EQ(port->irqs[1].affinity, (CpuSet{0, 1, 2, 3}));
}

TEST(Host, KeepsWhatIsIsolatedOrWithoutATickFree) {
    const TempFolder folder;
    {
        const Tree tree(folder.path());
        tree.cpus("0-3", "0-3", "1");
    }
    const auto free = [&](const char* nohz_full) {
        folder.write("sys/devices/system/cpu/nohz_full", nohz_full);
        const auto host = look_at_cpus(Machine::captured(folder.path()).value());
        EXPECT_TRUE(host) << nohz_full;
        CpuSet cpus;
        for (const Cpu& cpu : host->cpus)
            if (cpu.isolated)
                cpus.insert(cpu.number);
        return cpus;
    };
    EXPECT_EQ(free("2-3\n"), (CpuSet{1, 2, 3}));
    EXPECT_EQ(free("  (null)\n"), CpuSet{1});
    EXPECT_EQ(free("\n"), CpuSet{1});
}

TEST(Spread, OfTheDriverIsEvenOverItsQueues) {
    const Setting spread{SettingKind::device_part, "eth0", DevicePart::spread};
    EXPECT_TRUE(is_same_value(spread, "default 2", "0 1 0 1"));
    EXPECT_TRUE(is_same_value(spread, "default 2", "1 0 0 1"));
    EXPECT_FALSE(is_same_value(spread, "default 4", "0 1 0 1"));
    EXPECT_FALSE(is_same_value(spread, "default 2", "0 1 2 3"));
    EXPECT_FALSE(default_queues(DevicePart::spread, "default 0"));
    EXPECT_FALSE(default_queues(DevicePart::rings, "default 2"));
}

TEST(FileEthtool, LetsNoChannelsGoThatATableOfSomebodyPointsAt) {
    const TempFolder folder;
    const auto ethtool = file_ethtool(folder.path());
    DeviceFacts facts;
    facts.channels = {0, 0, 4};
    facts.spread = {0, 1, 2, 3, 0, 1, 2, 3};
    folder.write("eth0", ethtool_file_text(facts));
    ASSERT_TRUE(ethtool->set("eth0", DevicePart::channels, "combined 2"));
    EXPECT_EQ(ethtool->read("eth0")->spread, (std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1}));
    ASSERT_TRUE(ethtool->set("eth0", DevicePart::spread, "1 1 1 1 1 1 1 1"));
    EXPECT_FALSE(ethtool->set("eth0", DevicePart::channels, "combined 1"));
    ASSERT_TRUE(ethtool->set("eth0", DevicePart::spread, "default 1"));
    EXPECT_TRUE(ethtool->set("eth0", DevicePart::channels, "combined 1"));
}

TEST(Port, KnowsWhichInterruptsServeQueues) {
    const TempFolder folder;
    {
        Tree tree(folder.path());
        tree.cpus("0-3", "0-3");
        tree.card("eth0", 0, {}, {.receive = 2, .send = 2});
        tree.irq("eth0", 10, "gve-mgmnt@pci:0000:00:04.0", "0-3");
        for (unsigned block = 0; block < 4; ++block)
            tree.irq("eth0", 11 + block,
                     "gve-ntfy-blk" + std::to_string(block) + "@pci:0000:00:04.0", "0-3");
        tree.irq("", 99, "nvme0q1-TxRx-0", "0-3");
    }
    const auto port = look_at_port(Machine::captured(folder.path()).value(), "eth0");
    ASSERT_TRUE(port) << port.error().message;
    ASSERT_EQ(port->irqs.size(), 4U);
    for (const QueueIrq& irq : port->irqs) {
        EXPECT_EQ(irq.sends, irq.number < 13) << irq.name;
        EXPECT_EQ(irq.receives, !irq.sends) << irq.name;
        EXPECT_EQ(irq.queue, (irq.number - 11) % 2) << irq.name;
    }
}

TEST(Port, NamesTheFileThatMakesNoSense) {
    const TempFolder folder;
    build_machine("virtio-one-queue", folder.path());
    folder.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "no mask\n");
    const auto port = look_at_port(Machine::captured(folder.path()).value(), "eth0");
    ASSERT_FALSE(port);
    EXPECT_THAT(port.error().message, HasSubstr("rx-0/rps_cpus"));
    folder.write("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n");
    folder.write("ethtool/eth0", "driver = virtio_net\nchannels = rx many\n");
    const auto facts = look_at_port(Machine::captured(folder.path()).value(), "eth0");
    ASSERT_FALSE(facts);
    EXPECT_THAT(facts.error().message, HasSubstr("ethtool/eth0:2"));
}

TEST(DeviceFacts, AreReadBackFromTheirFile) {
    const TempFolder folder;
    DeviceFacts facts;
    facts.driver = "ixgbe";
    facts.channels = {1, 2, 3};
    facts.most_channels = {4, 5, 6};
    facts.rings = {7, 8};
    facts.most_rings = {9, 10};
    facts.coalescing = {true, 11};
    facts.spread = {0, 2, 1};
    facts.features = {{"rx-lro", true}, {"rx-gro-hw", false}};
    facts.tcp_by_port = true;
    facts.udp_by_port = false;
    facts.xdp = XdpUse::generic;
    folder.write("eth0", ethtool_file_text(facts));
    const auto read = file_ethtool(folder.path())->read("eth0");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(ethtool_file_text(*read), ethtool_file_text(facts));
    EXPECT_EQ(read->most_channels, facts.most_channels);
    EXPECT_EQ(read->features, facts.features);
}

TEST(LiveEthtool, ReadsLoopbackAndKnowsWhoIsNotThere) {
    const auto ethtool = live_ethtool();
    EXPECT_TRUE(ethtool->read("lo"));
    EXPECT_EQ(ethtool->read("no-such-0").error().code, ErrorCode::not_found);
}

TEST(Values, AreTheSameHoweverTheyAreWritten) {
    const Setting irq{SettingKind::irq, "a"};
    EXPECT_TRUE(is_same_value(irq, "0-1", "0,1\n"));
    EXPECT_FALSE(is_same_value(irq, "0-1", "0-2"));
    const Setting mask{SettingKind::file, "/rps_cpus"};
    EXPECT_TRUE(is_same_value(mask, "3", "00000000,00000003\n"));
    EXPECT_FALSE(is_same_value(mask, "3", "7"));
    const Setting rings{SettingKind::device_part, "eth0", DevicePart::rings};
    EXPECT_TRUE(is_same_value(rings, "rx 512", "rx 512 tx 256"));
    EXPECT_FALSE(is_same_value(rings, "rx 512", "rx 256 tx 256"));
    // An adaptive card moves its microseconds by itself.
    const Setting coalescing{SettingKind::device_part, "eth0", DevicePart::coalescing};
    EXPECT_TRUE(is_same_value(coalescing, "adaptive-rx on", "adaptive-rx on rx-usecs 77"));
    EXPECT_FALSE(is_same_value(coalescing, "adaptive-rx on", "adaptive-rx off rx-usecs 8"));
}

}  // namespace
}  // namespace sluice
