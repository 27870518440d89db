#include "test_gate.h"

#include <bpf/bpf.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace sluice {

namespace {

constexpr const char* kBpfFs = "/sys/fs/bpf";
constexpr uint32_t kBpfFsMagic = 0xcafe4a11;

}  // namespace

std::string next_pin_dir() {
    static std::atomic<int> count = 0;
    return std::string(kBpfFs) + "/sluice-test-" + std::to_string(::getpid()) + "-" +
           std::to_string(count++);
}

std::string bpf_obstacle() {
    const UniqueFd map(bpf_map_create(BPF_MAP_TYPE_ARRAY, "probe", 4, 8, 1, nullptr));
    if (!map)
        return std::string("cannot create BPF maps: ") + std::strerror(errno);
    struct statfs info {};
    const auto mounted = [&] {
        return ::statfs(kBpfFs, &info) == 0 && static_cast<uint32_t>(info.f_type) == kBpfFsMagic;
    };
    if (!mounted() && (::mount("bpf", kBpfFs, "bpf", 0, nullptr) != 0 || !mounted()))
        return std::string("no BPF file system on ") + kBpfFs;
    return {};
}

TableSizes small_sizes() {
    TableSizes sizes;
    sizes.source_sets = 64;
    sizes.window_sets = 16;
    sizes.services = 4;
    sizes.interfaces = 2;
    sizes.ban4_lines = 1U << 12;
    sizes.rule_lines = 1U << 12;
    sizes.listing = 1U << 16;
    return sizes;
}

void GateTest::SetUp() {
    if (const auto why = bpf_obstacle(); !why.empty())
        GTEST_SKIP() << why;
    pin_dir_ = next_pin_dir();
}

void GateTest::TearDown() {
    tables_.reset();
    if (pin_dir_.empty())
        return;
    std::error_code ignored;
    std::filesystem::remove_all(pin_dir_, ignored);
}

void GateTest::make_tables(const TableSizes& sizes) {
    tables_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(pin_dir_, ignored);
    auto made = Tables::create(pin_dir_, sizes);
    ASSERT_TRUE(made) << made.error().message;
    tables_.emplace(std::move(*made));
}

}  // namespace sluice
