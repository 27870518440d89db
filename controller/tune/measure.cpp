#include "tune/measure.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <thread>

namespace sluice {

namespace {

// Columns of /proc/net/softnet_stat, all hexadecimal; the CPU's number came with 5.10.
constexpr size_t kPackets = 0, kDropped = 1, kSqueezed = 2, kSteered = 9, kCpu = 12;

void read_softnet(const Machine& machine, Reading& reading) {
    std::istringstream lines(machine.text("/proc/net/softnet_stat").value_or(""));
    unsigned number = 0;
    for (std::string line; std::getline(lines, line); ++number) {
        std::istringstream words(line);
        words >> std::hex;
        std::vector<uint64_t> columns;
        for (uint64_t value = 0; words >> value;)
            columns.push_back(value);
        if (columns.size() <= kSteered)
            continue;
        auto& cpu =
            reading.cpus[columns.size() > kCpu ? static_cast<unsigned>(columns[kCpu]) : number];
        cpu.packets = columns[kPackets];
        cpu.dropped = columns[kDropped];
        cpu.squeezed = columns[kSqueezed];
        cpu.steered = columns[kSteered];
    }
}

// "cpu3 user nice system idle iowait irq softirq steal …"
void read_times(const Machine& machine, Reading& reading) {
    constexpr size_t kSoftirq = 6, kSteal = 7;
    std::istringstream lines(machine.text("/proc/stat").value_or(""));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        words >> name;
        unsigned number = 0;
        if (!name.starts_with("cpu") ||
            std::from_chars(name.data() + 3, name.data() + name.size(), number).ec != std::errc{})
            continue;
        auto& cpu = reading.cpus[number];
        uint64_t ticks = 0;
        for (size_t column = 0; column <= kSteal && words >> ticks; ++column) {
            cpu.all += ticks;
            if (column == kSoftirq)
                cpu.softirq = ticks;
        }
    }
}

// The queue whose received packets a driver counts by this name, of the ways that drivers have:
// rx_queue_0_packets, rx_queue_0_xdp_packets, rx0_packets, rx-0.packets, queue_0_rx_cnt.
std::optional<unsigned> queue_of(std::string_view name) {
    for (const std::string_view end : {"_xdp_packets", "_packets", ".packets", "_rx_cnt"}) {
        if (!name.ends_with(end))
            continue;
        std::string_view start = name.substr(0, name.size() - end.size());
        const size_t digits = start.find_last_not_of("0123456789") + 1;
        const std::string_view word = start.substr(0, digits);
        const bool known = word == "rx_queue_" || word == "rx" || word == "rx-" ||
                           (word == "queue_" && end == "_rx_cnt");
        unsigned queue = 0;
        if (known &&
            std::from_chars(start.data() + digits, start.data() + start.size(), queue).ec ==
                std::errc{})
            return queue;
    }
    return std::nullopt;
}

double per_second(uint64_t first, uint64_t last, double seconds) {
    return last > first && seconds > 0 ? static_cast<double>(last - first) / seconds : 0;
}

}  // namespace

Reading read_counters(const Machine& machine, const std::vector<std::string>& ports) {
    Reading reading;
    reading.at = std::chrono::steady_clock::now();
    read_softnet(machine, reading);
    read_times(machine, reading);
    for (const std::string& port : ports)
        for (const auto& [name, value] : machine.ethtool().counters(port))
            // A driver that counts both has every XDP packet in each.
            if (const auto queue = queue_of(name)) {
                auto& packets = reading.queues[port + " rx-" + std::to_string(*queue)];
                packets = std::max(packets, value);
            }
    return reading;
}

Rates rates_between(const Reading& first, const Reading& last) {
    const double seconds = std::chrono::duration<double>(last.at - first.at).count();
    Rates rates;
    for (const auto& [number, now] : last.cpus) {
        const auto found = first.cpus.find(number);
        if (found == first.cpus.end())
            continue;  // it came online in between
        const Reading::Cpu& then = found->second;
        const uint64_t ticks = now.all - then.all;
        rates.cpus.push_back({.cpu = number,
                              .packets = per_second(then.packets, now.packets, seconds),
                              .dropped = per_second(then.dropped, now.dropped, seconds),
                              .squeezed = per_second(then.squeezed, now.squeezed, seconds),
                              .steered = per_second(then.steered, now.steered, seconds),
                              .softirq = ticks == 0
                                             ? 0
                                             : static_cast<double>(now.softirq - then.softirq) /
                                                   static_cast<double>(ticks)});
    }
    for (const auto& [queue, packets] : last.queues)
        if (const auto found = first.queues.find(queue); found != first.queues.end())
            rates.queues.push_back({queue, per_second(found->second, packets, seconds)});
    return rates;
}

Rates measure(const Machine& machine, const std::vector<std::string>& ports,
              std::chrono::milliseconds span) {
    const Reading first = read_counters(machine, ports);
    std::this_thread::sleep_for(span);
    return rates_between(first, read_counters(machine, ports));
}

}  // namespace sluice
