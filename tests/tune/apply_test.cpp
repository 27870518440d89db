#include "tune/apply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "base/file.h"
#include "machines.h"
#include "temp_folder.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
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
[[noreturn]] void apply_and_die(const Bench& bench, size_t at, const TuneSettings& wishes) {
    const Machine machine = bench.machine();
    size_t number = 0;
    (void)bench.apply({.wishes = wishes, .before_change = [&](const Change& change) {
                           if (number++ != at)
                               return;
                           if (change.setting.kind == SettingKind::file)
                               fs::resize_file(machine.path_of(change.setting.name), 0);
                           (void)::kill(::getpid(), SIGKILL);
                       }});
    ::_exit(0);
}

bool dies(const Bench& bench, size_t at, const TuneSettings& wishes = {}) {
    const pid_t child = ::fork();
    if (child == 0)
        apply_and_die(bench, at, wishes);
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
    EXPECT_EQ(confirm_tuning(bench.machine(), bench.journals(), "eth0").error().code,
              ErrorCode::not_found);
}

TEST(Confirm, KeepsIt) {
    const Bench bench("virtio-one-queue");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::seconds(60)}));
    // Nothing else may be built on it meanwhile.
    EXPECT_FALSE(bench.apply({.wishes = {.reserve_cores = 1}}));
    ASSERT_TRUE(confirm_tuning(bench.machine(), bench.journals(), "eth0"));
    ASSERT_TRUE(undo_in_time(bench.machine(), bench.journals(), "eth0"));
    EXPECT_FALSE(bench.is_as_before());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

// Another plan than the first one's.
const TuneSettings kSecond = {.profile = TuneProfile::flood, .reserve_cores = 1};

TEST_P(EveryMachine, IsAsTheFirstApplyLeftItOnceASecondOneIsUndone) {
    const Bench bench(GetParam());
    ASSERT_TRUE(bench.apply());
    const auto first = bench.content();
    const auto second = bench.apply({.wishes = kSecond, .confirm = std::chrono::milliseconds(1)});
    ASSERT_TRUE(second) << second.error().message;
    if (second->done.empty())
        return;
    EXPECT_NE(bench.content(), first);
    ASSERT_TRUE(undo_in_time(bench.machine(), bench.journals(), bench.interface()));
    EXPECT_EQ(bench.content(), first);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), bench.interface()).value(), IsEmpty());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST_P(EveryMachine, LosesNotTheFirstApplyWhereASecondOneDies) {
    const Bench bench(GetParam());
    ASSERT_TRUE(bench.apply());
    const auto first = bench.content();
    if (!dies(bench, 1, kSecond))
        return;
    // The same plan as the first one: nothing is left to do once the second is undone.
    const auto third = bench.apply();
    ASSERT_TRUE(third) << third.error().message;
    EXPECT_TRUE(third->was_cut_off);
    EXPECT_THAT(third->done, IsEmpty());
    EXPECT_EQ(bench.content(), first);
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Confirm, OfASecondApplyKeepsIt) {
    const Bench bench("ixgbe-smt");
    ASSERT_TRUE(bench.apply());
    ASSERT_TRUE(bench.apply({.wishes = kSecond, .confirm = std::chrono::seconds(60)}));
    const auto second = bench.content();
    ASSERT_TRUE(confirm_tuning(bench.machine(), bench.journals(), "eth0"));
    EXPECT_FALSE(bench.journals().read("eth0")->is_second);
    EXPECT_EQ(bench.content(), second);
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Confirm, IsNotForAChangeOfAnEarlierBoot) {
    const Bench bench("virtio-one-queue");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::seconds(60)}));
    auto journal = bench.journals().read("eth0").value();
    journal.boot = "an earlier one";
    ASSERT_TRUE(bench.journals().write(journal));
    EXPECT_EQ(confirm_tuning(bench.machine(), bench.journals(), "eth0").error().code,
              ErrorCode::not_found);
}

TEST(Confirm, IsNotAskedForWhereNobodyWouldUndo) {
    const Bench bench("virtio-one-queue");
    const auto report = bench.apply({.confirm = std::chrono::seconds(60),
                                     .before_first = [] { return Status(failed("no process")); }});
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().message, "no process");
    EXPECT_TRUE(bench.is_as_before());
    EXPECT_THAT(bench.journals().interfaces(), IsEmpty());
}

