#include "tune/capture.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"
#include "tree.h"
#include "tune/plan.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::string all_text(const std::string& folder) {
    std::string text;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
        text += entry.path().string() + '\n';
        if (entry.is_regular_file())
            text += read_file(entry.path().string()).value();
    }
    return text;
}

std::vector<std::string> planned(const Machine& machine, const std::string& interface) {
    const auto input = look_at(machine, JournalFolder("/nowhere"), interface, {});
    EXPECT_TRUE(input) << input.error().message;
    const Plan plan = make_plan(*input);
    std::vector<std::string> lines = plan.notes;
    for (const Change& change : plan.changes)
        lines.push_back(change.setting.to_string() + ": " + change.before + " → " + change.value);
    return lines;
}

TEST(Capture, OfAnyMachineIsPlannedLikeTheMachine) {
    for (const TestMachine& known : test_machines()) {
        const TempFolder folder;
        build_machine(known.name, folder.path() + "/machine");
        const auto machine = Machine::captured(folder.path() + "/machine");
        ASSERT_TRUE(machine);
        const std::string copy = folder.path() + "/copy";
        ASSERT_TRUE(capture(*machine, copy));
        const auto captured = Machine::captured(copy);
        ASSERT_TRUE(captured) << captured.error().message;
        EXPECT_EQ(planned(*captured, known.interface), planned(*machine, known.interface))
            << known.name;
    }
}

TEST(Capture, HasNoAddressAndNoOtherProgram) {
    const TempFolder folder;
    build_machine("irqbalance-runs", folder.path() + "/machine");
    folder.write("machine/sys/class/net/eth0/address", "02:00:5e:00:53:01\n");
    folder.write("machine/proc/self/mounts",
                 "fileserver.example:/home /home nfs4 rw,addr=192.0.2.9 0 0\n"
                 "sysfs /sys sysfs rw,nosuid 0 0\n");
    const std::string copy = folder.path() + "/copy";
    ASSERT_TRUE(capture(Machine::captured(folder.path() + "/machine").value(), copy));
    const std::string text = all_text(copy);
    for (const char* secret : {"02:00:5e", "192.0.2.9", "fileserver", "sshd"})
        EXPECT_EQ(text.find(secret), std::string::npos) << secret;
    EXPECT_NE(text.find("irqbalance"), std::string::npos);
}

TEST(Capture, OfThisMachineCanBeReadAndHasNoneOfItsAddresses) {
    const TempFolder folder;
    const std::string copy = folder.path() + "/copy";
    ASSERT_TRUE(capture(Machine::live(), copy));
    const std::string text = all_text(copy);
    for (const std::string& name : Machine::live().names_in("/sys/class/net")) {
        const auto address = Machine::live().text("/sys/class/net/" + name + "/address");
        if (address && !address->empty() && !address->starts_with("00:00:00")) {
            EXPECT_EQ(text.find(*address), std::string::npos) << name;
        }
        const auto input =
            look_at(Machine::captured(copy).value(), JournalFolder("/nowhere"), name, {});
        EXPECT_TRUE(input) << input.error().message;
    }
}

TEST(Capture, HidesTheAddressInANameAndIsPlannedAllTheSame) {
    const TempFolder folder;
    const std::string name = "enx02005e005301";
    {
        Tree tree(folder.path() + "/machine");
        tree.cpus("0-1", "0-1");
        DeviceFacts facts;
        facts.driver = "r8152";
        tree.card(name, -1, facts, {.receive = 2, .send = 2});
        for (unsigned queue = 0; queue < 2; ++queue)
            tree.irq(name, 30 + queue, name + "-TxRx-" + std::to_string(queue), "0-1");
        tree.lower(name + ".5", name);
    }
    const std::string copy = folder.path() + "/copy";
    ASSERT_TRUE(capture(Machine::captured(folder.path() + "/machine").value(), copy));
    EXPECT_EQ(all_text(copy).find("02005e005301"), std::string::npos);
    const Machine captured = Machine::captured(copy).value();
    EXPECT_EQ(ports_below(captured, "enxmac1.5").value(), std::vector<std::string>{"enxmac1"});
    EXPECT_EQ(look_at_port(captured, "enxmac1").value().irqs.size(), 2U);
}

TEST(Capture, OverwritesNothing) {
    const TempFolder folder;
    const Status captured = capture(Machine::live(), folder.path());
    ASSERT_FALSE(captured);
    EXPECT_FALSE(captured.error().hint.empty());
}

}  // namespace
}  // namespace sluice
