#include "gate/tables.h"

#include <bpf/bpf.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "test_gate.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

class TablesTest : public GateTest {};

TEST_F(TablesTest, AreCreatedWithSafeSettings) {
    make_tables(small_sizes());
    const auto& gate = tables_->settings();
    EXPECT_EQ(gate.abi_version, SLUICE_ABI_VERSION);
    EXPECT_EQ(sluice_switch_value(gate.mode, 1), unsigned{SLUICE_MODE_OBSERVE});
    EXPECT_EQ(gate.next_version, 1U);
    EXPECT_EQ(gate.ban4_view, 1023U);
    EXPECT_EQ(gate.rule_view, 1023U);
    EXPECT_EQ(gate.seed.high & gate.seed.low & gate.seed.mix & gate.seed.salt & 1, 1U);
    EXPECT_NE(gate.seed.high, gate.seed.low);
    EXPECT_GE(gate.tick_ns, 1'000'000U);
    EXPECT_EQ(gate.lag_ns, 2 * gate.tick_ns);
    EXPECT_EQ(tables_->ban4_lines.size(), 2U * small_sizes().ban4_lines);

    struct stat info {};
    ASSERT_EQ(::stat(pin_dir_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST_F(TablesTest, AreAdoptedAsTheyWere) {
    auto sizes = small_sizes();
    sizes.services = 7;
    sizes.interfaces = 3;
    sizes.cpus = 2;
    make_tables(sizes);
    const auto seed = tables_->seed();
    tables_->sources[5].word[3] = 42;
    tables_.reset();

    auto opened = Tables::open(pin_dir_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->sizes, sizes);
    EXPECT_EQ(opened->seed().mix, seed.mix);
    EXPECT_EQ(opened->sources[5].word[3], 42U);
}

TEST_F(TablesTest, EverySetGetsItsOwnSeed) {
    make_tables(small_sizes());
    const auto first = tables_->seed();
    make_tables(small_sizes());
    EXPECT_NE(tables_->seed().mix, first.mix);
}

TEST_F(TablesTest, NothingThereIsNotFound) {
    const auto opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::not_found);
}

TEST_F(TablesTest, AMissingPinIsNamed) {
    make_tables(small_sizes());
    tables_.reset();
    fs::remove(pin_dir_ + "/budgets");
    auto opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::failed);
    EXPECT_NE(opened.error().message.find(pin_dir_ + "/budgets"), std::string::npos);

    // Pinned last: what is there without it was never complete.
    fs::remove(pin_dir_ + "/gate");
    opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::not_found);
}

TEST_F(TablesTest, AnotherVersionIsRefused) {
    make_tables(small_sizes());
    tables_->settings().abi_version = SLUICE_ABI_VERSION + 1;
    auto opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("ABI version " + std::to_string(SLUICE_ABI_VERSION + 1)),
              std::string::npos);
    EXPECT_NE(opened.error().hint.find("detach"), std::string::npos);

    tables_->settings().abi_version = SLUICE_ABI_VERSION;
    tables_->settings().layout ^= 1;
    opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("another layout"), std::string::npos);
}

TEST_F(TablesTest, ATableOfAnotherShapeIsRefused) {
    make_tables(small_sizes());
    fs::remove(pin_dir_ + "/notes");
    const UniqueFd other(bpf_map_create(BPF_MAP_TYPE_ARRAY, "notes", 4, 8, 3, nullptr));
    ASSERT_EQ(bpf_obj_pin(other.get(), (pin_dir_ + "/notes").c_str()), 0);
    const auto opened = Tables::open(pin_dir_);
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("notes"), std::string::npos);
}

TEST_F(TablesTest, AreNotCreatedTwice) {
    make_tables(small_sizes());
    const auto seed = tables_->seed();
    const auto again = Tables::create(pin_dir_, small_sizes());
    ASSERT_FALSE(again);
    EXPECT_NE(again.error().message.find("already"), std::string::npos);
    const auto opened = Tables::open(pin_dir_);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->seed().mix, seed.mix);
}

TEST_F(TablesTest, FailureLeavesNothingBehind) {
    auto sizes = small_sizes();
    sizes.ban4_lines = 1U << 30;  // 128 GiB
    const auto made = Tables::create(pin_dir_, sizes);
    EXPECT_FALSE(made);
    EXPECT_FALSE(fs::exists(pin_dir_));
}

TEST_F(TablesTest, AreOnABpfFileSystemOnly) {
    const std::string elsewhere = "/tmp/sluice-test-" + std::to_string(::getpid());
    const auto made = Tables::create(elsewhere, small_sizes());
    ASSERT_FALSE(made);
    EXPECT_NE(made.error().hint.find("mount"), std::string::npos);
    EXPECT_FALSE(fs::exists(elsewhere));
}

TEST_F(TablesTest, SenselessSizesAreRefused) {
    auto sizes = small_sizes();
    sizes.source_sets = 1000;
    auto made = Tables::create(pin_dir_, sizes);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::usage);
    sizes = small_sizes();
    sizes.services = 0;
    EXPECT_FALSE(Tables::create(pin_dir_, sizes));
}

TEST_F(TablesTest, MapsCarryTypesForBpftool) {
    make_tables(small_sizes());
    for (const int fd : {tables_->gate.fd(), tables_->listing.get(), tables_->bans_manual.get()}) {
        bpf_map_info info{};
        uint32_t length = sizeof(info);
        ASSERT_EQ(bpf_obj_get_info_by_fd(fd, &info, &length), 0);
        EXPECT_NE(info.btf_id, 0U);
        EXPECT_NE(info.btf_value_type_id, 0U);
    }
}

TEST_F(TablesTest, OnlyOneWriterAtATime) {
    make_tables(small_sizes());
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        const auto lock = WriterLock::take(pin_dir_);
        char ready = lock ? 'y' : 'n';
        (void)!::write(pipe[1], &ready, 1);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        ::_exit(0);
    }
    char ready = 0;
    ASSERT_EQ(::read(pipe[0], &ready, 1), 1);
    ASSERT_EQ(ready, 'y');
    const auto refused = WriterLock::take(pin_dir_, 50);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find(pin_dir_), std::string::npos);
    const auto waited = WriterLock::take(pin_dir_, 5000);
    EXPECT_TRUE(waited);
    ::waitpid(child, nullptr, 0);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(TablesTest, TheClockIsTheKernelsUnlessSet) {
    make_tables(small_sizes());
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    EXPECT_GE(gate_now_ns(*tables_), static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U);
    tables_->settings().test_now_ns = 77;
    EXPECT_EQ(gate_now_ns(*tables_), 77U);
}

TEST_F(TablesTest, TheGracePeriodEnds) {
    EXPECT_TRUE(wait_for_packets_in_flight());
}

TEST(TableSizesTest, MemoryGrowsWithWhatIsAsked) {
    TableSizes sizes;
    const uint64_t before = sizes.memory();
    sizes.source_sets *= 2;
    EXPECT_EQ(sizes.memory() - before, 64ULL << 15);
}

}  // namespace

}  // namespace sluice
