#include "bare_program.h"

#include <bpf/libbpf.h>

#include <cerrno>

#include "bare.skel.h"

namespace sluice::bench {

void BareProgram::Deleter::operator()(bare_bpf* skeleton) const noexcept {
    bare_bpf__destroy(skeleton);
}

Result<BareProgram> BareProgram::load() {
    BareProgram programs;
    programs.skeleton_.reset(bare_bpf__open_and_load());
    if (!programs.skeleton_)
        return from_errno(errno, "load the bare program");
    return programs;
}

int BareProgram::drop() const {
    return bpf_program__fd(skeleton_->progs.bare);
}

int BareProgram::pass() const {
    return bpf_program__fd(skeleton_->progs.pass);
}

}  // namespace sluice::bench