TEST(Undo, WaitsForWhoeverTunesHoweverLongThatTakes) {
    const Bench bench("virtio-one-queue");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::milliseconds(1)}));
    auto lock = bench.journals().lock({});
    ASSERT_TRUE(lock);
    std::jthread undo(
        [&] { EXPECT_TRUE(undo_in_time(bench.machine(), bench.journals(), "eth0")); });
    // Longer than any other wait for the lock.
    std::this_thread::sleep_for(std::chrono::milliseconds(5'500));
    EXPECT_FALSE(bench.is_as_before());
    lock->reset();
    undo.join();
    EXPECT_TRUE(bench.is_as_before());
}

// With a program attached to it since.
void attach_native(const Bench& bench, bool attached = true) {
    const std::string path = bench.root() + "/ethtool/" + bench.interface();
    std::string text = read_file(path).value();
    const std::string from = attached ? "xdp = none" : "xdp = native";
    text.replace(text.find(from), from.size(), attached ? "xdp = native" : "xdp = none");
    std::ofstream(path) << text;
}

TEST(Revert, ChangesNothingWhereXdpHoldsTheNumberOfQueues) {
    const Bench bench("ixgbe-smt");
    ASSERT_TRUE(bench.apply());
    attach_native(bench);
    const auto tuned = bench.content();
    const auto refused = bench.revert();
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().hint, HasSubstr("sluicectl detach eth0"));
    EXPECT_EQ(bench.content(), tuned);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
    attach_native(bench, false);
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Undo, IsListedWhereXdpHoldsTheNumberOfQueues) {
    const Bench bench("ixgbe-smt");
    ASSERT_TRUE(bench.apply({.confirm = std::chrono::milliseconds(1)}));
    attach_native(bench);
    const auto tuned = bench.content();
    const Status undone = undo_if_overdue(bench.machine(), bench.journals(), "eth0", {});
    ASSERT_FALSE(undone);
    EXPECT_TRUE(undone.error().busy) << "another try may do";
    EXPECT_EQ(bench.content(), tuned);
    const auto drifts = drifted(bench.machine(), bench.journals(), "eth0");
    ASSERT_FALSE(drifts);
    EXPECT_THAT(drifts.error().message, HasSubstr("not confirmed in time"));
    EXPECT_THAT(drifts.error().hint, HasSubstr("sluicectl detach eth0"));
    attach_native(bench, false);
    ASSERT_TRUE(undo_if_overdue(bench.machine(), bench.journals(), "eth0", {}));
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Revert, MakesWayForFewerQueuesBelowATableThatWasSetByHand) {
    const Bench bench("table-set-by-hand");
    const Machine machine = bench.machine();
    const Setting spread{SettingKind::device_part, "eth0", DevicePart::spread};
    const Setting channels{SettingKind::device_part, "eth0", DevicePart::channels};
    ASSERT_TRUE(machine.set(spread, "default 2"));
    ASSERT_TRUE(machine.set(channels, "combined 2"));
    const auto before = bench.content();
    ASSERT_TRUE(bench.apply());
    ASSERT_EQ(machine.get(channels).value(), "rx 0 tx 0 combined 4");
    ASSERT_TRUE(machine.set(spread, "3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3"));
    const auto reverted = bench.revert();
    ASSERT_TRUE(reverted) << reverted.error().message;
    EXPECT_EQ(bench.content(), before);
}

// A driver that says yes to whatever coalescing, and does nothing.
class Forgetful : public Ethtool {
  public:
    explicit Forgetful(const std::string& root) : cards_(file_ethtool(root + "/ethtool")) {}

    Result<DeviceFacts> read(const std::string& interface) override {
        return cards_->read(interface);
    }
    Status set(const std::string& interface, DevicePart part, std::string_view text) override {
        return part == DevicePart::coalescing ? Status() : cards_->set(interface, part, text);
    }
    std::map<std::string, uint64_t> counters(const std::string& interface) override {
        return cards_->counters(interface);
    }

  private:
    std::unique_ptr<Ethtool> cards_;
};

TEST(Apply, AsksNotAgainForWhatADriverTookAndDidNotDo) {
    const Bench bench("ixgbe-smt");
    const Machine machine =
        Machine::captured(bench.root(), std::make_unique<Forgetful>(bench.root())).value();
    const auto report = apply_tuning(machine, bench.journals(), "eth0", {});
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_FALSE(report->done.empty());
    ASSERT_THAT(report->refused, SizeIs(1));
    EXPECT_EQ(report->refused[0].what, "eth0 coalescing");
    EXPECT_THAT(report->refused[0].reason, HasSubstr("not taken by the driver"));

    const Plan plan = make_plan(look_at(machine, bench.journals(), "eth0", {}).value());
    EXPECT_TRUE(plan.is_done()) << plan.changes.front().what;
    EXPECT_THAT(plan.notes, Contains(HasSubstr("taken and not done")));
    const auto again = apply_tuning(machine, bench.journals(), "eth0", {});
    ASSERT_TRUE(again);
    EXPECT_THAT(again->done, IsEmpty());
    EXPECT_THAT(again->refused, IsEmpty());
    EXPECT_THAT(drifted(machine, bench.journals(), "eth0").value(), IsEmpty());
    // Another value may do.
    const TuneSettings flood{.profile = TuneProfile::flood};
    EXPECT_FALSE(make_plan(look_at(machine, bench.journals(), "eth0", flood).value()).is_done());
    ASSERT_TRUE(bench.revert());
    EXPECT_TRUE(bench.is_as_before());
}

