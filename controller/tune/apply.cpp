#include "tune/apply.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace sluice {

namespace {

using std::chrono::duration_cast, std::chrono::milliseconds;

// Between two looks at whether a change was confirmed.
constexpr milliseconds kPause(100);
// Between two tries to undo one, while somebody tunes or XDP is in the way.
constexpr milliseconds kPauseOfTries(1'000);
constexpr milliseconds kPatience(5'000);

// A table of the driver's own comes back as just that, so that it follows the queues again.
std::string way_back(const Machine& machine, const Setting& setting, std::string value) {
    if (setting.kind != SettingKind::device_part || setting.part != DevicePart::spread)
        return value;
    const auto device = machine.ethtool().read(setting.name);
    if (!device || !device->channels)
        return value;
    const unsigned queues = receiving(*device->channels);
    return is_default(device->spread, queues) ? default_spread(queues) : value;
}

// Remembers what is there, where that is not known yet; what does not exist needs no way back.
Status remember(const Machine& machine, const Setting& setting, Journal& journal) {
    if (journal.find(setting) != nullptr)
        return {};
    auto before = machine.get(setting);
    // A single queue refuses to show its mask.
    if (!before && before.error().code == ErrorCode::not_found)
        return {};
    if (!before)
        return before.error();
    journal.entries.push_back({setting, way_back(machine, setting, *std::move(before))});
    return {};
}

// What is right already is put back and watched like what is set.
Status adopt(const Machine& machine, const std::vector<Aim>& settled, Journal& journal) {
    for (const Aim& aim : settled) {
        if (const Status known = remember(machine, aim.setting, journal); !known)
            return known;
        if (JournalEntry* entry = journal.find(aim.setting))
            entry->wanted = aim.value;
    }
    return {};
}

// All that a driver sets back when its channels change.
std::vector<Setting> at_risk(const Port& port) {
    std::vector<Setting> settings = {{SettingKind::device_part, port.name, DevicePart::coalescing},
                                     {SettingKind::device_part, port.name, DevicePart::spread}};
    for (const QueueIrq& irq : port.irqs)
        settings.push_back(irq_setting(port.name, irq.name));
    for (const ReceiveQueue& queue : port.receive)
        for (const char* file : {"/rps_cpus", "/rps_flow_cnt"})
            settings.push_back(
                {SettingKind::file, queue_folder(port.name, true, queue.number) + file});
    for (const SendQueue& queue : port.send)
        if (queue.xps)
            settings.push_back(
                {SettingKind::file, queue_folder(port.name, false, queue.number) + "/xps_cpus"});
    return settings;
}

// One half of a plan: remembered on disk as a whole, then done one by one.
class Stage {
  public:
    Stage(const Machine& machine, const JournalFolder& journals, const ApplyOptions& options,
          Journal& journal, ApplyReport& report)
        : machine_(machine),
          journals_(journals),
          options_(options),
          journal_(journal),
          report_(report) {}

    Status run(const std::vector<Change>& changes) {
        for (const Change& change : changes) {
            if (const Status known = remember(machine_, change.setting, journal_); !known)
                return known;
            if (JournalEntry* entry = journal_.find(change.setting))
                entry->wanted = change.value;
        }
        if (const Status written = journals_.write(journal_); !written)
            return written;
        if (const bool is_first = !std::exchange(has_begun_, true);
            is_first && options_.before_first)
            if (const Status ready = options_.before_first(); !ready)
                return ready;
        for (const Change& change : changes)
            if (const Status done = make(change); !done)
                return done;
        return {};
    }

  private:
    Status make(const Change& change) {
        if (options_.before_change)
            options_.before_change(change);
        Status set = machine_.set(change.setting, change.value);
        bool was_done = true;
        // Drivers say yes to what they do not have.
        if (set && change.is_optional)
            if (const auto now = machine_.get(change.setting); now)
                was_done = is_same_value(change.setting, change.value, *now);
        if (!was_done)
            set = failed("not taken by the driver: it said yes, and did nothing");
        if (set) {
            report_.done.push_back(change);
            return {};
        }
        if (!change.is_optional)
            return set.error().with_context(change.what);
        report_.refused.push_back({change.what, set.error().message});
        if (JournalEntry* entry = journal_.find(change.setting)) {
            entry->wanted.reset();
            if (!was_done)
                entry->not_taken = change.value;
        }
        return {};
    }

    const Machine& machine_;
    const JournalFolder& journals_;
    const ApplyOptions& options_;
    Journal& journal_;
    ApplyReport& report_;
    bool has_begun_ = false;
};

std::vector<Change> half(const Plan& plan, bool of_device) {
    std::vector<Change> changes;
    std::ranges::copy_if(plan.changes, std::back_inserter(changes),
                         [&](const Change& change) { return is_of_device(change) == of_device; });
    return changes;
}

// Parts of devices first and in their order, because they set back what follows.
std::vector<JournalEntry> in_order_of_return(const Journal& journal) {
    std::vector<JournalEntry> entries = journal.entries;
    std::ranges::stable_sort(entries, {}, [](const JournalEntry& entry) {
        const bool of_device = entry.setting.kind == SettingKind::device_part;
        return std::pair(!of_device, of_device ? static_cast<int>(entry.setting.part) : 0);
    });
    return entries;
}

enum class Return : uint8_t { to_the_start, to_what_was_kept };

const std::string& target_of(const JournalEntry& entry, Return to) {
    return to == Return::to_what_was_kept && entry.kept ? entry.kept->value : entry.before;
}

// Drivers refuse another number of queues while XDP is attached, and half a return is worse than
// none.
Status can_go_back(const Machine& machine, const Journal& journal, Return to) {
    for (const JournalEntry& entry : journal.entries) {
        if (entry.setting.kind != SettingKind::device_part ||
            entry.setting.part != DevicePart::channels)
            continue;
        const auto device = machine.ethtool().read(entry.setting.name);
        if (!device || device->xdp != XdpUse::native ||
            part_text(*device, DevicePart::channels) == target_of(entry, to))
            continue;
        Error error =
            failed(entry.setting.name +
                       ": drivers refuse another number of queues while XDP is attached, "
                       "so nothing was put back",
                   "sluicectl detach " + journal.interface + ", then sluicectl tune revert " +
                       journal.interface + ", then attach again");
        error.busy = true;
        return error;
    }
    return {};
}

// A table that was set by hand holds up a change to fewer queues.
void make_way_for_channels(const Machine& machine, const Setting& setting,
                           const std::string& channels) {
    const Setting spread{SettingKind::device_part, setting.name, DevicePart::spread};
    DeviceFacts wanted;
    if (setting.kind == SettingKind::device_part && setting.part == DevicePart::channels &&
        machine.get(spread) && set_part(wanted, DevicePart::channels, channels))
        (void)machine.set(spread, default_spread(std::max(1U, receiving(*wanted.channels))));
}

// What stays once a change on top of a kept one is undone.
Journal without_second(Journal journal) {
    for (JournalEntry& entry : journal.entries) {
        entry.wanted = entry.kept ? entry.kept->wanted : std::nullopt;
        entry.kept.reset();
    }
    journal.is_second = false;
    journal.is_done = true;
    journal.deadline_ms.reset();
    return journal;
}

// Its caller holds the lock.
Result<RevertReport> put_back(const Machine& machine, const JournalFolder& journals,
                              const Journal& journal, Return to) {
    RevertReport report;
    report.was_rebooted = journal.boot != machine.boot();
    if (report.was_rebooted) {
        const Status removed = journals.remove(journal.interface);
        return removed ? Result<RevertReport>(report) : removed.error();
    }
    if (const Status possible = can_go_back(machine, journal, to); !possible)
        return possible.error();
    std::string failures;
    for (const JournalEntry& entry : in_order_of_return(journal)) {
        const auto now = machine.get(entry.setting);
        if (!now && now.error().code == ErrorCode::not_found) {
            report.gone.push_back(entry.setting);
            continue;
        }
        const std::string& target = target_of(entry, to);
        if (now && way_back(machine, entry.setting, *now) == target)
            continue;
        make_way_for_channels(machine, entry.setting, target);
        if (const Status set = machine.set(entry.setting, target); !set)
            failures += (failures.empty() ? "" : "; ") + entry.setting.to_string() + ": " +
                        set.error().message;
        else
            report.restored.push_back(entry.setting);
    }
    if (!failures.empty())
        return failed("not put back: " + failures,
                      "what can be is as it was; once the cause is mended: sluicectl tune revert " +
                          journal.interface);
    const bool stays = to == Return::to_what_was_kept && journal.is_second;
    const Status recorded =
        stays ? journals.write(without_second(journal)) : journals.remove(journal.interface);
    return recorded ? Result<RevertReport>(report) : recorded.error();
}

// What undoing leads back to from now on is what is there now.
void keep(Journal& journal) {
    for (JournalEntry& entry : journal.entries)
        entry.kept.reset();
    journal.is_second = false;
    journal.deadline_ms.reset();
}

Result<Journal> second_of(const Machine& machine, Journal journal) {
    for (JournalEntry& entry : journal.entries) {
        auto now = machine.get(entry.setting);
        if (!now && now.error().code != ErrorCode::not_found)
            return now.error();
        if (now)
            entry.kept =
                JournalEntry::Kept{way_back(machine, entry.setting, *std::move(now)), entry.wanted};
    }
    journal.is_second = true;
    return journal;
}

// The journal to go on with.
Result<Journal> journal_to_begin_with(const Machine& machine, const JournalFolder& journals,
                                      const std::string& interface, ApplyReport& report) {
    auto journal = journals.read(interface);
    const Journal fresh{.interface = interface, .boot = machine.boot(), .since_ms = boot_time_ms()};
    if (!journal)
        return journal.error().code == ErrorCode::not_found ? Result<Journal>(fresh)
                                                            : journal.error();
    if (journal->boot != fresh.boot) {
        report.notes.push_back("What was set earlier went when this machine was started anew.");
        const Status removed = journals.remove(interface);
        return removed ? Result<Journal>(fresh) : removed.error();
    }
    if (journal->is_done && awaits_confirmation(machine, *journal))
        return failed("an earlier change of " + interface + " waits for its confirmation",
                      "keep it: sluicectl confirm tune." + interface +
                          "; or undo it: sluicectl tune revert " + interface);
    if (journal->is_done && !journal->deadline_ms)
        return second_of(machine, *std::move(journal));
    report.was_cut_off = true;
    const auto undone = put_back(machine, journals, *journal, Return::to_what_was_kept);
    if (!undone)
        return undone.error();
    return journal->is_second ? second_of(machine, without_second(*std::move(journal)))
                              : Result<Journal>(fresh);
}

Status run_stages(const Machine& machine, const JournalFolder& journals, const PlanInput& input,
                  const ApplyOptions& options, Journal& journal, ApplyReport& report) {
    Stage stage(machine, journals, options, journal, report);
    const auto of_device = half(make_plan(input), true);
    if (!of_device.empty()) {
        for (const Change& change : of_device)
            if (const Status known = remember(machine, change.setting, journal); !known)
                return known;
        for (const Port& port : input.ports)
            for (const Setting& setting : at_risk(port))
                if (const Status known = remember(machine, setting, journal); !known)
                    return known;
        if (const Status done = stage.run(of_device); !done)
            return done;
    }
    const auto again = look_at(machine, journals, input.interface, options.wishes);
    if (!again)
        return again.error();
    const Plan plan = make_plan(*again);
    if (const Status watched = adopt(machine, plan.settled, journal); !watched)
        return watched;
    const auto rest = half(plan, false);
    return rest.empty() ? Status() : stage.run(rest);
}

// virtio_net adds queues of its own for what XDP sends, while a program is attached.
bool has_queues_for_xdp(const Machine& machine, const Setting& setting) {
    if (setting.kind != SettingKind::device_part || setting.part != DevicePart::channels)
        return false;
    const auto device = machine.ethtool().read(setting.name);
    return device && device->driver == "virtio_net" && device->xdp == XdpUse::native;
}

}  // namespace

Result<ApplyReport> apply_tuning(const Machine& machine, const JournalFolder& journals,
                                 const std::string& interface, const ApplyOptions& options) {
    // No more than that: what a death left half-written is put back before it is read.
    if (const auto ports = ports_below(machine, interface); !ports)
        return ports.error();
    const auto lock = journals.lock(options.patience);
    if (!lock)
        return lock.error();
    ApplyReport report;
    auto journal = journal_to_begin_with(machine, journals, interface, report);
    if (!journal)
        return journal.error();
    const auto input = look_at(machine, journals, interface, options.wishes);
    if (!input)
        return input.error();
    const Plan plan = make_plan(*input);
    if (!plan.hindrances.empty())
        return make_error(ErrorCode::not_permitted, plan.hindrances.front());
    report.cautions = plan.cautions;
    report.notes.insert(report.notes.end(), plan.notes.begin(), plan.notes.end());
    if (plan.is_done() && plan.settled.empty())
        return report;
    journal->is_done = false;
    // What changes nothing needs no confirmation.
    if (options.confirm && !plan.is_done())
        journal->deadline_ms =
            boot_time_ms() +
            static_cast<uint64_t>(duration_cast<milliseconds>(*options.confirm).count());
    if (const Status done = run_stages(machine, journals, *input, options, *journal, report);
        !done) {
        Error error = done.error();
        const auto back = put_back(machine, journals, *journal, Return::to_what_was_kept);
        error.hint += (error.hint.empty() ? "" : "; ") +
                      (back ? "all is as it was before" : back.error().message);
        return error;
    }
    journal->is_done = true;
    if (!journal->deadline_ms)
        keep(*journal);
    if (const Status written = journals.write(*journal); !written)
        return written.error();
    return report;
}

bool is_overdue(const Journal& journal) {
    return journal.deadline_ms && boot_time_ms() >= *journal.deadline_ms;
}

bool awaits_confirmation(const Machine& machine, const Journal& journal) {
    return journal.deadline_ms && !is_overdue(journal) && journal.boot == machine.boot();
}

Status confirm_tuning(const Machine& machine, const JournalFolder& journals,
                      const std::string& interface) {
    const auto lock = journals.lock(kPatience);
    if (!lock)
        return lock.error();
    auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    if (!awaits_confirmation(machine, *journal))
        return make_error(ErrorCode::not_found, "no change of " + interface + " waits");
    keep(*journal);
    return journals.write(*journal);
}

Status undo_if_overdue(const Machine& machine, const JournalFolder& journals,
                       const std::string& interface, milliseconds patience) {
    const auto lock = journals.lock(patience);
    if (!lock)
        return lock.error();
    const auto journal = journals.read(interface);
    if (!journal && journal.error().code != ErrorCode::not_found)
        return journal.error();
    // Confirmed at the last moment, or undone by somebody.
    if (!journal || !is_overdue(*journal))
        return {};
    const auto undone = put_back(machine, journals, *journal, Return::to_what_was_kept);
    return undone ? Status() : undone.error();
}

Status undo_in_time(const Machine& machine, const JournalFolder& journals,
                    const std::string& interface) {
    for (;;) {
        const auto journal = journals.read(interface);
        if (!journal)
            return journal.error().code == ErrorCode::not_found ? Status() : journal.error();
        if (!journal->deadline_ms)
            return {};
        if (!is_overdue(*journal)) {
            std::this_thread::sleep_for(kPause);
            continue;
        }
        const Status undone = undo_if_overdue(machine, journals, interface, {});
        if (undone || !undone.error().busy)
            return undone;
        std::this_thread::sleep_for(kPauseOfTries);
    }
}

Result<std::vector<Drift>> drifted(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface) {
    const auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    if (journal->boot != machine.boot())
        return failed("this machine was started anew since " + interface + " was tuned",
                      "tune it again: sluicectl tune apply " + interface +
                          "; [tune] in the configuration does so at each start");
    if (!journal->is_done)
        return failed("the last change of " + interface + " was cut off",
                      "sluicectl tune revert " + interface);
    if (is_overdue(*journal)) {
        const Status possible = can_go_back(machine, *journal, Return::to_what_was_kept);
        return failed("a change of " + interface + " was not confirmed in time, and is not undone" +
                          (possible ? " yet" : ": " + possible.error().message),
                      possible ? "sluicectl tune revert " + interface : possible.error().hint);
    }
    std::vector<Drift> drifts;
    for (const JournalEntry& entry : journal->entries) {
        if (!entry.wanted)
            continue;
        const auto now = machine.get(entry.setting);
        if (!now && now.error().code != ErrorCode::not_found)
            return now.error();
        if (!now || (!is_same_value(entry.setting, *entry.wanted, *now) &&
                     !has_queues_for_xdp(machine, entry.setting)))
            drifts.push_back({entry.setting, *entry.wanted, now ? *now : std::string()});
    }
    return drifts;
}

Result<MendReport> set_again(const Machine& machine, const JournalFolder& journals,
                             const std::string& interface) {
    // Whoever holds it may be taking away just what would be set here.
    const auto lock = journals.lock({});
    if (!lock)
        return lock.error();
    const auto drifts = drifted(machine, journals, interface);
    if (!drifts)
        return drifts.error();
    MendReport report;
    for (const Drift& drift : *drifts) {
        if (const Status set = machine.set(drift.setting, drift.wanted); set)
            ++report.set;
        else
            report.refused.push_back({drift.setting.to_string(), set.error().message});
    }
    return report;
}

Result<RevertReport> revert_tuning(const Machine& machine, const JournalFolder& journals,
                                   const std::string& interface, milliseconds patience) {
    const auto lock = journals.lock(patience);
    if (!lock)
        return lock.error();
    const auto journal = journals.read(interface);
    if (!journal)
        return journal.error();
    return put_back(machine, journals, *journal, Return::to_the_start);
}

}  // namespace sluice
