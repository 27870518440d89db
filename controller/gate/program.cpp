#include "gate/program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/utsname.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "gate/table_list.h"
#include "sluice.skel.h"

namespace sluice {

namespace {

constexpr unsigned kLeastMajor = 5, kLeastMinor = 15;

// BPF_F_XDP_HAS_FRAGS; headers before 5.18 do not have it.
constexpr uint32_t kHasFrags = 1U << 5;

// With the smallest program there is, so that nothing is begun that cannot be ended.
Status may_load_programs() {
    std::array<bpf_insn, 2> pass{};  // return XDP_PASS
    pass[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
    pass[0].imm = XDP_PASS;
    pass[1].code = BPF_JMP | BPF_EXIT;
    const UniqueFd program(
        bpf_prog_load(BPF_PROG_TYPE_XDP, "probe", "GPL", pass.data(), pass.size(), nullptr));
    if (program)
        return {};
    return from_errno(errno, "load an XDP program",
                      errno == EPERM
                          ? "run it as root: sudo sluicectl …; or with CAP_BPF and CAP_NET_ADMIN"
                          : "");
}

int table_fd(const UniqueFd& table) {
    return table.get();
}
template <class T>
int table_fd(const FlatTable<T>& table) {
    return table.fd();
}

Status reuse_tables(const Tables& tables, sluice_bpf* skeleton) {
    // visit_tables hands out members to fill; here they are only read.
    return visit_tables(const_cast<Tables&>(tables), tables.sizes,
                        [&](const MapShape& shape, auto& table) -> Status {
                            const std::string name(shape.name);
                            bpf_map* map =
                                bpf_object__find_map_by_name(skeleton->obj, name.c_str());
                            if (map == nullptr)
                                return failed("table " + name + " is not part of the program");
                            if (const int rc = bpf_map__reuse_fd(map, table_fd(table)); rc != 0)
                                return from_errno(rc, "use table " + name);
                            return {};
                        });
}

void set_constants(const Tables& tables, const KernelFeatures& kernel,
                   const ProgramOptions& options, sluice_bpf* skeleton) {
    auto* constants = skeleton->rodata;
    constants->interface_slot = options.interface_slot;
    constants->generation = options.generation;
    constants->chained = options.chained;
    constants->clock_source = options.settable_clock ? SLUICE_CLOCK_SET : SLUICE_CLOCK_KERNEL;
    constants->coarse_lag_ns = tables.settings().lag_ns;
    constants->plain_path = options.plain_path;
    constants->largest_frame = options.largest_frame;
    constants->multi_buffer = kernel.multi_buffer;
    constants->cpu_mask = tables.sizes.cpus - 1;
    constants->interface_slots = tables.sizes.interfaces;
    constants->service_capacity = tables.sizes.services;
    constants->source_set_mask = tables.sizes.source_sets - 1;
    constants->window_set_mask = tables.sizes.window_sets - 1;
    constants->seed = tables.seed();
}

}  // namespace

void SkeletonDeleter::operator()(sluice_bpf* skeleton) const noexcept {
    sluice_bpf__destroy(skeleton);
}

Result<KernelFeatures> probe_kernel() {
    utsname names{};
    uname(&names);
    KernelFeatures features{.release = names.release};

    unsigned major = 0, minor = 0;
    if (std::sscanf(names.release, "%u.%u", &major, &minor) == 2 &&
        std::pair(major, minor) < std::pair(kLeastMajor, kLeastMinor))
        return failed("kernel " + features.release +
                          " is too old: the gate needs 5.15 (coarse clock, atomic compare-and-swap "
                          "and pointer arguments in BPF)",
                      "boot a kernel of 5.15 or later");
    if (const Status may = may_load_programs(); !may)
        return may.error();
    features.multi_buffer =
        libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_xdp_get_buff_len, nullptr) == 1;
    features.dispatcher = libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_EXT, nullptr) == 1;
    return features;
}

Result<Program> Program::open(const Tables& tables, const KernelFeatures& kernel,
                              const ProgramOptions& options) {
    Skeleton skeleton(sluice_bpf__open());
    if (!skeleton)
        return from_errno(errno, "open the gate's program");
    set_constants(tables, kernel, options, skeleton.get());
    // By the flag and not by the section's name, from which libbpf would add it to the kernel's own
    // flags where the kernel does not know it.
    if (kernel.multi_buffer)
        bpf_program__set_flags(skeleton->progs.sluice, kHasFrags);
    if (Status reused = reuse_tables(tables, skeleton.get()); !reused)
        return reused.error();
    return Program(std::move(skeleton));
}

Result<Program> Program::load(const Tables& tables, const KernelFeatures& kernel,
                              const ProgramOptions& options) {
    Result<Program> program = open(tables, kernel, options);
    if (!program)
        return program;
    if (const int rc = sluice_bpf__load(program->skeleton()); rc != 0)
        return from_errno(rc, "load the gate's program into the kernel",
                          "it needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON (or root)");
    return program;
}

int Program::fd() const {
    return bpf_program__fd(skeleton_->progs.sluice);
}

uint32_t Program::id() const {
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    return bpf_obj_get_info_by_fd(fd(), &info, &size) == 0 ? info.id : 0;
}

}  // namespace sluice
