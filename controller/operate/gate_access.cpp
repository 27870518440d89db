#include "operate/gate_access.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/source_rules.h"
#include "gate/table_list.h"
#include "operate/apply_policy.h"

namespace sluice {

namespace {

constexpr uint32_t kBpfFsMagic = 0xcafe4a11;
constexpr std::string_view kAsRoot = "run it as root: sudo sluicectl …";

Error no_gate(const std::string& pin_dir) {
    return make_error(ErrorCode::unreachable, "there is no gate in " + pin_dir,
                      "attach one: sluicectl attach IFACE; or name another place: --pin-dir DIR");
}

std::optional<ino_t> inode_of(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 ? std::optional(info.st_ino) : std::nullopt;
}

// A directory that others may not enter looks like an empty one.
Status check_access(const std::string& pin_dir) {
    struct stat info {};
    const bool there = ::stat(pin_dir.c_str(), &info) == 0;
    if ((there && !S_ISDIR(info.st_mode)) || (!there && (errno == ENOENT || errno == ENOTDIR)))
        return no_gate(pin_dir);
    if (there && ::access(pin_dir.c_str(), R_OK | X_OK) == 0)
        return {};
    return cannot_open("open " + pin_dir, errno);
}

// In the order of removal: programs off the interfaces first, then the settings, without which the
// rest is no gate.
std::vector<std::string> pin_names() {
    std::vector<std::string> names;
    for (uint32_t slot = 0; slot < SLUICE_MAX_INTERFACES; ++slot)
        names.push_back("link_" + std::to_string(slot));
    const size_t links = names.size();
    Tables nowhere;
    (void)visit_tables(nowhere, {}, [&](const MapShape& shape, auto&) -> Status {
        names.emplace_back(shape.name);
        return {};
    });
    std::rotate(names.begin() + static_cast<std::ptrdiff_t>(links), names.end() - 1, names.end());
    return names;
}

}  // namespace

Result<Tables> open_gate(const std::string& pin_dir) {
    if (const Status access = check_access(pin_dir); !access)
        return access.error();
    auto tables = Tables::open(pin_dir);
    if (tables)
        return tables;
    if (tables.error().code == ErrorCode::not_found)
        return no_gate(pin_dir);
    Error error = tables.error();
    if (error.code == ErrorCode::not_permitted && error.hint.empty())
        error.hint = kAsRoot;
    return error;
}

Result<std::shared_ptr<Tables>> open_gate(const std::string& pin_dir, const KeptGate& kept) {
    if (auto tables = kept ? kept() : nullptr)
        return tables;
    auto tables = open_gate(pin_dir);
    if (!tables)
        return tables.error();
    return std::make_shared<Tables>(*std::move(tables));
}

Result<WriterLock> lock_gate(const std::string& pin_dir, std::chrono::milliseconds timeout) {
    using std::chrono::milliseconds, std::chrono::steady_clock;
    const auto deadline = steady_clock::now() + timeout;
    while (const auto before = inode_of(pin_dir)) {
        const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
        auto lock = WriterLock::take(pin_dir, static_cast<int>(std::max<int64_t>(left.count(), 0)));
        const auto after = inode_of(pin_dir);
        if ((lock && after == before) || (!lock && after))
            return lock;
    }
    return no_gate(pin_dir);
}

Result<WritableGate> open_gate_to_write(const std::string& pin_dir,
                                        std::chrono::milliseconds timeout, const KeptGate& kept) {
    if (const Status access = check_access(pin_dir); !access)
        return access.error();
    auto lock = lock_gate(pin_dir, timeout);
    if (!lock)
        return lock.error();
    auto tables = open_gate(pin_dir, kept);
    if (!tables)
        return tables.error();
    WritableGate gate{*std::move(lock), *tables, **tables, false};
    // What a writer that was killed has left. Without room to mend it the mark stays, and `status`
    // tells; nobody's own change waits for that.
    if (is_cut_off(gate.tables)) {
        (void)mend_policy(gate.tables, current_operator());
        (void)SourceRules(gate.tables).repair();
        gate.mended = !is_cut_off(gate.tables);
    }
    return gate;
}

bool is_cut_off(const Tables& tables) {
    return tables.settings().rules_dirty != 0 || tables.settings().lists_ahead != 0;
}

bool is_bpffs_root(const std::string& path) {
    constexpr ino_t kRoot = 1;  // the kernel's simple file systems all have it there
    return is_on_bpffs(path) && inode_of(path) == kRoot;
}

Error cannot_open(const std::string& operation, int error_number) {
    std::string hint;
    if (error_number == EACCES || error_number == EPERM)
        hint = kAsRoot;
    else if (error_number == ENAMETOOLONG)
        hint = "a directory's name has at most 255 characters, its path 4095";
    return from_errno(error_number, operation, std::move(hint));
}

bool is_on_bpffs(const std::string& path) {
    struct statfs info {};
    return ::statfs(path.c_str(), &info) == 0 && static_cast<uint32_t>(info.f_type) == kBpfFsMagic;
}

Result<size_t> remove_pin_files(const std::string& pin_dir) {
    size_t removed = 0;
    for (const std::string& name : pin_names()) {
        const std::string path = pin_dir + '/' + name;
        if (::unlink(path.c_str()) == 0)
            removed++;
        else if (errno != ENOENT)
            return from_errno(errno, "remove " + path);
    }
    return removed;
}

Status remove_pins(const std::string& pin_dir) {
    const auto removed = remove_pin_files(pin_dir);
    Status status = removed ? Status{} : removed.error();
    // Somebody else's pins, or the root of the file system: not ours to remove.
    if (::rmdir(pin_dir.c_str()) != 0 && errno != ENOTEMPTY && errno != EBUSY && errno != EEXIST &&
        errno != ENOENT && status)
        status = from_errno(errno, "remove " + pin_dir);
    return status;
}

}  // namespace sluice
