// A network card as tuning sees it: its queues, their interrupts, and what they do today.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "tune/cpu_set.h"
#include "tune/device.h"
#include "tune/machine.h"

namespace sluice {

struct QueueIrq {
    unsigned number = 0;
    std::string name;  // as in /proc/interrupts
    unsigned queue = 0;
    bool receives = false, sends = false;
    CpuSet affinity;       // where it may arrive; of a managed one where it does
    bool managed = false;  // by the kernel, which lets nobody move it
};

struct ReceiveQueue {
    unsigned number = 0;
    CpuSet rps;
    unsigned flows = 0;  // rps_flow_cnt
};

struct SendQueue {
    unsigned number = 0;
    std::optional<CpuSet> xps;  // nothing where it is the only one
};

// What a virtio card may agree upon with its host: bits of the standard, of which not every
// system's linux/virtio_net.h knows all.
enum class VirtioFeature : uint8_t {
    guest_checksum = 1,
    switched_offloads = 2,  // the guest's offloads can be switched while it runs
    guest_tso4 = 7,
    guest_tso6 = 8,
    guest_ecn = 9,
    guest_ufo = 10,
    queue_coalescing = 52,  // of each queue by itself
    coalescing = 53,
    guest_uso4 = 54,
    guest_uso6 = 55
};

struct Port {
    std::string name;
    DeviceFacts device;
    std::optional<std::set<VirtioFeature>> virtio;  // of a virtio card: what was agreed upon
    std::optional<unsigned> node;                   // where it is plugged in
    std::vector<QueueIrq> irqs;                     // of queues only, by queue
    std::vector<ReceiveQueue> receive;
    std::vector<SendQueue> send;
};

// The numbers of a card's interrupts, those of its queues and others.
std::set<unsigned> irqs_of(const Machine& machine, const std::string& interface);

std::string queue_folder(const std::string& interface, bool receives, unsigned number);

// The cards that carry an interface: itself, the slaves of a bond, the device under a VLAN.
// ErrorCode::not_found with the names that exist as the hint.
Result<std::vector<std::string>> ports_below(const Machine& machine, const std::string& interface);
Result<Port> look_at_port(const Machine& machine, const std::string& name);

}  // namespace sluice
