#include "tune/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::IsEmpty;
using testing::SizeIs;

// A machine as a folder, and what is remembered of it.
class Bench {
  public:
    explicit Bench(const std::string& name) : interface_(interface_of(name)) {
        build_machine(name, root());
        before_ = content();
    }

    [[nodiscard]] std::string root() const { return folder_.path() + "/machine"; }
    [[nodiscard]] Machine machine() const { return Machine::captured(root()).value(); }
    [[nodiscard]] JournalFolder journals() const {
        return JournalFolder(folder_.path() + "/state");
    }
    [[nodiscard]] const std::string& interface() const { return interface_; }

    Result<ApplyReport> apply(ApplyOptions options = {}) const {
        return apply_tuning(machine(), journals(), interface_, options);
    }
    Result<RevertReport> revert() const {
        return revert_tuning(machine(), journals(), interface_, std::chrono::milliseconds{});
    }

    // All files to the byte.
    [[nodiscard]] std::map<std::string, std::string> content() const {
        std::map<std::string, std::string> files;
        for (const auto& entry : fs::recursive_directory_iterator(root()))
            if (entry.is_regular_file())
                files[entry.path().string()] = read_file(entry.path().string()).value();
        return files;
    }
    [[nodiscard]] bool is_as_before() const { return content() == before_; }

  private:
    static std::string interface_of(const std::string& name) {
        for (const TestMachine& machine : test_machines())
            if (name == machine.name)
                return machine.interface;
        return {};
    }

    TempFolder folder_;
    std::string interface_;
    std::map<std::string, std::string> before_;
};

// Dies at the change of this number, with the file already emptied: the worst moment.
[[noreturn]] void apply_and_die(const Bench& bench, size_t at) {
    const Machine machine = bench.machine();
    size_t number = 0;
    (void)bench.apply({.before_change = [&](const Change& change) {
        if (number++ != at)
            return;
        if (change.setting.kind == SettingKind::file)
            fs::resize_file(machine.path_of(change.setting.name), 0);
        (void)::kill(::getpid(), SIGKILL);
    }});
    ::_exit(0);
}

bool dies(const Bench& bench, size_t at) {
    const pid_t child = ::fork();
    if (child == 0)
        apply_and_die(bench, at);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFSIGNALED(status);
}

class EveryMachine : public testing::TestWithParam<const char*> {};

TEST_P(EveryMachine, IsAsBeforeAfterDeathAtAnyStep) {
    size_t steps = 0;
    for (;; ++steps) {
        const Bench bench(GetParam());
        if (!dies(bench, steps))
            break;
        const auto reverted = bench.revert();
        ASSERT_TRUE(reverted) << reverted.error().message;
        ASSERT_TRUE(bench.is_as_before()) << "killed at step " << steps;
        EXPECT_EQ(bench.revert().error().code, ErrorCode::not_found);
    }
    EXPECT_GE(steps, 3U);
}

TEST_P(EveryMachine, GoesOnAfterDeathWithANewApply) {
    const Bench bench(GetParam());
    ASSERT_TRUE(dies(bench, 2));
    const auto report = bench.apply();
    ASSERT_TRUE(report) << report.error().message << "; " << report.error().hint;
    EXPECT_TRUE(report->was_cut_off);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), bench.interface()).value(), IsEmpty());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

// One whose device changes, one with combined queues and many files, one over two cards.
INSTANTIATE_TEST_SUITE_P(Machines, EveryMachine,
                         testing::Values("virtio-one-queue", "virtio-eight-queues-four-cpus",
                                         "ena-eight-of-eight", "ixgbe-smt", "bond-of-two",
                                         "many-cpus", "uneven-spread"));

TEST(Apply, IsSeenByVerifyAndUndoneByRevert) {
    const Bench bench("ixgbe-smt");
    const auto report = bench.apply();
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->done.empty());
    EXPECT_THAT(report->refused, IsEmpty());
    EXPECT_FALSE(bench.is_as_before());
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Apply, TwiceStillLeadsBackToTheBeginning) {
    const Bench bench("ixgbe-smt");
    ASSERT_TRUE(bench.apply());
    const auto second = bench.apply({.wishes = {.profile = TuneProfile::flood}});
    ASSERT_TRUE(second);
    EXPECT_FALSE(second->done.empty());
    EXPECT_TRUE(bench.apply({.wishes = {.profile = TuneProfile::flood}})->done.empty());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Apply, UndoesAllWhereAPartFails) {
    const Bench bench("managed-irqs");
    std::string removed;
    const auto report = bench.apply({.before_change = [&](const Change& change) {
        // The third mask is gone when its turn comes, as with a queue that somebody took away.
        if (removed.empty() && change.setting.name.ends_with("tx-2/xps_cpus")) {
            removed = bench.machine().path_of(change.setting.name);
            fs::remove(removed);
        }
    }});
    ASSERT_FALSE(report);
    EXPECT_NE(report.error().hint.find("as it was before"), std::string::npos)
        << report.error().hint;
    std::ofstream(removed) << "0\n";
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Apply, IsRefusedInAContainerBeforeAnythingIsTouched) {
    const Bench bench("container");
    const auto report = bench.apply();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, ErrorCode::not_permitted);
    EXPECT_TRUE(bench.is_as_before());
    EXPECT_THAT(bench.journals().interfaces(), IsEmpty());
}

