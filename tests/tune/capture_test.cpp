#include "tune/capture.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"
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
    const auto input = look_at(machine, interface, {});
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
        const auto input = look_at(Machine::captured(copy).value(), name, {});
        EXPECT_TRUE(input) << input.error().message;
    }
}

TEST(Capture, OverwritesNothing) {
    const TempFolder folder;
    const Status captured = capture(Machine::live(), folder.path());
    ASSERT_FALSE(captured);
    EXPECT_FALSE(captured.error().hint.empty());
}

}  // namespace
}  // namespace sluice