const Setting kMoved = irq_setting("eth0", "eth0-TxRx-2");

// That it was moved is told, mended, and undone.
void expect_watched(const Bench& bench, const Setting& setting, const std::string& right) {
    ASSERT_EQ(bench.machine().get(setting).value(), right);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
    ASSERT_TRUE(bench.machine().set(setting, "0-3\n"));
    const auto drifts = drifted(bench.machine(), bench.journals(), "eth0");
    ASSERT_TRUE(drifts);
    ASSERT_THAT(*drifts, SizeIs(1));
    EXPECT_EQ(drifts->front().setting, setting);
    EXPECT_EQ(set_again(bench.machine(), bench.journals(), "eth0")->set, 1U);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
}

TEST(Drift, OfWhatWasRightBeforeIsSeen) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.machine().set(kMoved, "2\n"));
    const auto before = bench.content();
    ASSERT_TRUE(bench.apply());
    expect_watched(bench, kMoved, "2\n");
    ASSERT_TRUE(bench.revert());
    EXPECT_EQ(bench.content().size(), before.size());
    EXPECT_TRUE(is_same_value(kMoved, "2", bench.machine().get(kMoved).value()));
}

TEST(Drift, OfWhatIsRightAtTheSecondLookIsSeen) {
    const Bench bench("virtio-eight-queues-four-cpus");
    const Setting irq = irq_setting("eth0", "virtio0-input.1");
    ASSERT_TRUE(bench.apply({.before_change = [&](const Change& change) {
        // As drivers do, which place interrupts themselves when channels change.
        if (change.setting.part == DevicePart::channels && is_of_device(change)) {
            EXPECT_TRUE(bench.machine().set(irq, "1\n"));
        }
        EXPECT_NE(change.setting, irq);
    }}));
    expect_watched(bench, irq, "1\n");
}

TEST(Drift, IsSeenWhereAllWasRight) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    ASSERT_TRUE(bench.journals().remove("eth0"));
    const auto right = bench.content();
    const auto report = bench.apply({.confirm = std::chrono::seconds(60)});
    ASSERT_TRUE(report);
    EXPECT_THAT(report->done, IsEmpty());
    EXPECT_FALSE(bench.journals().read("eth0")->deadline_ms) << "there is nothing to confirm";
    expect_watched(bench, kMoved, "2");
    ASSERT_TRUE(bench.revert());
    EXPECT_EQ(bench.content(), right);
}

TEST(Drift, CountsNotTheQueuesThatVirtioAddsForXdp) {
    const Bench bench("virtio-eight-queues-four-cpus");
    ASSERT_TRUE(bench.apply());
    const Setting channels{SettingKind::device_part, "eth0", DevicePart::channels};
    ASSERT_EQ(bench.machine().get(channels).value(), "rx 0 tx 0 combined 4");
    ASSERT_TRUE(bench.machine().set(channels, "combined 8"));
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), SizeIs(1));
    attach_native(bench);
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
}

TEST(Drift, IsNotMendedWhileSomebodyTunes) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    const Setting moved = irq_setting("eth0", "eth0-TxRx-2");
    ASSERT_TRUE(bench.machine().set(moved, "0-3\n"));
    const auto lock = bench.journals().lock({});
    ASSERT_TRUE(lock);
    const auto mended = set_again(bench.machine(), bench.journals(), "eth0");
    ASSERT_FALSE(mended);
    EXPECT_TRUE(mended.error().busy);
    EXPECT_EQ(bench.machine().get(moved).value(), "0-3\n");
}

TEST(Drift, IsNotMendedOnceItWasReverted) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    ASSERT_TRUE(bench.revert());
    EXPECT_EQ(set_again(bench.machine(), bench.journals(), "eth0").error().code,
              ErrorCode::not_found);
    EXPECT_TRUE(bench.is_as_before());
}

TEST(Drift, ThatIsRefusedCountsAsSuch) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    ASSERT_TRUE(bench.machine().set(irq_setting("eth0", "eth0-TxRx-2"), "0-3\n"));
    // A queue that somebody took away.
    fs::remove(bench.machine().path_of("/sys/class/net/eth0/queues/tx-1/xps_cpus"));
    const auto mended = set_again(bench.machine(), bench.journals(), "eth0");
    ASSERT_TRUE(mended);
    EXPECT_EQ(mended->set, 1U);
    EXPECT_THAT(mended->refused, SizeIs(1));
}