TEST(Apply, WaitsForNobodyWhoTunesToo) {
    const Bench bench("virtio-one-queue");
    const auto lock = bench.journals().lock({});
    ASSERT_TRUE(lock);
    const auto report = bench.apply();
    ASSERT_FALSE(report);
    EXPECT_TRUE(report.error().busy);
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Confirm, ComesTooLateAndAllIsUndone) {
    const Bench bench("virtio-one-queue");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::milliseconds(50)}));
    EXPECT_FALSE(bench.is_as_before());
    ASSERT_TRUE(undo_in_time(bench.machine(), bench.journals(), "eth0"));
    EXPECT_TRUE(bench.is_as_before());
    EXPECT_EQ(confirm_tuning(bench.journals(), "eth0").error().code, ErrorCode::not_found);
}

TEST(Confirm, KeepsIt) {
    const Bench bench("virtio-one-queue");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::seconds(60)}));
    // Nothing else may be built on it meanwhile.
    EXPECT_FALSE(bench.apply({.wishes = {.reserve_cores = 1}}));
    ASSERT_TRUE(confirm_tuning(bench.journals(), "eth0"));
    ASSERT_TRUE(undo_in_time(bench.machine(), bench.journals(), "eth0"));
    EXPECT_FALSE(bench.is_as_before());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Drift, IsFoundAndMended) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    const Setting moved{SettingKind::irq, "eth0-TxRx-2"};
    const Setting masked{SettingKind::file, "/sys/class/net/eth0/queues/tx-1/xps_cpus"};
    ASSERT_TRUE(bench.machine().set(moved, "0-3\n"));
    ASSERT_TRUE(bench.machine().set(masked, "f\n"));
    const auto drifts = drifted(bench.machine(), bench.journals(), "eth0");
    ASSERT_TRUE(drifts);
    ASSERT_THAT(*drifts, SizeIs(2));
    EXPECT_EQ((*drifts)[0].setting, moved);
    EXPECT_EQ((*drifts)[0].wanted, "2");
    EXPECT_EQ((*drifts)[1].setting, masked);
    ASSERT_TRUE(set_again(bench.machine(), *drifts));
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
}

TEST(Drift, IsNotHowTheKernelWritesAValue) {
    const Bench bench("many-cpus");
    ASSERT_TRUE(bench.apply());
    const Setting mask{SettingKind::file, "/sys/class/net/eth0/queues/tx-1/xps_cpus"};
    const std::string value = bench.machine().get(mask).value();
    ASSERT_TRUE(bench.machine().set(mask, "00000000," + value + '\n'));
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
}

TEST(Revert, LeavesAMachineAloneThatWasStartedAnew) {
    const Bench bench("virtio-one-queue");
    const Machine machine = bench.machine();
    const std::string boot = "/proc/sys/kernel/random/boot_id";
    fs::create_directories(fs::path(machine.path_of(boot)).parent_path());
    std::ofstream(machine.path_of(boot)) << "first\n";
    ASSERT_TRUE(bench.apply());
    std::ofstream(machine.path_of(boot)) << "second\n";
    const auto tuned = bench.content();
    EXPECT_FALSE(drifted(machine, bench.journals(), "eth0"));
    const auto reverted = bench.revert();
    ASSERT_TRUE(reverted);
    EXPECT_TRUE(reverted->was_rebooted);
    EXPECT_EQ(bench.content(), tuned);
}

TEST(Journal, IsReadBackToTheByte) {
    const TempFolder folder;
    const JournalFolder journals(folder.path());
    Journal journal{.interface = "eth0", .boot = "b", .entries = {}, .is_done = true};
    journal.deadline_ms = 12'345;
    journal.entries.push_back({{SettingKind::file, "/sys/a b"}, "x\\n\n\n", "1"});
    journal.entries.push_back({{SettingKind::irq, "eth0-TxRx-0"}, "", std::nullopt});
    journal.entries.push_back(
        {{SettingKind::device_part, "eth0", DevicePart::spread}, "0 1", "1 0"});
    ASSERT_TRUE(journals.write(journal));
    const auto read = journals.read("eth0");
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->boot, "b");
    EXPECT_TRUE(read->is_done);
    EXPECT_EQ(read->deadline_ms, 12'345U);
    ASSERT_THAT(read->entries, SizeIs(3));
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(read->entries[i].setting, journal.entries[i].setting);
        EXPECT_EQ(read->entries[i].before, journal.entries[i].before);
        EXPECT_EQ(read->entries[i].wanted, journal.entries[i].wanted);
    }
    EXPECT_THAT(journals.interfaces(), testing::ElementsAre("eth0"));
}

TEST(Journal, OfAnotherKindIsNotObeyed) {
    const TempFolder folder;
    const JournalFolder journals(folder.path());
    folder.write("tune/eth0.journal", "something else\n");
    EXPECT_FALSE(journals.read("eth0"));
    folder.write("tune/eth0.journal",
                 "sluice tune journal 1\ninterface\teth0\nbefore\tmood x\t1\n");
    const auto wrong = journals.read("eth0");
    ASSERT_FALSE(wrong);
    EXPECT_NE(wrong.error().message.find("eth0.journal:3"), std::string::npos)
        << wrong.error().message;
}

}  // namespace
}  // namespace sluice
