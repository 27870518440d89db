#include "tune/capture.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "tune/number.h"
#include "tune/port.h"

namespace sluice {

namespace {

namespace fs = std::filesystem;

// udev names what it cannot place by the 12 digits of its address, behind an x: enx02005e005301.
std::optional<std::string> address_in(const std::string& name) {
    constexpr size_t kDigits = 12;
    for (size_t x = name.find('x'); x != std::string::npos; x = name.find('x', x + 1)) {
        const std::string digits = name.substr(x + 1, kDigits);
        if (digits.size() == kDigits &&
            digits.find_first_not_of("0123456789abcdef") == std::string::npos)
            return digits;
    }
    return std::nullopt;
}

class Copier {
  public:
    Copier(const Machine& machine, std::string folder)
        : machine_(machine), folder_(std::move(folder)) {
        std::set<std::string> addresses;
        for (const std::string& name : machine.names_in("/sys/class/net"))
            if (const auto address = address_in(name))
                addresses.insert(*address);
        for (const std::string& address : addresses)
            secrets_.emplace_back(address, "mac" + std::to_string(secrets_.size() + 1));
    }

    // What cannot be read is left out; so it would be where it was captured.
    void copy(const std::string& path) {
        if (const auto text = machine_.text(path))
            write(path, *text + '\n');
    }
    void write(const std::string& path, const std::string& text) {
        const fs::path file = folder_ + without_addresses(path);
        std::error_code failure;
        fs::create_directories(file.parent_path(), failure);
        std::ofstream out(file, std::ios::binary);
        out << without_addresses(text);
        out.close();
        if (!out && status_)
            status_ = from_errno(errno, "write " + file.string());
    }
    [[nodiscard]] const Status& status() const { return status_; }

  private:
    [[nodiscard]] std::string without_addresses(std::string text) const {
        for (const auto& [address, stand_in] : secrets_)
            for (size_t at = text.find(address); at != std::string::npos;
                 at = text.find(address, at))
                text.replace(at, address.size(), stand_in);
        return text;
    }

    const Machine& machine_;
    std::string folder_;
    std::vector<std::pair<std::string, std::string>> secrets_;  // and what stands for them
    Status status_;
};

void copy_cpus(const Machine& machine, Copier& copier) {
    const std::string cpus = "/sys/devices/system/cpu";
    for (const char* file : {"/online", "/possible", "/isolated", "/nohz_full"})
        copier.copy(cpus + file);
    for (const std::string& name : machine.names_in(cpus)) {
        if (!number_behind("cpu", name))
            continue;
        copier.copy(cpus + '/' + name + "/topology/thread_siblings_list");
        copier.copy(cpus + '/' + name + "/cpufreq/scaling_governor");
        const std::string caches = cpus + '/' + name + "/cache";
        for (const std::string& cache : machine.names_in(caches))
            for (const char* file : {"/level", "/shared_cpu_list"})
                copier.copy(caches + '/' + cache + file);
    }
    const std::string nodes = "/sys/devices/system/node";
    for (const std::string& name : machine.names_in(nodes))
        if (number_behind("node", name))
            copier.copy(nodes + '/' + name + "/cpulist");
}

void copy_irqs(const Machine& machine, const std::string& interface, Copier& copier) {
    for (const unsigned irq : irqs_of(machine, interface)) {
        const std::string number = std::to_string(irq);
        // Where they lie on a card of its own, because a copy has no links.
        copier.write("/sys/class/net/" + interface + "/device/msi_irqs/" + number, "");
        for (const char* file : {"/smp_affinity_list", "/effective_affinity_list"})
            copier.copy("/proc/irq/" + number + file);
        if (const auto text = machine.text("/sys/kernel/debug/irq/irqs/" + number);
            text && text->find("IRQD_AFFINITY_MANAGED") != std::string::npos)
            copier.write("/sys/kernel/debug/irq/irqs/" + number, "IRQD_AFFINITY_MANAGED\n");
    }
}

void copy_interface(const Machine& machine, const std::string& name, Copier& copier) {
    const std::string folder = "/sys/class/net/" + name;
    for (const char* file : {"/mtu", "/operstate", "/device/numa_node", "/device/features"})
        copier.copy(folder + file);
    for (const std::string& entry : machine.names_in(folder))
        if (entry.starts_with("lower_"))
            copier.write(folder + '/' + entry, "");
    for (const std::string& queue : machine.names_in(folder + "/queues"))
        for (const char* file : {"/rps_cpus", "/rps_flow_cnt", "/xps_cpus"})
            copier.copy(folder + "/queues/" + queue + file);
    copy_irqs(machine, name, copier);
    if (const auto facts = machine.ethtool().read(name))
        copier.write("/ethtool/" + name, ethtool_file_text(*facts));
}

// Mounts name disks, shares and users; these three lines say what is read-only.
void copy_mounts(const Machine& machine, Copier& copier) {
    constexpr std::array<std::string_view, 4> kPlaces = {"/sys", "/proc", "/proc/irq", "/proc/sys"};
    std::istringstream lines(machine.text("/proc/self/mounts").value_or(""));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string device, place, type, options;
        if (words >> device >> place >> type >> options &&
            std::ranges::find(kPlaces, place) != kPlaces.end())
            kept += type + ' ' + place + ' ' + type + ' ' + options.substr(0, 2) + " 0 0\n";
    }
    copier.write("/proc/self/mounts", kept);
}

void copy_programs(const Machine& machine, Copier& copier) {
    for (const std::string& name : machine.names_in("/proc"))
        if (whole_number<unsigned>(name)) {
            const auto program = machine.text("/proc/" + name + "/comm");
            if (program == "irqbalance" || program == "tuned")
                copier.write("/proc/" + name + "/comm", *program + '\n');
        }
}

}  // namespace

Status capture(const Machine& machine, const std::string& folder) {
    if (::mkdir(folder.c_str(), 0755) != 0)
        return from_errno(errno, "make " + folder,
                          errno == EEXIST ? "name a folder that does not exist yet" : "");
    Copier copier(machine, folder);
    copy_cpus(machine, copier);
    for (const std::string& name : machine.names_in("/sys/class/net"))
        copy_interface(machine, name, copier);
    copier.copy("/proc/interrupts");
    copier.copy("/proc/stat");
    copier.copy("/proc/net/softnet_stat");
    copier.copy("/proc/sys/net/core/rps_sock_flow_entries");
    copy_mounts(machine, copier);
    copy_programs(machine, copier);
    return copier.status();
}

}  // namespace sluice
