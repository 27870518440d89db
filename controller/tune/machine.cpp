#include "tune/machine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "tune/number.h"
#include "tune/port.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

// Its place in a captured tree; no kernel has such a folder.
constexpr const char* kEthtoolFolder = "/ethtool";

// "rx-2" before "rx-10".
bool is_before(const std::string& left, const std::string& right) {
    const auto number_at = [](const std::string& name) {
        const size_t last = name.find_last_not_of("0123456789");
        return last == std::string::npos ? 0 : last + 1;
    };
    const size_t left_at = number_at(left), right_at = number_at(right);
    if (left.substr(0, left_at) != right.substr(0, right_at))
        return left < right;
    return std::pair(left.size(), left) < std::pair(right.size(), right);
}

// In one call, as the kernel's files want it; no file is made.
Status write_whole(const std::string& path, std::string_view value) {
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!file)
        return from_errno(errno, "open " + path);
    const ssize_t written = ::write(file.get(), value.data(), value.size());
    if (written < 0)
        return from_errno(errno, "write " + path);
    if (static_cast<size_t>(written) != value.size())
        return failed("write " + path + ": only a part of " + in_quotes(value) + " was taken");
    return {};
}

// Somebody else may have made the tree, and root tunes it: whatever is written below `root` has to
// stay there.
Status leads_nowhere_else(const fs::path& root) {
    std::error_code failure;
    const fs::path real = fs::canonical(root, failure);
    struct stat top {};
    if (failure || ::stat(real.c_str(), &top) != 0)
        return from_errno(failure ? failure.value() : errno, "open " + root.string());
    for (fs::recursive_directory_iterator entry(real, failure), end; !failure && entry != end;
         entry.increment(failure)) {
        const fs::path& path = entry->path();
        struct stat info {};
        if (::lstat(path.c_str(), &info) != 0)
            return from_errno(errno, "look at " + path.string());
        if (info.st_dev != top.st_dev)
            return failed(path.string() +
                          " is of another file system, so this is no captured machine");
        if (!S_ISLNK(info.st_mode))
            continue;
        std::error_code lost;
        const auto target = fs::weakly_canonical(path, lost);
        const auto [left, rest] =
            std::mismatch(real.begin(), real.end(), target.begin(), target.end());
        if (lost || left != real.end())
            return failed(path.string() + " is a link that leads out of the captured machine",
                          "remove it");
    }
    return failure ? from_errno(failure.value(), "look at " + root.string()) : Status();
}

}  // namespace

Result<Machine> Machine::captured(const std::string& root) {
    return captured(root, file_ethtool(root + kEthtoolFolder));
}

Result<Machine> Machine::captured(const std::string& root, std::unique_ptr<Ethtool> ethtool) {
    std::string folder = root;
    while (folder.ends_with('/'))
        folder.pop_back();
    if (folder.empty())
        return make_error(ErrorCode::usage, in_quotes(root) + " is no captured machine",
                          "leave out --root for this one");
    if (std::error_code ignored; !fs::is_directory(folder + "/sys/devices/system/cpu", ignored))
        return make_error(ErrorCode::not_found,
                          in_quotes(root) +
                              " is no captured machine: it has no "
                              "sys/devices/system/cpu",
                          "make one: sluicectl tune capture -o DIR");
    if (const Status inside = leads_nowhere_else(folder); !inside)
        return inside.error();
    return Machine(folder, std::move(ethtool));
}

std::optional<std::string> Machine::text(const std::string& path) const {
    auto text = read_file(root_ + path);
    if (!text)
        return std::nullopt;
    while (text->ends_with('\n'))
        text->pop_back();
    return *std::move(text);
}

std::vector<std::string> Machine::names_in(const std::string& folder) const {
    std::vector<std::string> names;
    std::error_code failure;
    for (fs::directory_iterator entry(root_ + folder, failure);
         !failure && entry != fs::directory_iterator(); entry.increment(failure))
        names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end(), is_before);
    return names;
}

bool Machine::has(const std::string& path) const {
    std::error_code ignored;
    return fs::exists(root_ + path, ignored);
}

Result<std::string> Machine::file_of(const Setting& setting) const {
    if (setting.kind == SettingKind::file)
        return root_ + setting.name;
    const auto [port, name] = port_and_irq(setting);
    const auto own = port.empty() ? std::set<unsigned>() : irqs_of(*this, port);
    // Names are the drivers', so that those of two cards may be the same.
    for (const InterruptLine& line : interrupts(*this))
        if (line.name == name && (port.empty() || own.contains(line.number)))
            return root_ + "/proc/irq/" + std::to_string(line.number) + "/smp_affinity_list";
    return make_error(ErrorCode::not_found, "no interrupt is called " + in_quotes(name));
}

Result<std::string> Machine::get(const Setting& setting) const {
    if (setting.kind == SettingKind::device_part) {
        const auto facts = ethtool_->read(setting.name);
        if (!facts)
            return facts.error();
        const auto value = part_text(*facts, setting.part);
        if (!value)
            return make_error(ErrorCode::not_found,
                              setting.name + " has no " + std::string(part_name(setting.part)));
        return *value;
    }
    const auto file = file_of(setting);
    return file ? read_file(*file) : file.error();
}

Status Machine::set(const Setting& setting, std::string_view value) const {
    if (setting.kind == SettingKind::device_part)
        return ethtool_->set(setting.name, setting.part, value);
    const auto file = file_of(setting);
    return file ? write_whole(*file, value) : file.error();
}

std::string Machine::boot() const {
    return text("/proc/sys/kernel/random/boot_id").value_or("");
}

std::vector<InterruptLine> interrupts(const Machine& machine) {
    std::vector<InterruptLine> lines;
    std::istringstream all(machine.text("/proc/interrupts").value_or(""));
    for (std::string line; std::getline(all, line);) {
        const size_t colon = line.find(':');
        const size_t start = line.find_first_not_of(' ');
        if (colon == std::string::npos || start >= colon)
            continue;
        const auto number =
            whole_number<unsigned>(std::string_view(line).substr(start, colon - start));
        if (!number)
            continue;
        // The name is the last column; where several share the line, a list of them.
        const size_t blank = line.find_last_of(' ');
        if (blank != std::string::npos && blank > colon)
            lines.push_back({*number, line.substr(blank + 1)});
    }
    return lines;
}

}  // namespace sluice
