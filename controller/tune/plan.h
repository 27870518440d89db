// What to change so that a card's packets are spread as the kernel's own rules say, and why.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tune/host.h"
#include "tune/journal.h"
#include "tune/port.h"
#include "tune/setting.h"

namespace sluice {

struct Change {
    Setting setting;
    std::string what;           // for people: "IRQ 24 (virtio0-input.0)"
    std::string before, after;  // for people: "CPU 0-3", "CPU 0"
    std::string value;          // as it is written
    std::string why;            // one sentence
    bool is_optional = false;   // a driver that refuses it is no reason to undo the rest
};

// A setting, and what it has to be.
struct Aim {
    Setting setting;
    std::string value;  // as it is written
};

// Of the device itself, before the gate is attached; the rest follows the queues that are there
// then.
bool is_of_device(const Change& change);

// Where a queue's packets are worked on.
struct QueuePlace {
    unsigned queue = 0;
    unsigned cpu = 0;
    bool has_interrupt = false;  // else the CPU that sends is the one that receives, as on a veth
};

struct PortPlan {
    std::string name;
    std::string driver;
    unsigned queues = 0;  // today
    unsigned queues_wanted = 0;
    unsigned queues_right = 0;  // as wanted, but for an XDP program that is in the way
    std::optional<unsigned> most_queues;
    std::optional<unsigned> node;
    size_t cores = 0;                // that may take its interrupts
    std::vector<QueuePlace> places;  // as planned
};

struct Plan {
    std::string interface;
    TuneProfile profile = TuneProfile::balanced;
    std::vector<PortPlan> ports;
    std::vector<Change> changes;          // in the order that works
    std::vector<Aim> settled;             // as it should be already: to be watched with the rest
    std::vector<std::string> cautions;    // what is interrupted while it is done
    std::vector<std::string> notes;       // what is left as it is, and why
    std::vector<std::string> hindrances;  // why none of it can be done here

    [[nodiscard]] bool is_done() const { return changes.empty(); }
};

struct PlanInput {
    std::string interface;
    Host host;
    std::vector<Port> ports;
    CpuSet taken;                // by the queues of cards that were tuned before this one
    std::vector<Aim> not_taken;  // what the driver said yes to without doing it
    TuneSettings wishes;
};

// Looks, and changes nothing. Errors as those of ports_below() and look_at_cpus(); journals that
// cannot be read take no CPUs.
Result<PlanInput> look_at(const Machine& machine, const JournalFolder& journals,
                          const std::string& interface, const TuneSettings& wishes);
// On numbers alone.
Plan make_plan(const PlanInput& input);

}  // namespace sluice