TEST(Interrupts, AreThoseOfTheirCardWhereTwoHaveOneName) {
    const TempFolder folder;
    build_machine("bond-of-two", folder.path());
    std::string lines = read_file(folder.path() + "/proc/interrupts").value();
    for (size_t at = lines.find("eth0-TxRx"); at != std::string::npos;
         at = lines.find("eth0-TxRx", at))
        lines.replace(at, 4, "eth1");
    folder.write("proc/interrupts", lines);
    const Machine machine = Machine::captured(folder.path()).value();
    ASSERT_TRUE(machine.set(irq_setting("eth1", "eth1-TxRx-2"), "9"));
    EXPECT_EQ(machine.text("/proc/irq/52/smp_affinity_list"), "9");
    EXPECT_EQ(machine.text("/proc/irq/42/smp_affinity_list"), "0-15");
}

TEST(Drift, IsFoundAndMended) {
    const Bench bench("irqbalance-runs");
    ASSERT_TRUE(bench.apply());
    const Setting moved = irq_setting("eth0", "eth0-TxRx-2");
    const Setting masked{SettingKind::file, "/sys/class/net/eth0/queues/tx-1/xps_cpus"};
    ASSERT_TRUE(bench.machine().set(moved, "0-3\n"));
    ASSERT_TRUE(bench.machine().set(masked, "f\n"));
    const auto drifts = drifted(bench.machine(), bench.journals(), "eth0");
    ASSERT_TRUE(drifts);
    ASSERT_THAT(*drifts, SizeIs(2));
    EXPECT_EQ((*drifts)[0].setting, moved);
    EXPECT_EQ((*drifts)[0].wanted, "2");
    EXPECT_EQ((*drifts)[1].setting, masked);
    const auto mended = set_again(bench.machine(), bench.journals(), "eth0");
    ASSERT_TRUE(mended) << mended.error().message;
    EXPECT_EQ(mended->set, 2U);
    EXPECT_THAT(mended->refused, IsEmpty());
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
    EXPECT_FALSE(set_again(machine, bench.journals(), "eth0"));
    const auto reverted = bench.revert();
    ASSERT_TRUE(reverted);
    EXPECT_TRUE(reverted->was_rebooted);
    EXPECT_EQ(bench.content(), tuned);
}

TEST(Apply, SaysThatABootHasUndoneTheOneBefore) {
    const Bench bench("ixgbe-smt");
    ASSERT_TRUE(bench.apply());
    auto journal = bench.journals().read("eth0").value();
    journal.boot = "an earlier one";
    ASSERT_TRUE(bench.journals().write(journal));
    const auto tuned = bench.content();
    const auto report = bench.apply();
    ASSERT_TRUE(report);
    EXPECT_THAT(report->notes, Contains(HasSubstr("started anew")));
    EXPECT_EQ(bench.content(), tuned);
    // What was found as it should be is watched from now on.
    EXPECT_EQ(bench.journals().read("eth0")->boot, bench.machine().boot());
    EXPECT_THAT(drifted(bench.machine(), bench.journals(), "eth0").value(), IsEmpty());
}

TEST(Journal, IsReadBackToTheByte) {
    const TempFolder folder;
    const JournalFolder journals(folder.path());
    Journal journal{.interface = "eth0", .boot = "b", .entries = {}, .is_done = true};
    journal.deadline_ms = 12'345;
    journal.since_ms = 77;
    journal.is_second = true;
    journal.entries.push_back(
        {{SettingKind::file, "/sys/a b"}, "x\\n\n\n", "1", JournalEntry::Kept{"7\n", "8"}});
    journal.entries.push_back(
        {irq_setting("eth0", "eth0-TxRx-0"), "", std::nullopt, JournalEntry::Kept{"5"}});
    journal.entries.push_back(
        {{SettingKind::device_part, "eth0", DevicePart::spread}, "0 1", "1 0"});
    journal.entries[2].not_taken = "2 2";
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
        ASSERT_EQ(read->entries[i].kept.has_value(), journal.entries[i].kept.has_value());
    }
    EXPECT_FALSE(read->entries[0].not_taken);
    EXPECT_EQ(read->entries[2].not_taken, "2 2");
    EXPECT_EQ(read->since_ms, 77U);
    EXPECT_TRUE(read->is_second);
    EXPECT_EQ(read->entries[0].kept->value, "7\n");
    EXPECT_EQ(read->entries[0].kept->wanted, "8");
    EXPECT_EQ(read->entries[1].kept->value, "5");
    EXPECT_FALSE(read->entries[1].kept->wanted);
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
