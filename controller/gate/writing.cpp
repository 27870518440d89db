// What writers beside the packet path need: one at a time, its clock, and its grace period.
#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <ctime>
#include <thread>

#include "gate/tables.h"

namespace sluice {

namespace {

using std::chrono::milliseconds;

// Updating an array of maps waits for all running programs, in the kernel's own words.
bool wait_by_map_update() {
    const UniqueFd inner(bpf_map_create(BPF_MAP_TYPE_ARRAY, "grace_inner", 4, 4, 1, nullptr));
    if (!inner)
        return false;
    LIBBPF_OPTS(bpf_map_create_opts, options, .inner_map_fd = static_cast<uint32_t>(inner.get()));
    const UniqueFd outer(
        bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "grace_outer", 4, 4, 1, &options));
    if (!outer)
        return false;
    const uint32_t key = 0;
    const int value = inner.get();
    return bpf_map_update_elem(outer.get(), &key, &value, BPF_ANY) == 0;
}

Error held_by_another(const std::string& pin_dir, int waited_ms) {
    Error error = failed(waited_ms == 0 ? "another program is writing to " + pin_dir
                                        : "another program has been writing to " + pin_dir +
                                              " for " + std::to_string(waited_ms) + " ms",
                         "try again, or see who holds it: fuser " + pin_dir);
    error.busy = true;
    return error;
}

}  // namespace

Result<WriterLock> WriterLock::take(const std::string& pin_dir, int timeout_ms) {
    UniqueFd fd(::open(pin_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd)
        return from_errno(errno, "lock " + pin_dir);
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(timeout_ms);
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
        const int error_number = errno;
        if (error_number != EWOULDBLOCK && error_number != EINTR)
            return from_errno(error_number, "lock " + pin_dir);
        if (std::chrono::steady_clock::now() >= deadline)
            return held_by_another(pin_dir, timeout_ms);
        std::this_thread::sleep_for(milliseconds(5));
    }
    return WriterLock(std::move(fd));
}

uint64_t gate_now_ns(const Tables& tables) {
    const uint64_t set = __atomic_load_n(&tables.settings().test_now_ns, __ATOMIC_RELAXED);
    if (set != 0)
        return set;
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(now.tv_nsec);
}

Status wait_for_packets_in_flight() {
    if (::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0)
        return {};
    // Kernels with full-dynticks CPUs refuse the system call.
    if (wait_by_map_update())
        return {};
    // No packet takes that long; only privileges or memory can lack here.
    std::this_thread::sleep_for(milliseconds(100));
    return {};
}

}  // namespace sluice
