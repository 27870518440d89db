#include "tune/plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "tune/place.h"

namespace sluice {

namespace {

// What Documentation/networking/scaling suggests for a moderately loaded server.
constexpr unsigned kFlowEntries = 32'768;
constexpr const char* kFlowTable = "/proc/sys/net/core/rps_sock_flow_entries";

// Descriptors a queue. A burst has to fit while its CPU is busy; larger rings spoil the cache.
constexpr unsigned kBalancedRing = 1'024;
constexpr unsigned kFloodRing = 4'096;
// Microseconds until a card interrupts: few for short waits, more where every interrupt is one too
// many.
constexpr unsigned kLatencyWait = 8;
constexpr unsigned kFloodWait = 64;

std::string text_of(unsigned number) {
    return std::to_string(number);
}

std::string plural(size_t number, const std::string& noun) {
    return std::to_string(number) + ' ' + noun + (number == 1 ? "" : "s");
}

std::string cpus_text(const CpuSet& cpus) {
    return cpus.empty() ? "none" : (cpus.size() == 1 ? "CPU " : "CPUs ") + cpu_list_text(cpus);
}

// Drivers whose XDP needs a sending queue of its own for each receiving one.
bool needs_half(const std::string& driver) {
    return driver == "ena" || driver == "gve";
}

// A card with hardware that loses its link while it is set up anew.
bool has_link_to_lose(const std::string& driver) {
    return driver != "veth" && driver != "virtio_net" && driver != "tun" && driver != "hv_netvsc";
}

// How many queues each CPU has already, of whatever card.
using Load = std::map<unsigned, unsigned>;

// What a queue gets for its interrupts.
enum class Seat : uint8_t { core, second_thread, shared };

class PortPlanner {
  public:
    PortPlanner(const PlanInput& input, const Port& port, Plan& plan)
        : input_(input),
          port_(port),
          plan_(plan),
          workers_(workers_near(input.host, port.node, input.wishes.reserve_cores)) {}

    // First how many queues, then where each belongs, beside those of other cards.
    void place(Load& load);
    // The device's own, then interrupts, then masks: later ones depend on earlier ones.
    void plan_device();
    void plan_interrupts();
    // `busy`: CPUs that take interrupts, of whatever port.
    void plan_masks(const CpuSet& busy);

    [[nodiscard]] const PortPlan& summary() const { return summary_; }
    [[nodiscard]] const Workers& workers() const { return workers_; }
    [[nodiscard]] bool steers() const { return steers_; }
    [[nodiscard]] CpuSet interrupted() const;

  private:
    void count_queues();
    [[nodiscard]] std::optional<unsigned> cpu_that_stays(unsigned queue) const;
    QueuePlace next_place(unsigned queue, Load& load);
    void plan_channels();
    void plan_rings();
    void plan_coalescing();
    void plan_spread();
    void plan_spread_of_new_channels();
    [[nodiscard]] CpuSet steered_to(unsigned home, const CpuSet& busy) const;
    void plan_steering(const ReceiveQueue& queue, const CpuSet& busy);
    void plan_sending();
    [[nodiscard]] unsigned cpu_of(unsigned queue) const { return summary_.places[queue].cpu; }
    bool was_not_taken(const Setting& setting, const std::string& what, const std::string& value);
    bool change_part(DevicePart part, std::string before, std::string after, std::string value,
                     std::string why);
    void settle(Setting setting, std::string value) {
        plan_.settled.push_back({std::move(setting), std::move(value)});
    }
    void settle_part(DevicePart part, std::string value) {
        settle({SettingKind::device_part, port_.name, part}, std::move(value));
    }
    [[nodiscard]] bool has(VirtioFeature feature) const {
        return port_.virtio && port_.virtio->contains(feature);
    }
    [[nodiscard]] bool can_adapt() const;
    [[nodiscard]] bool can_wait() const;
    void plan_adaptive();
    void plan_wait(unsigned wanted, bool is_right, std::string why);
    void change_file(const std::string& path, const std::string& what, std::string before,
                     std::string after, std::string value, std::string why);
    [[nodiscard]] std::string near() const {
        return port_.node ? " on node " + text_of(*port_.node) : "";
    }

