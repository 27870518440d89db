#include "operate/table_needs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <sstream>
#include <string_view>
#include <variant>

#include "base/file.h"

namespace sluice {

namespace {

// Beyond this, sets of seven words overflow often while others stand half empty.
constexpr uint64_t kFillPercent = 70;
// Without limits there is nothing to keep; but a policy with limits may come before the next
// attach, and these three are what most have.
constexpr uint64_t kUsualWords = 3;

constexpr std::array<uint32_t, 3> kServiceSteps = {64, 256, SLUICE_MAX_SERVICES + 1};
constexpr size_t kLeastInterfaces = 4;
constexpr uint64_t kMostSets = 1ULL << 30;

uint64_t words_of(const Service& service) {
    const auto buckets = static_cast<uint64_t>(std::count_if(
        service.per_source.begin(), service.per_source.end(),
        [](const auto& limit) { return std::holds_alternative<TokenBucket>(limit.second); }));
    return buckets + (service.jail ? 1 : 0);
}

bool has_window(const Service& service) {
    return std::any_of(service.per_source.begin(), service.per_source.end(), [](const auto& limit) {
        return std::holds_alternative<StrictWindow>(limit.second);
    });
}

std::string mebibytes(uint64_t bytes) {
    return std::to_string(bytes >> 20) + " MiB";
}

uint32_t sets_for(uint64_t entries, uint64_t per_set) {
    const uint64_t sets = entries * 100 / (per_set * kFillPercent) + 1;
    return static_cast<uint32_t>(std::min(std::bit_ceil(sets), kMostSets));
}

}  // namespace

TableSizes needed_sizes(const Policy& policy, uint32_t cpus) {
    TableSizes sizes;
    uint64_t words = 0;
    bool windows = false;
    for (const Service& service : policy.services) {
        words = std::max(words, words_of(service));
        windows = windows || has_window(service);
    }
    if (words == 0)
        words = kUsualWords;
    const uint64_t capacity = policy.sources.capacity;
    sizes.source_sets = sets_for(capacity * words, SLUICE_SET_WORDS);
    if (windows)
        sizes.window_sets = sets_for(capacity, SLUICE_WINDOWS_PER_SET);

    const size_t services = policy.services.size() + 1;  // "other" may be among them, or not
    sizes.services = *std::find_if(kServiceSteps.begin(), kServiceSteps.end() - 1,
                                   [&](uint32_t step) { return services <= step; });
    sizes.interfaces = static_cast<uint32_t>(
        std::clamp<size_t>(policy.interfaces.size(), kLeastInterfaces, SLUICE_MAX_INTERFACES));
    sizes.cpus = std::bit_ceil(std::max(cpus, 1U));
    return sizes;
}

Result<uint32_t> cpu_count() {
    const std::string path = "/sys/devices/system/cpu/present";
    const auto text = read_file(path);
    if (!text)
        return text.error();
    // "0-3,8-11": the last number is the highest one.
    const size_t start =
        text->find_last_of(",-") == std::string::npos ? 0 : text->find_last_of(",-") + 1;
    uint32_t highest = 0;
    const char* end = text->data() + text->size();
    if (std::from_chars(text->data() + start, end, highest).ec != std::errc{})
        return failed("cannot read " + path);
    return highest + 1;
}

Result<uint64_t> available_memory() {
    const auto text = read_file("/proc/meminfo");
    if (!text)
        return text.error();
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string key;
        uint64_t kibibytes = 0;
        if (words >> key >> kibibytes && key == "MemAvailable:")
            return kibibytes * 1024;
    }
    return failed("/proc/meminfo does not say how much memory is available");
}

Result<TableSizes> affordable_sizes(
    const Policy& policy, const std::function<void(uint64_t needed, uint64_t available)>& told) {
    const auto cpus = cpu_count();
    if (!cpus)
        return cpus.error();
    const TableSizes sizes = needed_sizes(policy, *cpus);
    const auto available = available_memory();
    if (!available)
        return available.error();
    if (told)
        told(sizes.memory(), *available);
    if (sizes.memory() > *available)
        return failed("the tables need " + mebibytes(sizes.memory()) + ", but only " +
                          mebibytes(*available) + " of memory are available",
                      "lower [sources] capacity");
    return sizes;
}

std::vector<std::string> shortfalls(const TableSizes& have, const TableSizes& need) {
    std::vector<std::string> found;
    const auto compare = [&](std::string_view what, uint64_t had, uint64_t needed) {
        if (had < needed)
            found.push_back(std::string(what) + ": " + std::to_string(had) + " of " +
                            std::to_string(needed));
    };
    compare("words for sources", uint64_t{have.source_sets} * SLUICE_SET_WORDS,
            uint64_t{need.source_sets} * SLUICE_SET_WORDS);
    compare("strict windows", uint64_t{have.window_sets} * SLUICE_WINDOWS_PER_SET,
            uint64_t{need.window_sets} * SLUICE_WINDOWS_PER_SET);
    compare("services", have.services, need.services);
    compare("interfaces", have.interfaces, need.interfaces);
    compare("CPUs", have.cpus, need.cpus);
    return found;
}

}  // namespace sluice
