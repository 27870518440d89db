// A network card as tuning sees it: its queues, their interrupts, and what they do today.
#pragma once

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

struct Port {
    std::string name;
    DeviceFacts device;
    std::optional<unsigned> node;  // where it is plugged in
    std::vector<QueueIrq> irqs;    // of queues only, by queue
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
