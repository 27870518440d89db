#include "tune/setting.h"

#include "base/text.h"
#include "tune/cpu_set.h"

namespace sluice {

namespace {

constexpr std::string_view kFile = "file ";
constexpr std::string_view kIrq = "irq ";

std::string_view without_line_end(std::string_view text) {
    while (text.ends_with('\n'))
        text.remove_suffix(1);
    return text;
}

bool is_same_set(Result<CpuSet> (*parse)(std::string_view), std::string_view wanted,
                 std::string_view found) {
    const auto first = parse(wanted);
    const auto second = parse(found);
    return first && second && *first == *second;
}

// Every name of `wanted` is in `found` with the same value: an adaptive card moves its microseconds
// by itself, so they are not asked for there.
bool is_part_of(DevicePart part, std::string_view wanted, std::string_view found) {
    DeviceFacts facts, more;
    // How a driver arranges its own table is up to it.
    if (const auto queues = default_queues(part, wanted))
        return set_part(facts, part, found) && is_even(facts.spread, *queues);
    if (!set_part(facts, part, found) || !set_part(more, part, found) ||
        !set_part(more, part, wanted))
        return false;
    return part_text(facts, part) == part_text(more, part);
}

}  // namespace

std::string Setting::to_string() const {
    switch (kind) {
        case SettingKind::file:
            return std::string(kFile) + name;
        case SettingKind::irq:
            return std::string(kIrq) + name;
        case SettingKind::device_part:
            break;
    }
    return std::string(part_name(part)) + ' ' + name;
}

Result<Setting> Setting::parse(std::string_view text) {
    if (text.starts_with(kFile)) {
        const std::string_view path = text.substr(kFile.size());
        if ((path.starts_with("/sys/") || path.starts_with("/proc/")) &&
            path.find("/..") == std::string_view::npos)
            return Setting{SettingKind::file, std::string(path)};
        return failed(in_quotes(path) + " is no setting of the kernel");
    }
    if (text.starts_with(kIrq))
        return Setting{SettingKind::irq, std::string(text.substr(kIrq.size()))};
    const size_t blank = text.find(' ');
    for (const DevicePart part : kDeviceParts)
        if (blank != std::string_view::npos && text.substr(0, blank) == part_name(part))
            return Setting{SettingKind::device_part, std::string(text.substr(blank + 1)), part};
    return failed(in_quotes(text) + " is nothing that can be set");
}

Setting irq_setting(std::string_view port, std::string_view irq) {
    return {SettingKind::irq, std::string(port) + ' ' + std::string(irq)};
}

std::pair<std::string, std::string> port_and_irq(const Setting& setting) {
    const size_t blank = setting.name.find(' ');
    if (blank == std::string::npos)
        return {{}, setting.name};
    return {setting.name.substr(0, blank), setting.name.substr(blank + 1)};
}

bool is_same_value(const Setting& setting, std::string_view wanted, std::string_view found) {
    wanted = without_line_end(wanted);
    found = without_line_end(found);
    if (wanted == found)
        return true;
    if (setting.kind == SettingKind::irq)
        return is_same_set(parse_cpu_list, wanted, found);
    if (setting.kind == SettingKind::device_part)
        return is_part_of(setting.part, wanted, found);
    const bool is_mask = setting.name.ends_with("_cpus");
    return is_mask && is_same_set(parse_cpu_mask, wanted, found);
}

}  // namespace sluice
