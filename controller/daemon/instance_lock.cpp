#include "daemon/instance_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>

#include "base/file.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

// Root's alone. A pin directory cannot carry the lock: whoever writes the tables holds it there
// for a moment, and it may not exist yet.
constexpr const char* kFolder = "/run/sluice/locks";

// One directory has one name, however its directory is spelled or reached: the file system, the
// folder in it, the last part of the path.
Result<std::string> lock_name(const std::string& directory) {
    std::error_code failure;
    fs::path path = fs::weakly_canonical(directory, failure);
    if (path.filename().empty())
        path = path.parent_path();  // "…/sluice/" that is not there yet
    struct stat parent {};
    if (failure || ::stat(path.parent_path().c_str(), &parent) != 0)
        return from_errno(failure ? failure.value() : errno, "look at " + directory);
    return std::to_string(major(parent.st_dev)) + ':' + std::to_string(minor(parent.st_dev)) + '-' +
           std::to_string(parent.st_ino) + '-' + path.filename().string();
}

std::string holder(const std::string& path) {
    const auto text = read_file(path);
    pid_t pid = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), pid).ec != std::errc{})
        return "";
    return " (process " + std::to_string(pid) + ')';
}

Result<UniqueFd> open_lock(const std::string& path) {
    (void)::mkdir(fs::path(kFolder).parent_path().c_str(), 0755);
    if (::mkdir(kFolder, 0700) != 0 && errno != EEXIST)
        return from_errno(errno, std::string("make ") + kFolder);
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd)
        return from_errno(errno, "open " + path);
    return fd;
}

}  // namespace

Result<InstanceLock> InstanceLock::of_gate(const std::string& pin_dir) {
    return take(pin_dir, failed("another sluiced keeps the gate in " + pin_dir,
                                "stop that one, or give this one a --pin_dir of its own"));
}

Result<InstanceLock> InstanceLock::of_state(const std::string& state_dir) {
    return take(state_dir, failed("another sluiced keeps its state in " + state_dir,
                                  "give this one a --state_dir of its own: they would overwrite "
                                  "each other's bans"));
}

Result<InstanceLock> InstanceLock::take(const std::string& directory, const Error& held) {
    const auto name = lock_name(directory);
    if (!name)
        return name.error();
    const std::string path = std::string(kFolder) + '/' + *name;
    auto fd = open_lock(path);
    if (!fd)
        return fd.error();
    if (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return from_errno(errno, "lock " + path);
        Error error = failed(held.message + holder(path), held.hint);
        error.busy = true;
        return error;
    }
    // Who it is serves people only: the lock holds without.
    const std::string pid = std::to_string(::getpid()) + '\n';
    if (::ftruncate(fd->get(), 0) == 0)
        (void)!::pwrite(fd->get(), pid.data(), pid.size(), 0);
    return InstanceLock(*std::move(fd));
}

}  // namespace sluice
