#include "measured_gate.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <filesystem>
#include <utility>

#include "gate/policy_store.h"
#include "policy/parse.h"
#include "sluice.skel.h"

namespace sluice::bench {

namespace {

Result<std::unique_ptr<Tables>> make_tables(TableSizes sizes) {
    static std::atomic<unsigned> made = 0;
    const std::string pin_dir =
        "/sys/fs/bpf/sluice-bench-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
    sizes.cpus = std::bit_ceil(static_cast<uint32_t>(libbpf_num_possible_cpus()));
    auto tables = Tables::create(pin_dir, sizes);
    // Who holds the descriptors needs no pins; without them nothing is left behind.
    std::error_code ignored;
    std::filesystem::remove_all(pin_dir, ignored);
    if (!tables)
        return tables.error();
    tables->settings().attached[0] = 1;
    return std::make_unique<Tables>(std::move(*tables));
}

Result<std::unique_ptr<Program>> load_program(const Tables& tables, bool drop_all) {
    const auto kernel = probe_kernel();
    if (!kernel)
        return kernel.error();
    auto program = Program::open(tables, *kernel, {});
    if (!program)
        return program.error();
    program->skeleton()->rodata->drop_all = drop_all ? 1 : 0;
    if (const int rc = sluice_bpf__load(program->skeleton()); rc != 0)
        return from_errno(rc, "load the gate's program");
    return std::make_unique<Program>(std::move(*program));
}

}  // namespace

Result<MeasuredGate> MeasuredGate::make(const GateOptions& options) {
    MeasuredGate gate;
    auto tables = make_tables(options.sizes);
    if (!tables)
        return tables.error();
    gate.tables_ = std::move(*tables);
    auto program = load_program(*gate.tables_, options.drop_all);
    if (!program)
        return program.error();
    gate.program_ = std::move(*program);
    return gate;
}

uint32_t MeasuredGate::machine_code_bytes() const {
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    return bpf_obj_get_info_by_fd(fd(), &info, &size) == 0 ? info.jited_prog_len : 0;
}

uint64_t MeasuredGate::counted(sluice_verdict verdict) const {
    return read_counters(*tables_)[sluice_counter_index(verdict, 0)].packets;
}

Status MeasuredGate::install(const std::string& policy) {
    const auto parsed = parse_policy(policy, "bench.toml");
    if (!parsed)
        return parsed.error();
    if (const auto installed = install_policy(*tables_, *parsed, policy, "bench.toml"); !installed)
        return installed.error();
    return {};
}

}  // namespace sluice::bench
