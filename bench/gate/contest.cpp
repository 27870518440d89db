#include "contest.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "bare.skel.h"
#include "gate/counters.h"
#include "sluice.skel.h"

namespace sluice::bench {

namespace {

constexpr const char* kReceiver = "edge0";

// One queue and one CPU: what is sent is received before the next batch is made.
constexpr const char* kMakeVeth =
    "ip link add edge0 address 02:00:00:00:00:01 numrxqueues 1 numtxqueues 1 "
    "type veth peer name world0 address 02:00:00:00:00:02 numrxqueues 1 numtxqueues 1 && "
    "ip link set edge0 up && ip link set world0 up";

Status make_network() {
    if (::unshare(CLONE_NEWNET) != 0)
        return from_errno(errno, "make a network namespace");
    if (std::system(kMakeVeth) != 0)
        return failed("cannot make a veth pair", "is iproute2 installed?");
    return {};
}

Status pin_to(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (::sched_setaffinity(0, sizeof(set), &set) != 0)
        return from_errno(errno, "pin to CPU " + std::to_string(cpu));
    return {};
}

// As large as a gate for 100,000 sources and as many bans.
Result<std::unique_ptr<Tables>> make_tables() {
    const std::string pin_dir = "/sys/fs/bpf/sluice-bench-" + std::to_string(::getpid());
    TableSizes sizes;
    sizes.cpus = 1;
    while (sizes.cpus < static_cast<uint32_t>(libbpf_num_possible_cpus()))
        sizes.cpus *= 2;
    auto tables = Tables::create(pin_dir, sizes);
    if (!tables)
        return tables.error();
    // Who holds the descriptors needs no pins; without them nothing is left behind.
    std::error_code ignored;
    std::filesystem::remove_all(pin_dir, ignored);
    tables->settings().attached[0] = 1;
    return std::make_unique<Tables>(std::move(*tables));
}

Result<std::unique_ptr<Program>> load_gate(const Tables& tables) {
    const auto kernel = probe_kernel();
    if (!kernel)
        return kernel.error();
    auto gate = Program::open(tables, *kernel, {});
    if (!gate)
        return gate.error();
    gate->skeleton()->rodata->drop_all = 1;
    if (const int rc = sluice_bpf__load(gate->skeleton()); rc != 0)
        return from_errno(rc, "load the gate's program");
    return std::make_unique<Program>(std::move(*gate));
}

uint64_t counted(const Tables& tables, sluice_verdict verdict) {
    return read_counters(tables)[sluice_counter_index(verdict, 0)].packets;
}

}  // namespace

void Contest::BareDeleter::operator()(bare_bpf* skeleton) const noexcept {
    bare_bpf__destroy(skeleton);
}

Contest::~Contest() = default;

Result<Contest> Contest::make(const ContestOptions& options) {
    Contest contest;
    contest.options_ = options;
    if (const auto pinned = pin_to(options.cpu); !pinned)
        return pinned.error();
    if (const auto made = make_network(); !made)
        return made.error();
    contest.receiver_ = static_cast<int>(::if_nametoindex(kReceiver));

    auto tables = make_tables();
    if (!tables)
        return tables.error();
    contest.tables_ = std::move(*tables);
    if (const auto prepared = prepare(*contest.tables_); !prepared)
        return prepared.error();
    auto gate = load_gate(*contest.tables_);
    if (!gate)
        return gate.error();
    contest.gate_ = std::move(*gate);
    contest.bare_.reset(bare_bpf__open_and_load());
    if (!contest.bare_)
        return from_errno(errno, "load the bare program");
    return contest;
}

Result<double> Contest::turn(int program, lab::Flood& flood, uint64_t warm_up) {
    if (const int rc = bpf_xdp_attach(receiver_, program, XDP_FLAGS_DRV_MODE, nullptr); rc != 0)
        return from_errno(rc, "attach");
    if (const auto warm = flood.time(warm_up); !warm)
        return warm.error();
    const auto time = flood.time(options_.packets);
    if (!time)
        return time.error();
    return static_cast<double>(time->count());
}

Result<Measurement> Contest::run(const Case& which) {
    auto flood = lab::Flood::make(which.packets);
    if (!flood)
        return flood.error();
    // Every source has been here before its packets are timed.
    const uint64_t warm_up = std::max(which.packets.sources, 20'000U);
    const int bare = bpf_program__fd(bare_->progs.bare), gate = gate_->fd();
    if (const auto first = turn(gate, *flood, warm_up); !first)
        return first.error();

    Measurement measurement;
    const uint64_t before = counted(*tables_, which.verdict);
    for (unsigned i = 0; i < options_.rounds; i++) {
        const auto bare_ns = turn(bare, *flood, warm_up);
        if (!bare_ns)
            return bare_ns.error();
        const auto gate_ns = turn(gate, *flood, warm_up);
        if (!gate_ns)
            return gate_ns.error();
        measurement.rounds.push_back({*bare_ns, *gate_ns});
    }
    measurement.sent = options_.rounds * (options_.packets + warm_up);
    measurement.as_meant = counted(*tables_, which.verdict) - before;
    return measurement;
}

uint32_t Contest::gate_bytes() const {
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    return bpf_obj_get_info_by_fd(gate_->fd(), &info, &size) == 0 ? info.jited_prog_len : 0;
}

}  // namespace sluice::bench
