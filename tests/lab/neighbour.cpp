#include "neighbour.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <xdp/libxdp.h>

#include "neighbour.skel.h"

namespace sluice::lab {

void Neighbour::SkeletonDeleter::operator()(neighbour_bpf* skeleton) const noexcept {
    neighbour_bpf__destroy(skeleton);
}
void Neighbour::ProgramDeleter::operator()(xdp_program* program) const noexcept {
    xdp_program__close(program);
}

Neighbour::Neighbour() : skeleton_(neighbour_bpf__open()) {
    if (!skeleton_)
        return;
    DECLARE_LIBXDP_OPTS(xdp_program_opts, options);
    options.obj = skeleton_->obj;
    options.prog_name = "neighbour";
    xdp_program* program = xdp_program__create(&options);
    if (libxdp_get_error(program) == 0)
        program_.reset(program);
}

Neighbour::~Neighbour() = default;

bool Neighbour::join(unsigned interface_index, bool native) {
    interface_index_ = static_cast<int>(interface_index);
    return program_ && xdp_program__attach(program_.get(), interface_index_,
                                           native ? XDP_MODE_NATIVE : XDP_MODE_SKB, 0) == 0;
}

bool Neighbour::leave() {
    return program_ &&
           xdp_program__detach(program_.get(), interface_index_, XDP_MODE_UNSPEC, 0) == 0;
}

uint32_t Neighbour::program_id() const {
    return program_ ? xdp_program__id(program_.get()) : 0;
}

uint64_t Neighbour::seen() const {
    // libxdp loads the object, not the skeleton, whose variables therefore are not mapped.
    const uint32_t key = 0;
    uint64_t value = 0;
    return skeleton_ && bpf_map_lookup_elem(bpf_map__fd(skeleton_->maps.bss), &key, &value) == 0
               ? value
               : 0;
}

}  // namespace sluice::lab
