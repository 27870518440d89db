// The plans of known machines against plans/NAME.txt, where the lines with # say why each is right.
// UPDATE_GOLDEN=1 writes the plans anew and keeps those lines, for `git diff` to judge.
#include "tune/plan.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"
#include "tune/apply.h"

namespace sluice {
namespace {

const std::string kPlans = TUNE_PLANS;

// Those of `tune plan` that the machines use.
TuneSettings wishes_of(const std::string& options) {
    TuneSettings wishes;
    std::istringstream words(options);
    for (std::string name, value; words >> name >> value;) {
        if (name == "--reserve-cores")
            wishes.reserve_cores = static_cast<unsigned>(std::stoul(value));
        else if (value == "flood")
            wishes.profile = TuneProfile::flood;
        else if (value == "latency")
            wishes.profile = TuneProfile::latency;
    }
    return wishes;
}

std::string text_of(const Plan& plan) {
    std::ostringstream text;
    for (const PortPlan& port : plan.ports)
        text << port.name << " (" << port.driver << "): queues " << port.queues << " → "
             << port.queues_wanted << ", cores near it " << port.cores << '\n';
    for (const Change& change : plan.changes)
        text << change.what << ": " << change.before << " → " << change.after << ". " << change.why
             << '\n';
    for (const std::string& caution : plan.cautions)
        text << "careful: " << caution << '\n';
    for (const std::string& note : plan.notes)
        text << "note: " << note << '\n';
    for (const std::string& hindrance : plan.hindrances)
        text << "not possible here: " << hindrance << '\n';
    return text.str();
}

struct Golden {
    std::string reason, plan;
};

Golden golden_of(const std::string& file) {
    Golden golden;
    const auto text = read_file(file);
    std::istringstream lines(text ? *text : std::string());
    for (std::string line; std::getline(lines, line);)
        (line.starts_with('#') ? golden.reason : golden.plan) += line + '\n';
    return golden;
}

Plan plan_of(const TestMachine& known) {
    const TempFolder folder;
    build_machine(known.name, folder.path());
    const auto input =
        look_at(Machine::captured(folder.path()).value(), JournalFolder(folder.path() + "/state"),
                known.interface, wishes_of(known.options));
    EXPECT_TRUE(input) << input.error().message;
    return make_plan(*input);
}

TEST(Plans, AreThoseThatWereReviewed) {
    for (const TestMachine& known : test_machines()) {
        const std::string file = kPlans + '/' + known.name + ".txt";
        const Golden golden = golden_of(file);
        const std::string plan = text_of(plan_of(known));
        if (std::getenv("UPDATE_GOLDEN") != nullptr) {
            std::ofstream(file) << golden.reason << plan;
            continue;
        }
        EXPECT_EQ(plan, golden.plan) << known.name;
        EXPECT_FALSE(golden.reason.empty()) << file << ": says nowhere why it is right";
    }
}

CpuSet cpus_of(const Plan& plan) {
    CpuSet cpus;
    for (const QueuePlace& place : plan.ports.front().places)
        cpus.insert(place.cpu);
    return cpus;
}

// Not as a bond: each by itself.
TEST(Plans, OfCardsThatAreTunedOneByOneTakeDifferentCores) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path() + "/machine");
    const Machine machine = Machine::captured(folder.path() + "/machine").value();
    const JournalFolder journals(folder.path() + "/state");
    const auto planned = [&](const std::string& interface) {
        return make_plan(look_at(machine, journals, interface, {}).value());
    };
    ASSERT_TRUE(apply_tuning(machine, journals, "eth0", {}));
    EXPECT_EQ(cpus_of(planned("eth1")), (CpuSet{4, 5, 6, 7}));
    ASSERT_TRUE(apply_tuning(machine, journals, "eth1", {}));
    // Whoever came first stays where he is: a second apply finds nothing to do.
    EXPECT_EQ(cpus_of(planned("eth0")), (CpuSet{0, 1, 2, 3}));
    for (const char* interface : {"eth0", "eth1"}) {
        const auto again = apply_tuning(machine, journals, interface, {});
        ASSERT_TRUE(again) << again.error().message;
        for (const Change& change : again->done)
            EXPECT_NE(change.setting.kind, SettingKind::irq) << change.what;
    }
    // Their bond has both, so that neither is somebody else's.
    EXPECT_EQ(cpus_of(planned("bond0")), (CpuSet{0, 1, 2, 3}));
}

// What is planned for the coalescing of a card that can do so much; empty for nothing.
std::string coalescing_planned(TuneProfile profile, const std::string& driver,
                               std::optional<bool> can_adapt,
                               std::optional<std::set<VirtioFeature>> virtio = {}) {
    const TempFolder folder;
    build_machine("ixgbe-smt", folder.path());
    PlanInput input = look_at(Machine::captured(folder.path()).value(),
                              JournalFolder(folder.path() + "/state"), "eth0", {.profile = profile})
                          .value();
    Port& port = input.ports.front();
    port.device.driver = driver;
    port.device.coalescing = Coalescing{};
    port.device.can_adapt = can_adapt;
    port.virtio = std::move(virtio);
    for (const Change& change : make_plan(input).changes)
        if (change.setting.part == DevicePart::coalescing && is_of_device(change))
            return change.value;
    return {};
}

TEST(Plans, AskForCoalescingOnlyWhereItCanBeHad) {
    const auto balanced = TuneProfile::balanced, flood = TuneProfile::flood;
    EXPECT_EQ(coalescing_planned(balanced, "ixgbe", {}), "adaptive-rx on");
    EXPECT_EQ(coalescing_planned(balanced, "ixgbe", true), "adaptive-rx on");
    EXPECT_EQ(coalescing_planned(balanced, "ixgbe", false), "");
    EXPECT_EQ(coalescing_planned(flood, "ixgbe", false), "adaptive-rx off rx-usecs 64");
    // The driver says that it can adapt, whatever was agreed upon with the host.
    using enum VirtioFeature;
    EXPECT_EQ(coalescing_planned(balanced, "virtio_net", true, {{}}), "");
    EXPECT_EQ(coalescing_planned(flood, "virtio_net", true, {{}}), "");
    EXPECT_EQ(coalescing_planned(balanced, "virtio_net", true, {{coalescing}}), "");
    EXPECT_EQ(coalescing_planned(flood, "virtio_net", true, {{coalescing}}),
              "adaptive-rx off rx-usecs 64");
    EXPECT_EQ(coalescing_planned(balanced, "virtio_net", true, {{queue_coalescing}}),
              "adaptive-rx on");
}

TEST(Plans, CountNoCardOfAnEarlierBoot) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path() + "/machine");
    const Machine machine = Machine::captured(folder.path() + "/machine").value();
    const JournalFolder journals(folder.path() + "/state");
    ASSERT_TRUE(apply_tuning(machine, journals, "eth0", {}));
    auto journal = journals.read("eth0").value();
    journal.boot = "an earlier one";
    ASSERT_TRUE(journals.write(journal));
    EXPECT_EQ(look_at(machine, journals, "eth1", {}).value().taken, CpuSet());
}

TEST(Plans, BelongToMachines) {
    std::set<std::string> machines, files;
    for (const TestMachine& known : test_machines())
        machines.insert(known.name);
    for (const auto& entry : std::filesystem::directory_iterator(kPlans))
        files.insert(entry.path().stem().string());
    EXPECT_EQ(files, machines);
}

}  // namespace
}  // namespace sluice
