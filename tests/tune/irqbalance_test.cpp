#include "tune/irqbalance.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"
#include "tune/apply.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// What irqbalance would read from the script.
std::string asked(const std::string& script, const std::string& net, unsigned irq) {
    const std::string command =
        "SLUICE_NET=" + net + " sh " + script + " /sys/devices/x " + std::to_string(irq);
    std::string answer;
    FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 64> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
        answer += buffer.data();
    EXPECT_EQ(::pclose(pipe), 0);
    return answer;
}

TEST(IrqbalancePolicy, BansTheInterruptsOfItsCardsAndNoOthers) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path());
    const std::string net = folder.path() + "/sys/class/net";
    const std::string script = folder.write("policy", irqbalance_policy({"eth0"}));
    EXPECT_EQ(asked(script, net, 41), "ban=true\n");
    EXPECT_EQ(asked(script, net, 51), "");  // of eth1
    EXPECT_EQ(asked(script, net, 7), "");
    const std::string both = folder.write("policy", irqbalance_policy({"eth0", "eth1"}));
    EXPECT_EQ(asked(both, net, 51), "ban=true\n");
}

TEST(IrqbalancePolicy, TakesNamesAsTheyAre) {
    const TempFolder folder;
    const std::string name = "it's;$(id)";
    folder.write("net/" + name + "/device/msi_irqs/25", "msix\n");
    const std::string script = folder.write("policy", irqbalance_policy({name}));
    EXPECT_EQ(asked(script, folder.path() + "/net", 25), "ban=true\n");
    EXPECT_EQ(asked(script, folder.path() + "/net", 26), "");
}

TEST(IrqbalancePolicy, IsForAllCardsThatAreTuned) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path() + "/machine");
    const Machine machine = Machine::captured(folder.path() + "/machine").value();
    const JournalFolder journals(folder.path() + "/state");
    ASSERT_TRUE(apply_tuning(machine, journals, "eth1", {}));
    EXPECT_EQ(ports_to_leave_alone(machine, journals, {"eth0"}),
              (std::vector<std::string>{"eth0", "eth1"}));
}

TEST(IrqbalancePolicy, FindsThoseOfAVirtioDeviceAboveIt) {
    const TempFolder folder;
    folder.write("pci/msi_irqs/25", "msix\n");
    fs::create_directories(folder.path() + "/pci/virtio0");
    fs::create_directories(folder.path() + "/net/eth0");
    fs::create_directory_symlink(folder.path() + "/pci/virtio0",
                                 folder.path() + "/net/eth0/device");
    const std::string script = folder.write("policy", irqbalance_policy({"eth0"}));
    EXPECT_EQ(asked(script, folder.path() + "/net", 25), "ban=true\n");
    EXPECT_EQ(asked(script, folder.path() + "/net", 26), "");
}

TEST(IrqbalanceFiles, LieBesideTheJournalsAndNameEachOther) {
    const TempFolder folder;
    const auto files =
        write_irqbalance_files(JournalFolder(folder.path()), {"eth0"}, "/var/lib/sluice/tune");
    ASSERT_TRUE(files) << files.error().message;
    EXPECT_EQ(read_file(files->policy).value(), irqbalance_policy({"eth0"}));
    const std::string drop_in = read_file(files->drop_in).value();
    EXPECT_NE(drop_in.find("--policyscript=/etc/sluice/irqbalance-policy"), std::string::npos);
    // Where the machine has it, which may be another one than this.
    EXPECT_EQ(files->commands.front(),
              "install -D -m 755 /var/lib/sluice/tune/irqbalance-policy "
              "/etc/sluice/irqbalance-policy");
    // An ExecStart of its own replaces the unit's only after an empty one.
    EXPECT_NE(drop_in.find("ExecStart=\nExecStart=/usr/sbin/irqbalance"), std::string::npos);
}

}  // namespace
}  // namespace sluice
