#include "tune/host.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <utility>

#include "tune/number.h"

namespace sluice {

namespace {

constexpr const char* kCpus = "/sys/devices/system/cpu";
constexpr const char* kNodes = "/sys/devices/system/node";

std::string folder_of(unsigned cpu) {
    return std::string(kCpus) + "/cpu" + std::to_string(cpu);
}

// The online ones of a list; `cpu` alone where there is no such file.
Result<CpuSet> neighbours(const Machine& machine, const std::string& path, unsigned cpu,
                          const CpuSet& online) {
    const auto text = machine.text(path);
    if (!text)
        return CpuSet{cpu};
    const auto listed = parse_cpu_list(*text);
    if (!listed)
        return listed.error().with_context(machine.path_of(path));
    CpuSet found = {cpu};
    std::set_intersection(listed->begin(), listed->end(), online.begin(), online.end(),
                          std::inserter(found, found.end()));
    return found;
}

// The cache of the highest level says who shares memory cheaply.
std::string largest_cache(const Machine& machine, unsigned cpu) {
    const std::string caches = folder_of(cpu) + "/cache";
    std::string largest;
    unsigned highest = 0;
    for (const std::string& name : machine.names_in(caches)) {
        const auto level =
            whole_number<unsigned>(machine.text(caches + '/' + name + "/level").value_or(""));
        if (!level || *level <= highest)
            continue;
        highest = *level;
        largest = caches + '/' + name;
    }
    return largest;
}

// From the scheduler (isolcpus), or from its tick (nohz_full): an interrupt spoils both.
Result<CpuSet> kept_free(const Machine& machine) {
    CpuSet cpus;
    for (const char* file : {"/isolated", "/nohz_full"}) {
        const std::string path = std::string(kCpus) + file;
        const auto text = machine.text(path);
        // What kernels without any say of nohz_full.
        if (!text || text->ends_with("(null)"))
            continue;
        auto listed = parse_cpu_list(*text);
        if (!listed)
            return listed.error().with_context(machine.path_of(path));
        cpus.merge(*listed);
    }
    return cpus;
}

Status place_in_nodes(const Machine& machine, Host& host) {
    for (const std::string& name : machine.names_in(kNodes)) {
        const auto node = number_behind("node", name);
        if (!node)
            continue;
        const std::string path = std::string(kNodes) + '/' + name + "/cpulist";
        const auto cpus = parse_cpu_list(machine.text(path).value_or(""));
        if (!cpus)
            return cpus.error().with_context(machine.path_of(path));
        bool is_used = false;
        for (Cpu& cpu : host.cpus)
            if (cpus->contains(cpu.number)) {
                cpu.node = *node;
                is_used = true;
            }
        if (is_used)
            host.nodes.push_back(*node);
    }
    if (host.nodes.empty())
        host.nodes.push_back(0);
    std::sort(host.nodes.begin(), host.nodes.end());
    return {};
}

// The mount that is on top at a path is the last one listed for it.
bool is_read_only(const Machine& machine, std::string_view where) {
    bool read_only = false;
    std::istringstream lines(machine.text("/proc/self/mounts").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string device, place, type, options;
        if (words >> device >> place >> type >> options && place == where)
            read_only = options == "ro" || options.starts_with("ro,");
    }
    return read_only;
}

bool runs(const Machine& machine, std::string_view program) {
    for (const std::string& name : machine.names_in("/proc"))
        if (whole_number<unsigned>(name) && machine.text("/proc/" + name + "/comm") == program)
            return true;
    return false;
}

}  // namespace

const Cpu* Host::find(unsigned number) const {
    const auto found = std::ranges::lower_bound(cpus, number, {}, &Cpu::number);
    return found == cpus.end() || found->number != number ? nullptr : &*found;
}

Result<Host> look_at_cpus(const Machine& machine) {
    const std::string online_path = std::string(kCpus) + "/online";
    const auto online_text = machine.text(online_path);
    if (!online_text)
        return failed("cannot read " + machine.path_of(online_path),
                      "is /sys mounted? mount -t sysfs sysfs /sys");
    const auto online = parse_cpu_list(*online_text);
    if (!online || online->empty())
        return failed(machine.path_of(online_path) + ": names no CPUs");
    const auto isolated = kept_free(machine);
    if (!isolated)
        return isolated.error();
    Host host;
    for (const unsigned number : *online) {
        auto siblings = neighbours(machine, folder_of(number) + "/topology/thread_siblings_list",
                                   number, *online);
        if (!siblings)
            return siblings.error();
        auto cache = neighbours(machine, largest_cache(machine, number) + "/shared_cpu_list",
                                number, *online);
        if (!cache)
            return cache.error();
        host.cpus.push_back({.number = number,
                             .node = 0,
                             .siblings = *std::move(siblings),
                             .cache = *std::move(cache),
                             .isolated = isolated->contains(number)});
    }
    if (const Status placed = place_in_nodes(machine, host); !placed)
        return placed.error();
    const auto possible =
        parse_cpu_list(machine.text(std::string(kCpus) + "/possible").value_or(""));
    host.possible =
        possible && !possible->empty() ? *possible->rbegin() + 1 : host.cpus.back().number + 1;
    host.irqbalance = runs(machine, "irqbalance");
    host.tuned = runs(machine, "tuned");
    host.sys_read_only = is_read_only(machine, "/sys");
    host.irqs_read_only = is_read_only(machine, "/proc/irq") || is_read_only(machine, "/proc");
    host.flow_entries = whole_number<unsigned>(
        machine.text("/proc/sys/net/core/rps_sock_flow_entries").value_or(""));
    return host;
}

}  // namespace sluice
