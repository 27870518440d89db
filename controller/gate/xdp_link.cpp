#include "gate/xdp_link.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include <cerrno>
#include <cstdarg>
#include <memory>

#include "base/unique_fd.h"
#include "sluice.skel.h"

namespace sluice {

namespace {

struct MultiprogDeleter {
    void operator()(xdp_multiprog* programs) const noexcept { xdp_multiprog__close(programs); }
};
using Multiprog = std::unique_ptr<xdp_multiprog, MultiprogDeleter>;

struct XdpProgramDeleter {
    void operator()(xdp_program* program) const noexcept { xdp_program__close(program); }
};
using XdpProgram = std::unique_ptr<xdp_program, XdpProgramDeleter>;

// libxdp and libbpf tell of every attempt that fails, also of those that merely probe the kernel;
// what people need to know is in the error.
class Silence {
  public:
    Silence() : libbpf_(libbpf_set_print(nullptr)), libxdp_(libxdp_set_print(say_nothing)) {}
    ~Silence() {
        libbpf_set_print(libbpf_);
        libxdp_set_print(libxdp_);
    }
    Silence(const Silence&) = delete;
    Silence& operator=(const Silence&) = delete;

  private:
    static int say_nothing(libxdp_print_level, const char*, va_list) { return 0; }
    libbpf_print_fn_t libbpf_;
    libxdp_print_fn_t libxdp_;
};

Multiprog programs_on(unsigned interface_index) {
    const Silence silence;
    xdp_multiprog* programs = xdp_multiprog__get_from_ifindex(static_cast<int>(interface_index));
    return Multiprog(libxdp_get_error(programs) == 0 ? programs : nullptr);
}

bool is_dispatcher(const Multiprog& programs) {
    return programs != nullptr && !xdp_multiprog__is_legacy(programs.get());
}

// Of an XDP link; nothing for any other descriptor, or none.
std::optional<bpf_link_info> link_info(const UniqueFd& link) {
    bpf_link_info info{};
    uint32_t size = sizeof(info);
    if (!link || bpf_obj_get_info_by_fd(link.get(), &info, &size) != 0 ||
        info.type != BPF_LINK_TYPE_XDP)
        return std::nullopt;
    return info;
}

// The dispatcher's entry for a program; owned by `programs`.
xdp_program* find_program(const Multiprog& programs, uint32_t program_id) {
    if (!is_dispatcher(programs))
        return nullptr;
    xdp_program* program = nullptr;
    while ((program = xdp_multiprog__next_prog(program, programs.get())) != nullptr)
        if (xdp_program__id(program) == program_id)
            return program;
    return nullptr;
}

}  // namespace

Result<XdpState> xdp_state(unsigned interface_index) {
    LIBBPF_OPTS(bpf_xdp_query_opts, query);
    if (const int rc = bpf_xdp_query(static_cast<int>(interface_index), 0, &query); rc != 0)
        return from_errno(rc, "ask which XDP program runs there");
    return XdpState{.native_id = query.drv_prog_id, .generic_id = query.skb_prog_id};
}

std::string program_name(uint32_t program_id) {
    const std::string number = "program " + std::to_string(program_id);
    const UniqueFd fd(bpf_prog_get_fd_by_id(program_id));
    bpf_prog_info info{};
    uint32_t size = sizeof(info);
    if (!fd || bpf_obj_get_info_by_fd(fd.get(), &info, &size) != 0)
        return number;
    return '"' + std::string(info.name) + "\" (" + number + ")";
}

bool is_program_loaded(uint32_t program_id) {
    return static_cast<bool>(UniqueFd(bpf_prog_get_fd_by_id(program_id)));
}

Status link_attach(const Program& program, unsigned interface_index, bool native,
                   const std::string& pin_path) {
    LIBBPF_OPTS(bpf_link_create_opts, options);
    options.flags = native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
    const UniqueFd link(
        bpf_link_create(program.fd(), static_cast<int>(interface_index), BPF_XDP, &options));
    if (!link)
        return from_errno(errno, native ? "attach in native mode" : "attach in generic mode");
    // The link holds the program only as long as it is pinned.
    if (bpf_obj_pin(link.get(), pin_path.c_str()) != 0)
        return from_errno(errno, "pin " + pin_path);
    return {};
}

Status link_replace(const Program& program, const std::string& pin_path) {
    const UniqueFd link(bpf_obj_get(pin_path.c_str()));
    if (!link)
        return from_errno(errno, "open " + pin_path);
    if (bpf_link_update(link.get(), program.fd(), nullptr) != 0)
        return from_errno(errno, "replace the program");
    return {};
}

Status link_detach(const std::string& pin_path) {
    const UniqueFd link(bpf_obj_get(pin_path.c_str()));
    // Detached by hand, so that a descriptor somebody else still holds does not keep it there.
    if (link && bpf_link_detach(link.get()) != 0 && errno != EOPNOTSUPP)
        return from_errno(errno, "detach " + pin_path);
    if (::unlink(pin_path.c_str()) != 0 && errno != ENOENT)
        return from_errno(errno, "remove " + pin_path);
    return {};
}

unsigned link_interface(const std::string& pin_path) {
    const UniqueFd link(bpf_obj_get(pin_path.c_str()));
    const auto info = link_info(link);
    return info ? info->xdp.ifindex : 0;
}

uint32_t link_program(const std::string& pin_path) {
    const UniqueFd link(bpf_obj_get(pin_path.c_str()));
    const auto info = link_info(link);
    return info ? info->prog_id : 0;
}

std::optional<uint32_t> link_holding(uint32_t program_id, unsigned interface_index) {
    for (uint32_t id = 0; bpf_link_get_next_id(id, &id) == 0;) {
        const UniqueFd link(bpf_link_get_fd_by_id(id));
        const auto info = link_info(link);
        if (info && info->prog_id == program_id && info->xdp.ifindex == interface_index)
            return id;
    }
    return std::nullopt;
}

std::string command_to_remove(const XdpState& state, const Interface& interface) {
    if (const auto link = link_holding(state.any_id(), interface.index))
        return "bpftool link detach id " + std::to_string(*link);
    return "ip link set dev " + interface.name +
           (state.native_id == 0 ? " xdpgeneric off" : " xdp off");
}

Result<std::optional<uint32_t>> dispatcher_attach(const Program& program, unsigned interface_index,
                                                  bool native, unsigned priority) {
    const Silence silence;
    DECLARE_LIBXDP_OPTS(xdp_program_opts, options);
    options.obj = program.skeleton()->obj;
    options.prog_name = "sluice";
    xdp_program* created = xdp_program__create(&options);
    if (const long rc = libxdp_get_error(created); rc != 0)
        return from_errno(static_cast<int>(rc), "hand the program to libxdp");
    const XdpProgram guard(created);

    xdp_program__set_run_prio(created, priority);
    xdp_program__set_chain_call_enabled(created, XDP_PASS, true);
    const int rc = xdp_program__attach(created, static_cast<int>(interface_index),
                                       native ? XDP_MODE_NATIVE : XDP_MODE_SKB, 0);
    if (rc == -ENOENT)  // of the dispatcher's own file: libxdp is installed without it
        return std::optional<uint32_t>();
    if (rc == -E2BIG)
        return failed(
            "ten XDP programs run there already, and libxdp's dispatcher has no more room",
            "xdp-loader status lists them");
    if (rc != 0)
        return from_errno(rc, native ? "attach to the dispatcher in native mode"
                                     : "attach to the dispatcher in generic mode");
    // libxdp falls back to a lone program without a word where the dispatcher does not load.
    if (!has_dispatcher(interface_index)) {
        xdp_program__detach(created, static_cast<int>(interface_index), XDP_MODE_UNSPEC, 0);
        return std::optional<uint32_t>();
    }
    return std::optional(program.id());
}

Status dispatcher_detach(uint32_t program_id, unsigned interface_index) {
    const Silence silence;
    const Multiprog programs = programs_on(interface_index);
    xdp_program* program = find_program(programs, program_id);
    if (program == nullptr)
        return {};
    const int rc = xdp_program__detach(program, static_cast<int>(interface_index),
                                       xdp_multiprog__attach_mode(programs.get()), 0);
    return rc == 0 ? Status{} : from_errno(rc, "detach from the dispatcher");
}

bool has_dispatcher(unsigned interface_index) {
    return is_dispatcher(programs_on(interface_index));
}

bool dispatcher_has(uint32_t program_id, unsigned interface_index) {
    return find_program(programs_on(interface_index), program_id) != nullptr;
}

}  // namespace sluice