    const PlanInput& input_;
    const Port& port_;
    Plan& plan_;
    Workers workers_;
    PortPlan summary_;
    std::vector<Seat> seats_;  // by queue
    bool steers_ = false;
};

void PortPlanner::count_queues() {
    const DeviceFacts& device = port_.device;
    summary_.queues =
        device.channels ? receiving(*device.channels) : static_cast<unsigned>(port_.receive.size());
    summary_.queues_wanted = summary_.queues;
    if (!device.channels || !device.most_channels)
        return;
    const unsigned most = receiving(*device.most_channels);
    summary_.most_queues = most;
    const unsigned usable = needs_half(device.driver) ? std::max(1U, most / 2) : most;
    if (usable == 0)
        return;
    summary_.queues_wanted = std::min(usable, static_cast<unsigned>(workers_.cores));
}

// Of an interrupt that the kernel manages.
std::optional<unsigned> PortPlanner::cpu_that_stays(unsigned queue) const {
    for (const QueueIrq& irq : port_.irqs)
        if (irq.receives && irq.queue == queue && irq.managed && !irq.affinity.empty())
            return *irq.affinity.begin();
    return std::nullopt;
}

// The least busy CPU, of equals the best.
QueuePlace PortPlanner::next_place(unsigned queue, Load& load) {
    const auto best =
        std::ranges::min_element(workers_.order, {}, [&](unsigned cpu) { return load[cpu]; });
    const auto at = static_cast<size_t>(best - workers_.order.begin());
    seats_.push_back(load[*best] != 0      ? Seat::shared
                     : at < workers_.cores ? Seat::core
                                           : Seat::second_thread);
    load[*best]++;
    return {.queue = queue, .cpu = *best, .has_interrupt = !port_.irqs.empty()};
}

void PortPlanner::place(Load& load) {
    summary_.name = port_.name;
    summary_.driver = port_.device.driver;
    summary_.node = port_.node;
    summary_.cores = workers_.cores;
    count_queues();
    summary_.queues_right = summary_.queues_wanted;
    if (summary_.queues_wanted != summary_.queues && port_.device.xdp == XdpUse::native) {
        plan_.notes.push_back(
            port_.name + ": " + plural(summary_.queues_wanted, "queue") +
            " would be right, but drivers refuse that while XDP is attached: sluicectl detach " +
            input_.interface + ", apply, attach again.");
        summary_.queues_wanted = summary_.queues;
    }
    for (unsigned queue = 0; queue < summary_.queues_wanted; ++queue)
        if (const auto cpu = cpu_that_stays(queue))
            load[*cpu]++;
    for (unsigned queue = 0; queue < summary_.queues_wanted; ++queue) {
        if (const auto cpu = cpu_that_stays(queue)) {
            seats_.push_back(Seat::core);
            summary_.places.push_back({.queue = queue, .cpu = *cpu, .has_interrupt = true});
        } else {
            summary_.places.push_back(next_place(queue, load));
        }
    }
}

CpuSet PortPlanner::interrupted() const {
    CpuSet cpus;
    for (const QueuePlace& place : summary_.places)
        if (place.has_interrupt)
            cpus.insert(place.cpu);
    return cpus;
}

// What was said yes to and not done once is not asked for again.
bool PortPlanner::was_not_taken(const Setting& setting, const std::string& what,
                                const std::string& value) {
    const bool was = std::ranges::any_of(input_.not_taken, [&](const Aim& aim) {
        return aim.setting == setting && aim.value == value;
    });
    if (was)
        plan_.notes.push_back(what + ": " + value +
                              " was taken and not done, so it is not asked for again.");
    return was;
}

// Whether it is planned.
bool PortPlanner::change_part(DevicePart part, std::string before, std::string after,
                              std::string value, std::string why) {
    const Setting setting{SettingKind::device_part, port_.name, part};
    const std::string what = port_.name + ' ' + std::string(part_name(part));
    if (was_not_taken(setting, what, value))
        return false;
    plan_.changes.push_back({.setting = setting,
                             .what = what,
                             .before = std::move(before),
                             .after = std::move(after),
                             .value = std::move(value),
                             .why = std::move(why),
                             .is_optional = part != DevicePart::channels});
    return true;
}

void PortPlanner::change_file(const std::string& path, const std::string& what, std::string before,
                              std::string after, std::string value, std::string why) {
    plan_.changes.push_back({.setting = {SettingKind::file, path},
                             .what = what,
                             .before = std::move(before),
                             .after = std::move(after),
                             .value = std::move(value),
                             .why = std::move(why)});
}

void PortPlanner::plan_channels() {
    const unsigned now = summary_.queues, wanted = summary_.queues_wanted;
    if (now == wanted) {
        if (const auto channels = part_text(port_.device, DevicePart::channels))
            settle_part(DevicePart::channels, *channels);
        return;
    }
    const bool combined = port_.device.channels->combined != 0;
    Channels channels = *port_.device.channels;
    if (combined)
        channels.combined = wanted;
    else
        channels.rx = channels.tx = wanted;
    DeviceFacts facts;
    facts.channels = channels;
    std::string why;
    if (wanted < workers_.cores && needs_half(port_.device.driver))
        why = port_.device.driver + " keeps half of its " + plural(*summary_.most_queues, "queue") +
              " for what XDP sends, so " + text_of(wanted) + " can receive.";
    else if (wanted < workers_.cores)
        why = "The driver has no more, and every core" + near() + " can use one.";
    else if (wanted < now)
        why = "One queue for each of the " + plural(wanted, "core") + near() +
              ": more of them only add interrupts.";
    else
        why = "One queue for each of the " + plural(wanted, "core") + near() +
              ": fewer leave cores idle in a flood.";
    change_part(DevicePart::channels, text_of(now), text_of(wanted),
                *part_text(facts, DevicePart::channels), std::move(why));
    plan_.cautions.push_back(
        port_.name + ": a change of channels " +
        (has_link_to_lose(port_.device.driver) ? "takes the link down for a moment, and " : "") +
        "sets RSS and all affinities back, so it comes first.");
}

void PortPlanner::plan_rings() {
    const auto& now = port_.device.rings;
    const auto& most = port_.device.most_rings;
    if (!now || !most || input_.wishes.profile == TuneProfile::latency)
        return;
    const bool flood = input_.wishes.profile == TuneProfile::flood;
    const unsigned wanted = std::min(most->rx, flood ? kFloodRing : kBalancedRing);
    const auto value = [](unsigned descriptors) { return "rx " + text_of(descriptors); };
    if (now->rx >= wanted) {
        settle_part(DevicePart::rings, value(now->rx));
        return;
    }
    const bool is_planned =
        change_part(DevicePart::rings, text_of(now->rx), text_of(wanted), value(wanted),
                    "So many packets a queue wait, instead of being lost, while its CPU is busy.");
    if (is_planned && has_link_to_lose(port_.device.driver))
        plan_.cautions.push_back(port_.name +
                                 ": a change of rings takes the link down for a moment.");
}

// virtio_net knows what its host cannot do, and says that it can.
bool PortPlanner::can_adapt() const {
    return port_.device.can_adapt.value_or(true) &&
           (!port_.virtio || has(VirtioFeature::queue_coalescing));
}

bool PortPlanner::can_wait() const {
    return port_.device.can_wait.value_or(true) &&
           (!port_.virtio || has(VirtioFeature::coalescing) ||
            has(VirtioFeature::queue_coalescing));
}

void PortPlanner::plan_adaptive() {
    constexpr const char* kOn = "adaptive-rx on";
    if (port_.device.coalescing->adaptive_rx)
        settle_part(DevicePart::coalescing, kOn);
    else if (can_adapt())
        change_part(DevicePart::coalescing, *part_text(port_.device, DevicePart::coalescing), kOn,
                    kOn, "The card itself waits longer the more packets come.");
    else
        plan_.notes.push_back(port_.name +
                              ": has no adaptive coalescing, so it interrupts as it does today.");
}

void PortPlanner::plan_wait(unsigned wanted, bool is_right, std::string why) {
    const auto before = *part_text(port_.device, DevicePart::coalescing);
    const std::string value = "adaptive-rx off rx-usecs " + text_of(wanted);
    if (is_right)
        settle_part(DevicePart::coalescing, before);
    else if (can_wait())
        change_part(DevicePart::coalescing, before, value, value, std::move(why));
    else
        plan_.notes.push_back(port_.name +
                              ": cannot be told how long to wait until it interrupts.");
}

void PortPlanner::plan_coalescing() {
    if (!port_.device.coalescing)
        return;
    const Coalescing& now = *port_.device.coalescing;
    switch (input_.wishes.profile) {
        case TuneProfile::balanced:
            plan_adaptive();
            return;
        case TuneProfile::latency:
            plan_wait(kLatencyWait, !now.adaptive_rx && now.rx_usecs <= kLatencyWait,
                      "A packet waits for its interrupt for so many microseconds at most.");
            return;
        case TuneProfile::flood:
            break;
    }
    plan_wait(kFloodWait, !now.adaptive_rx && now.rx_usecs >= kFloodWait,
              "Fewer interrupts, each for more packets; a packet waits a little longer.");
}

void PortPlanner::plan_spread() {
    const auto& spread = port_.device.spread;
    if (spread.empty() || summary_.queues < 2)
        return;
    if (is_even(spread, summary_.queues)) {
        settle_part(DevicePart::spread, default_spread(summary_.queues));
        return;
    }
    std::vector<size_t> buckets(summary_.queues);
    for (const uint32_t queue : spread)
        if (queue < buckets.size())
            buckets[queue]++;
    const auto [least, most] = std::ranges::minmax_element(buckets);
    const auto name = [&](auto at) { return std::to_string(at - buckets.begin()); };
    change_part(DevicePart::spread,
                "queue " + name(least) + " has " + plural(*least, "bucket") + ", queue " +
                    name(most) + ' ' + std::to_string(*most),
                "even", default_spread(summary_.queues),
                "RSS gives every queue its part, so that none is full while others are idle.");
}

// Whether somebody set a table by hand does not show.
void PortPlanner::plan_spread_of_new_channels() {
    if (!port_.device.spread.empty())
        change_part(DevicePart::spread, "over " + plural(summary_.queues, "queue"),
                    "the driver's own", default_spread(summary_.queues_wanted),
                    "A table that was set by hand holds up a change of channels, or stays as it is "
                    "after it; the driver's own follows.");
}

void PortPlanner::plan_device() {
    const bool changes_channels = summary_.queues != summary_.queues_wanted;
    if (changes_channels)
        plan_spread_of_new_channels();
    plan_channels();
    plan_rings();
    plan_coalescing();
    if (!changes_channels)
        plan_spread();
    plan_.ports.push_back(summary_);
}

void PortPlanner::plan_interrupts() {
    size_t managed = 0;
    for (const QueueIrq& irq : port_.irqs) {
        if (irq.queue >= summary_.queues_wanted)
            continue;
        if (irq.managed) {
            ++managed;
            continue;
        }
        const unsigned cpu = cpu_of(irq.queue);
        if (irq.affinity == CpuSet{cpu}) {
            settle(irq_setting(port_.name, irq.name), text_of(cpu));
            continue;
        }
        const std::string what = "IRQ " + text_of(irq.number) + " (" + irq.name + ')';
        if (was_not_taken(irq_setting(port_.name, irq.name), what, text_of(cpu)))
            continue;
        std::string why = "Queue " + text_of(irq.queue);
        if (seats_[irq.queue] == Seat::core)
            why += " has a core" + near() + " to itself.";
        else if (seats_[irq.queue] == Seat::second_thread)
            why += " has the second thread of a core: there are more queues than cores.";
        else
            why += " shares a CPU: there are more queues than CPUs.";
        plan_.changes.push_back({.setting = irq_setting(port_.name, irq.name),
                                 .what = what,
                                 .before = cpus_text(irq.affinity),
                                 .after = cpus_text({cpu}),
                                 .value = text_of(cpu),
                                 .why = std::move(why),
                                 // The kernel refuses where it manages the interrupt itself.
                                 .is_optional = true});
    }
    if (managed != 0)
        plan_.notes.push_back(port_.name + ": the kernel manages " + plural(managed, "interrupt") +
                              " itself and lets nobody move them; masks follow where they are.");
}

// Cores without interrupts in the memory domain of the CPU that steers.
CpuSet PortPlanner::steered_to(unsigned home, const CpuSet& busy) const {
    CpuSet cpus;
    const Cpu* from = input_.host.find(home);
    if (summary_.queues_wanted >= workers_.cores || from == nullptr)
        return cpus;
    for (size_t core = 0; core < workers_.cores; ++core) {
        const Cpu* to = input_.host.find(workers_.order[core]);
        if (to != nullptr && to->node == from->node && !busy.contains(to->number))
            cpus.insert(to->number);
    }
    return cpus;
}

void PortPlanner::plan_steering(const ReceiveQueue& queue, const CpuSet& busy) {
    const CpuSet wanted = steered_to(cpu_of(queue.number), busy);
    const std::string_view why_none =
        summary_.queues_wanted >= workers_.cores
            ? "There is a queue for each core: steering on would only add interrupts."
            : "Every core of its node takes interrupts: steering on would only add more.";
    steers_ = steers_ || !wanted.empty();
    const std::string folder = queue_folder(port_.name, true, queue.number);
    const std::string name = port_.name + " rx-" + text_of(queue.number);
    if (wanted == queue.rps)
        settle({SettingKind::file, folder + "/rps_cpus"}, cpu_mask_text(wanted));
    else
        change_file(folder + "/rps_cpus", name + " RPS", cpus_text(queue.rps), cpus_text(wanted),
                    cpu_mask_text(wanted),
                    wanted.empty()
                        ? std::string(why_none)
                        : "Fewer queues than cores: these share the work on what XDP passes, and "
                          "leave CPUs with interrupts alone.");
    if (wanted.empty() || !input_.host.flow_entries)
        return;
    const unsigned flows = std::bit_floor(kFlowEntries / std::max(1U, summary_.queues_wanted));
    if (queue.flows >= flows)
        settle({SettingKind::file, folder + "/rps_flow_cnt"}, text_of(queue.flows));
    else
        change_file(folder + "/rps_flow_cnt", name + " RFS", text_of(queue.flows), text_of(flows),
                    text_of(flows),
                    "Packets go to the CPU where their reader runs; this is the queue's part of "
                    "the table.");
}

void PortPlanner::plan_sending() {
    std::map<unsigned, unsigned> cpus;
    for (const SendQueue& queue : port_.send)
        if (queue.number < summary_.queues_wanted)
            cpus[queue.number] = cpu_of(queue.number);
    // A single queue has no mask.
    if (cpus.size() < 2)
        return;
    const auto shares = senders(input_.host, cpus);
    for (const SendQueue& queue : port_.send) {
        const auto share = shares.find(queue.number);
        if (share == shares.end() || !queue.xps)
            continue;
        const std::string file = queue_folder(port_.name, false, queue.number) + "/xps_cpus";
        if (*queue.xps == share->second) {
            settle({SettingKind::file, file}, cpu_mask_text(share->second));
            continue;
        }
        change_file(file, port_.name + " tx-" + text_of(queue.number) + " XPS",
                    cpus_text(*queue.xps), cpus_text(share->second), cpu_mask_text(share->second),
                    "No queue is closer to them: CPU " + text_of(cpus[queue.number]) +
                        " completes what this one has sent.");
    }
}

void PortPlanner::plan_masks(const CpuSet& busy) {
    for (const ReceiveQueue& queue : port_.receive)
        if (queue.number < summary_.queues_wanted)
            plan_steering(queue, busy);
    plan_sending();
}

void plan_flow_table(const PlanInput& input, Plan& plan) {
    if (!input.host.flow_entries)
        return;
    if (*input.host.flow_entries >= kFlowEntries) {
        plan.settled.push_back(
            {{SettingKind::file, kFlowTable}, text_of(*input.host.flow_entries)});
        return;
    }
    plan.changes.push_back(
        {.setting = {SettingKind::file, kFlowTable},
         .what = "net.core.rps_sock_flow_entries",
         .before = text_of(*input.host.flow_entries),
         .after = text_of(kFlowEntries),
         .value = text_of(kFlowEntries),
         .why = "So many flows can be remembered with the CPU that reads them (RFS)."});
}

void add_notes(const PlanInput& input, const PortPlanner& planner, const Port& port, Plan& plan) {
    const Workers& workers = planner.workers();
    const PortPlan& summary = planner.summary();
    if (workers.all_isolated)
        plan.notes.push_back(port.name + ": all CPUs are isolated, so isolated ones are taken.");
    else if (!port.node && input.host.nodes.size() > 1)
        plan.notes.push_back(port.name + ": names no node, so all " +
                             plural(input.host.nodes.size(), "node") + " count as near.");
    if (!workers.reserved.empty())
        plan.notes.push_back(cpus_text(workers.reserved) + ": reserved, no queue is put there.");
    if (planner.steers() && port.device.xdp != XdpUse::generic)
        plan.notes.push_back(
            port.name + ": RPS acts behind native XDP, so what the gate drops is dropped on " +
            (summary.queues_wanted == 1 ? "one CPU" : plural(summary.queues_wanted, "CPU")) +
            " whatever is set here; more queues would spread that.");
    if (port.irqs.empty() && summary.queues_wanted > 0)
        plan.notes.push_back(port.name +
                             ": has no interrupts of its own, so there are none to place.");
}

void add_circumstances(const PlanInput& input, Plan& plan) {
    const bool moves = std::ranges::any_of(
        plan.changes, [](const Change& change) { return change.setting.kind == SettingKind::irq; });
    const bool has_irqs =
        std::ranges::any_of(input.ports, [](const Port& port) { return !port.irqs.empty(); });
    if (input.host.irqbalance && has_irqs)
        plan.notes.emplace_back(
            "irqbalance runs, and moves interrupts every 10 s: apply writes a policy script that "
            "takes these ones from it, and says how to install it.");
    if (input.host.tuned)
        plan.notes.emplace_back(
            "tuned runs, and may set some of this as well: tuned-adm active shows its profile.");
    if (input.host.sys_read_only && !plan.changes.empty())
        plan.hindrances.emplace_back(
            "/sys is read-only, as in a container: apply this on the host itself");
    else if (input.host.irqs_read_only && moves)
        plan.hindrances.emplace_back(
            "/proc/irq is read-only, as in a container: apply this on the host itself");
}

std::vector<Aim> not_taken_before(const Machine& machine, const JournalFolder& journals,
                                  const std::string& interface) {
    std::vector<Aim> aims;
    const auto journal = journals.read(interface);
    if (!journal || journal->boot != machine.boot())
        return aims;
    for (const JournalEntry& entry : journal->entries)
        if (entry.not_taken)
            aims.push_back({entry.setting, *entry.not_taken});
    return aims;
}

// Earlier ones keep their places whenever later ones are planned: otherwise each apply would move
// the queues of the other.
CpuSet taken_before(const Machine& machine, const JournalFolder& journals,
                    const std::string& interface, const std::vector<std::string>& ports) {
    const auto own = journals.read(interface);
    const bool is_tuned = own && own->boot == machine.boot();
    CpuSet taken;
    for (const std::string& other : journals.interfaces()) {
        const auto journal = journals.read(other);
        if (other == interface || !journal || journal->boot != machine.boot() ||
            (is_tuned && std::pair(journal->since_ms, other) > std::pair(own->since_ms, interface)))
            continue;
        for (const JournalEntry& entry : journal->entries) {
            if (entry.setting.kind != SettingKind::irq || !entry.wanted)
                continue;
            // A slave may have been tuned by itself, before its bond.
            const std::string port = port_and_irq(entry.setting).first;
            if (auto cpus = parse_cpu_list(*entry.wanted);
                cpus && std::ranges::find(ports, port) == ports.end())
                taken.merge(*cpus);
        }
    }
    return taken;
}

}  // namespace

bool is_of_device(const Change& change) {
    return change.setting.kind == SettingKind::device_part;
}

Result<PlanInput> look_at(const Machine& machine, const JournalFolder& journals,
                          const std::string& interface, const TuneSettings& wishes) {
    PlanInput input;
    input.interface = interface;
    input.wishes = wishes;
    const auto names = ports_below(machine, interface);
    if (!names)
        return names.error();
    auto host = look_at_cpus(machine);
    if (!host)
        return host.error();
    input.host = *std::move(host);
    for (const std::string& name : *names) {
        auto port = look_at_port(machine, name);
        if (!port)
            return port.error();
        input.ports.push_back(*std::move(port));
    }
    input.taken = taken_before(machine, journals, interface, *names);
    input.not_taken = not_taken_before(machine, journals, interface);
    return input;
}

Plan make_plan(const PlanInput& input) {
    Plan plan;
    plan.interface = input.interface;
    plan.profile = input.wishes.profile;
    std::vector<PortPlanner> planners;
    CpuSet busy = input.taken;
    Load load;
    for (const unsigned cpu : input.taken)
        load[cpu]++;
    if (!input.taken.empty())
        plan.notes.push_back(cpus_text(input.taken) +
                             ": queues of cards that were tuned before are there, so these come "
                             "last.");
    for (const Port& port : input.ports) {
        PortPlanner& planner = planners.emplace_back(input, port, plan);
        planner.place(load);
        // The slaves of a bond are busy at the same time.
        busy.merge(planner.interrupted());
    }
    if (input.ports.size() > 1 || input.ports.front().name != input.interface) {
        std::string names;
        for (const Port& port : input.ports)
            names += (names.empty() ? "" : ", ") + port.name;
        plan.notes.push_back(input.interface + ": packets come in through " + names +
                             ", which is where they are spread.");
    }
    for (PortPlanner& planner : planners)
        planner.plan_device();
    for (PortPlanner& planner : planners)
        planner.plan_interrupts();
    for (PortPlanner& planner : planners)
        planner.plan_masks(busy);
    if (std::ranges::any_of(planners, &PortPlanner::steers))
        plan_flow_table(input, plan);
    for (size_t i = 0; i < planners.size(); ++i)
        add_notes(input, planners[i], input.ports[i], plan);
    add_circumstances(input, plan);
    return plan;
}

}  // namespace sluice
