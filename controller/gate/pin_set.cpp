#include "gate/pin_set.h"

#include <bpf/bpf.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace sluice {

namespace {

constexpr uint32_t kBpfFsMagic = 0xcafe4a11;
constexpr const char* kMountHint = "mount it: mount -t bpf bpf /sys/fs/bpf";

}  // namespace

std::string pin_path(const std::string& pin_dir, std::string_view name) {
    return std::string(pin_dir).append("/").append(name);
}

PinSet::~PinSet() {
    for (const auto& path : paths_)
        ::unlink(path.c_str());
    if (made_dir_)
        ::rmdir(dir_.c_str());
}

Status PinSet::make_dir() {
    made_dir_ = ::mkdir(dir_.c_str(), 0700) == 0;
    if (!made_dir_ && errno != EEXIST)
        return from_errno(errno, "make " + dir_, kMountHint);
    struct statfs info {};
    if (::statfs(dir_.c_str(), &info) != 0)
        return from_errno(errno, "look at " + dir_);
    if (static_cast<uint32_t>(info.f_type) != kBpfFsMagic)
        return failed(dir_ + " is not on a BPF file system", kMountHint);
    return {};
}

Status PinSet::pin(int fd, std::string_view name) {
    auto path = pin_path(dir_, name);
    if (bpf_obj_pin(fd, path.c_str()) != 0) {
        const int error_number = errno;
        if (error_number == EEXIST)
            return failed(path + " is there already", "detach the gate that owns it first");
        return from_errno(error_number, "pin " + path);
    }
    paths_.push_back(std::move(path));
    return {};
}

void PinSet::keep() {
    paths_.clear();
    made_dir_ = false;
}

}  // namespace sluice
