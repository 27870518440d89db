// One thing of a machine that tuning may change, by a name that outlives its place.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "tune/device.h"

namespace sluice {

enum class SettingKind : uint8_t {
    file,  // `name` is its path: a mask of a queue, the size of a table
    irq,   // `name` is its card's and, behind a blank, what /proc/interrupts calls it: numbers
           // change when channels do
    device_part  // `name` is the interface
};

struct Setting {
    SettingKind kind = SettingKind::file;
    std::string name;
    DevicePart part = DevicePart::channels;  // of SettingKind::device_part

    friend bool operator==(const Setting&, const Setting&) = default;

    // "file /sys/class/net/eth0/queues/rx-0/rps_cpus", "irq eth0 virtio0-input.0", "channels eth0"
    [[nodiscard]] std::string to_string() const;
    static Result<Setting> parse(std::string_view text);
};

Setting irq_setting(std::string_view port, std::string_view irq);
// The reverse; no port where a journal of an earlier version has none.
std::pair<std::string, std::string> port_and_irq(const Setting& setting);

// Whether `found` is what `wanted` asked for, however the kernel chooses to write it.
bool is_same_value(const Setting& setting, std::string_view wanted, std::string_view found);

}  // namespace sluice
